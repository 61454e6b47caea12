import Foundation
import SystemPackage
import Testing

@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct SharedDirectorySyncTests {
    private static func syncAtOnce(_ sync: SharedDirectorySync) async -> [Bool] {
        await withTaskGroup { group in
            for _ in 0..<100 {
                group.addTask {
                    do {
                        try await onFileThread { try sync.synchronize() }
                        return true
                    } catch {
                        return false
                    }
                }
            }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    @Test func `a hundred callers at once all return when it is done`() async throws {
        try await withTemporaryDirectory { directory in
            let results = await Self.syncAtOnce(SharedDirectorySync(directory))
            #expect(results == [Bool](repeating: true, count: 100))
        }
    }

    @Test func `no caller returns without an error until it is done`() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory.appending("later")
            let sync = SharedDirectorySync(path)
            let failed = await Self.syncAtOnce(sync)
            #expect(failed == [Bool](repeating: false, count: 100))
            try FileManager.default.createDirectory(atPath: path.string, withIntermediateDirectories: false)
            let done = await Self.syncAtOnce(sync)
            #expect(done == [Bool](repeating: true, count: 100))
        }
    }
}
