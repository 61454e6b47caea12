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

    /// The lines of each code block in a language.
    private func blocks(in language: String) -> [[String]] {
        readme.components(separatedBy: "\n```\(language)\n").dropFirst().map { rest in
            let end = rest.range(of: "\n```")?.lowerBound ?? rest.endIndex
            return rest[..<end].components(separatedBy: "\n")
        }
    }

    @Test("Its Swift is what the tests compile")
    func swift() throws {
        let snippets = try String(contentsOf: folder.appending(path: "ReadmeSnippets.swift"), encoding: .utf8)
        let compiled = snippets.components(separatedBy: "\n").map { $0.drop { $0 == " " }.description }
        for block in blocks(in: "swift") where block.count > 1 {
            for paragraph in block.split(separator: "") {
                let code = paragraph.filter { !$0.hasPrefix("import ") }.map { $0.drop { $0 == " " }.description }
                let starts = compiled.indices.filter { compiled[$0...].starts(with: code) }
                #expect(code.isEmpty || starts.count == 1, "\(code.first ?? "")")
                #expect(paragraph.filter { $0.hasPrefix("import ") }.allSatisfy(compiled.contains))
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
                    $0.hasPrefix("They lie") ? "They lie in " : $0
                })
    }

    @Test("What explain says is what it says")
    func explain() async throws {
        let shown = try #require(blocks(in: "console").first { $0.first?.contains("| postcard explain") == true })
        let command = try #require(shown.first?.dropFirst(2)).replacing(
            "postcard explain", with: "'\(Program.url.path)' explain")
        let ending = try await Program.run("sh", ["-c", String(command)])
        #expect(ending.text == shown.dropFirst().map { $0 + "\n" }.joined())
    }
}
