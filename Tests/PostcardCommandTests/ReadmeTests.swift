import Foundation
import PostcardTestSupport
import Testing

@Suite("The README", .timeLimit(.minutes(10)))
struct ReadmeTests {
    private let folder = URL(filePath: #filePath).deletingLastPathComponent()
    private let readme: String

    init() throws {
        readme = try String(contentsOf: folder.appending(path: "../../README.md").standardized, encoding: .utf8)
    }

    /// The lines of each code block in a language, those in lists included.
    private func blocks(in language: String) -> [[String]] {
        var blocks: [[String]] = []
        var lines = readme.components(separatedBy: "\n")[...]
        while let start = lines.firstIndex(where: { Self.withoutIndentation($0) == "```\(language)" }) {
            let block = lines[(start + 1)...].prefix { Self.withoutIndentation($0) != "```" }
            blocks.append(Array(block))
            lines = lines[block.endIndex...]
        }
        return blocks
    }

    /// The files whose code is compiled as it is: these tests, and the snippets, whose code for apps is compiled by the
    /// check for Apple's platforms. Each as lines without their indentation.
    private func compiledFiles() throws -> [[String]] {
        let snippets = folder.appending(path: "../../Snippets").standardized
        let files = try FileManager.default.contentsOfDirectory(at: snippets, includingPropertiesForKeys: nil)
        let sources = [folder.appending(path: "ReadmeSnippets.swift")] + files.filter { $0.pathExtension == "swift" }
        return try sources.map { file in
            try String(contentsOf: file, encoding: .utf8).components(separatedBy: "\n").map(Self.withoutIndentation)
        }
    }

    private static func withoutIndentation(_ line: String) -> String {
        line.drop { $0 == " " }.description
    }

    @Test("Its Swift is what the tests or the check for Apple's platforms compile")
    func swift() throws {
        let files = try compiledFiles()
        for block in blocks(in: "swift") where block.count > 1 {
            for paragraph in block.map(Self.withoutIndentation).split(separator: "") {
                let code = paragraph.filter { !$0.hasPrefix("import ") }
                let isCompiled = files.contains { file in
                    file.indices.count { file[$0...].starts(with: code) } == 1
                }
                #expect(code.isEmpty || isCompiled, "\(code.first ?? "")")
                for line in paragraph where line.hasPrefix("import ") {
                    #expect(files.contains { $0.contains(line) }, "\(line)")
                }
            }
        }
    }

    @Test("The demo prints what it shows, but for the port and the identifier")
    func demo() async throws {
        let shown = try #require(blocks(in: "console").first { $0.first == "$ make demo" })
        let received = try TemporaryFolder()
        let ending = try await Program.run(["demo", "--directory", received.path])
        func constant(_ lines: some Sequence<String>) -> [String] {
            lines.map { $0.prefix { $0 != "/" }.description }
        }
        #expect(
            constant(ending.text.split(separator: "\n").map(String.init))
                == constant(shown.dropFirst().prefix { !$0.hasPrefix("$") }).map {
                    $0.hasPrefix("Saved to") ? "Saved to " : $0
                })
    }

    @Test("The output of explain is what it prints")
    func explain() async throws {
        let shown = try #require(blocks(in: "console").first { $0.first?.contains("| postcard explain") == true })
        let command = try #require(shown.first?.dropFirst(2)).replacing(
            "postcard explain", with: "'\(Program.url.path)' explain")
        let ending = try await Program.run("sh", ["-c", String(command)])
        #expect(ending.text == shown.dropFirst().map { $0 + "\n" }.joined())
    }
}
