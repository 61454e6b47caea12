import Foundation
import PostcardTestSupport
import Testing

/// What other programs do to `postcard serve`. Each script can be run by itself, for longer.
@Suite("postcard serve, among strangers", .serialized, .timeLimit(.minutes(10)))
struct SenderTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let scripts = Repository.url("Tests/Senders")

    private static let python = Repository.url(".build/receivers/bin/python")

    @Test func `every field, name and byte arrives from every client that is there`() async throws {
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        let ending = try await Program.run(
            Self.scripts.appending(path: "check").path, ["\(server.address)/uploads", Self.python.path])
        #expect(ending.status == 0, "\(ending.text) \(ending.messages)")
    }

    @Test
    func `killed again and again under sixteen senders, it loses nothing that it answered and leaves nothing over`()
        async throws
    {
        let rounds = ProcessInfo.processInfo.environment["POSTCARD_KILLS"] ?? "3"
        let ending = try await Program.run(
            Self.scripts.appending(path: "kill").path, [Program.url.path, rounds, folder.path])
        #expect(ending.status == 0, "\(ending.text) \(ending.messages)")
    }

    @Test(arguments: ["3", "5", "6", "8", "0"])
    func `curl goes on with an upload while the receiver is killed, in each version of the draft`(
        version: String
    ) async throws {
        let rounds = ProcessInfo.processInfo.environment["POSTCARD_KILLS"] ?? "3"
        let ending = try await Program.run(
            Self.scripts.appending(path: "resume").path, [Program.url.path, version, rounds, folder.path])
        #expect(ending.status == 0, "\(ending.text) \(ending.messages)")
    }
}
