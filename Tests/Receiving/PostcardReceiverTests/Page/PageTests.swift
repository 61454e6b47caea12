import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

/// Chromium uses the page as people do. `Tests/Browser/check.py` has the expectations.
@Suite(
    .timeLimit(.minutes(10)), .serialized, .enabled(if: Chromium.canRun, "There is no Chromium, or no Python for it"))
struct PageTests {
    private static let script = Repository.url("Tests/Browser/check.py").path(
        percentEncoded: false)

    private func pictures() throws -> [String] {
        try FileManager.default.contentsOfDirectory(
            at: Repository.url("Samples/Pictures"), includingPropertiesForKeys: nil
        )
        .map { $0.path(percentEncoded: false) }
        .sorted()
    }

    @Test
    func `the page asks for the tokens that are wanted, and shows the pictures with them`() async throws {
        func protect(_ receiver: inout Receiver) {
            receiver.tokens.reading = ["to-read"]
            receiver.tokens.posting = ["to-post"]
        }
        try await withReceiver(protect) { receiver in
            let result = try await Program.run(
                Chromium.python, [Self.script, "tokens", receiver.url] + (try pictures()))
            #expect(result.status == 0, "\(result.messages)")
        }
    }

    @Test func `every tile has its picture and every text can be read, on small screens and in the dark too`()
        async throws
    {
        let server = try await ReceivingServer()
        let address = server.url.absoluteString.trimmingCharacters(in: ["/"])
        let page = try await Program.run("curl", ["-sS", address])
        guard page.text.contains(#""hasThumbnails":true"#) else { return try Tool.require("the codecs of pictures") }
        let result = try await Program.run(Chromium.python, [Self.script, "views", address] + (try pictures()))
        #expect(result.status == 0, "\(result.messages)")
    }

    @Test(arguments: [
        "sending", "cancelling", "aborting", "reused", "deleting", "refused", "faults", "opening", "translated",
        "folded", "hostile", "plain", "keyboard", "languages", "buffered",
    ])
    func `the page does what people expect of it`(_ name: String) async throws {
        try await withReceiver { receiver in
            let result = try await Program.run(
                Chromium.python, [Self.script, name, receiver.url] + (try pictures()))
            #expect(result.status == 0, "\(result.messages)")
        }
    }
}

/// What drives Chromium.
enum Chromium {
    static let python = Repository.url(".build/receivers/bin/python").path(percentEncoded: false)

    static let canRun = isInstalled && Tool.isInstalled(python)

    private static let isInstalled =
        ["chromium", "chromium-browser", "google-chrome"].contains(where: Tool.isInstalled)

    /// Skips the rest of the current test without Chromium, or fails it in CI.
    static func require() throws {
        if !isInstalled { try Tool.require("chromium") }
        try Tool.require(python)
    }
}
