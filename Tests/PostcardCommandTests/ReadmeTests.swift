import Foundation
import PostcardTestSupport
import Testing

@Suite("The README", .timeLimit(.minutes(10)))
struct ReadmeTests {
    private let readme: Document

    init() throws {
        readme = try Document("README.md")
    }

    @Test("Its Swift is what the tests or the check for Apple's platforms compile")
    func swift() throws {
        #expect(try readme.uncompiledSwift() == [])
    }

    @Test("The demo prints what it shows, but for the port and the identifier")
    func demo() async throws {
        let shown = try #require(readme.blocks(in: "console").first { $0.first == "$ make demo" })
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
        let blocks = readme.blocks(in: "console")
        let shown = try #require(blocks.first { $0.first?.contains("| postcard explain") == true })
        let command = try #require(shown.first?.dropFirst(2)).replacing(
            "postcard explain", with: "'\(Program.url.path)' explain")
        let ending = try await Program.run("sh", ["-c", String(command)])
        #expect(ending.text == shown.dropFirst().map { $0 + "\n" }.joined())
    }
}
