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
    /// The files on which this process has the shared lock that SQLite keeps as long as a database is open.
    private func lockedFiles() throws -> Set<String> {
        let own = "\(ProcessInfo.processInfo.processIdentifier)"
        var locked: Set<String> = []
        func lines() throws -> [String] {
            // A file without a size, of which a single read returns the first lines.
            let file = try FileHandle(forReadingFrom: URL(filePath: "/proc/locks"))
            defer { try? file.close() }
            var content = Data()
            while let data = try file.read(upToCount: 1 << 16), !data.isEmpty { content += data }
            return String(decoding: content, as: UTF8.self).split(separator: "\n").map(String.init)
        }
        // The system lists locks piece by piece, and may leave some out while others change.
        for _ in 0..<20 {
            let locks = try lines().map { $0.split(separator: " ") }
            for name in ["queue.sqlite", "queue.sqlite-shm"] {
                let path = directory.appending(path: name).path
                let node = try FileManager.default.attributesOfItem(atPath: path)[.systemFileNumber] as? UInt64
                let isLocked = locks.contains { words in
                    words.contains("READ") && words.contains { $0 == own }
                        && words.contains { $0.hasSuffix(":\(node ?? 0)") }
                }
                if isLocked { locked.insert(name) }
            }
        }
        return locked
    }

    @Test func `a second queue in the same directory leaves the first one its locks`() async throws {
        let first = UploadQueue(directory: directory)
        try await first.open()
        #expect(try lockedFiles() == ["queue.sqlite", "queue.sqlite-shm"])
        for _ in 0..<2 {
            let second = UploadQueue(directory: directory)
            try await second.open()
            #expect(try lockedFiles() == ["queue.sqlite", "queue.sqlite-shm"])
        }
        #expect(try lockedFiles() == ["queue.sqlite", "queue.sqlite-shm"])
        _ = try await first.uploads()
    }
    #endif
}
