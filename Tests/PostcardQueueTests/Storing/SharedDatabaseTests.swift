import Foundation
import PostcardQueue
import PostcardTestSupport
import Testing

/// Queues of several objects or processes in one directory.
@Suite(.timeLimit(.minutes(10))) struct SharedDatabaseTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    #if os(Linux)
    /// The locks that this process has on the database's files, as the system lists them.
    private func locks() throws -> [String] {
        let nodes = try ["queue.sqlite", "queue.sqlite-shm"].map { name in
            let path = directory.appending(path: name).path
            return try #require(try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64)
        }
        let own = "\(ProcessInfo.processInfo.processIdentifier)"
        return try String(contentsOfFile: "/proc/locks", encoding: .utf8).split(separator: "\n").map(String.init)
            .filter { line in
                let words = line.split(separator: " ")
                return words.contains { $0 == own }
                    && words.contains { word in nodes.contains { word.hasSuffix(":\($0)") } }
            }
    }

    @Test func `a second queue in the same directory leaves the first one its locks`() async throws {
        let first = UploadQueue(directory: directory)
        try await first.open()
        let before = try locks().count
        #expect(before > 0)
        for _ in 0..<2 {
            let second = UploadQueue(directory: directory)
            try await second.open()
            #expect(try locks().count >= before)
        }
        #expect(try locks().count >= before)
        _ = try await first.uploads()
    }
    #endif
}
