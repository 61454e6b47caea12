import Foundation
import PostcardFiles
import PostcardReceivingSupport
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardStore

/// Counts syncs, and holds up the first one until other callers wait.
private final class HeldSync: Sendable {
    private let began = AsyncStream.makeStream(of: Void.self)
    private let othersWait = DispatchSemaphore(value: 0)
    private let syncs = Mutex(0)

    var count: Int { syncs.withLock(\.self) }

    /// The number of a sync that begins, from 1.
    func begin() -> Int {
        let number = syncs.withLock { count in
            count += 1
            return count
        }
        if number == 1 {
            began.continuation.yield()
            #expect(othersWait.wait(timeout: .now() + 300) == .success)
        }
        return number
    }

    func waitForFirst() async {
        for await _ in began.stream { break }
    }

    func endFirst() { othersWait.signal() }
}

@Suite(.timeLimit(.minutes(10)))
struct SharedDirectorySyncTests {
    private static func syncAtOnce(_ sync: SharedDirectorySync) async -> [Bool] {
        await withTaskGroup { group in
            for _ in 0..<100 { group.addTask { await succeeds(sync) } }
            return await group.reduce(into: []) { $0.append($1) }
        }
    }

    private static func succeeds(_ sync: SharedDirectorySync) async -> Bool {
        do {
            try await onFileThread { try sync.synchronize() }
            return true
        } catch {
            return false
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

    @Test func `a sync that fails fails its own caller alone, and the next caller asks again`() async throws {
        try await withTemporaryDirectory { directory in
            let path = directory.appending("later").string
            let sync = SharedDirectorySync(directory.appending("later"))
            for isThere in [false, false, true, false, true, true] {
                try? FileManager.default.removeItem(atPath: path)
                if isThere {
                    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
                }
                #expect(await Self.succeeds(sync) == isThere)
            }
        }
    }

    @Test func `callers that arrive during a sync share the next one`() async throws {
        let held = HeldSync()
        let sync = SharedDirectorySync("/") { _ throws(FileError) in _ = held.begin() }
        // Not on file threads, which other tests need while these wait.
        async let first: Void = onThread { try sync.synchronize() }
        await held.waitForFirst()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { try await onThread { try sync.synchronize() } } }
            try await eventually { sync.turns.load(ordering: .relaxed) == 21 }
            held.endFirst()
            try await group.waitForAll()
        }
        try await first
        #expect(held.count == 2)
    }

    /// The system reports that it could not write something only once.
    @Test func `a sync that fails fails all callers that it was for`() async throws {
        let held = HeldSync()
        let sync = SharedDirectorySync("/") { path throws(FileError) in
            if held.begin() == 2 { throw FileError("sync", path, Errno.ioError) }
        }
        async let first = Self.succeeds(sync)
        await held.waitForFirst()
        async let second = Self.succeeds(sync)
        async let third = Self.succeeds(sync)
        try await eventually { sync.turns.load(ordering: .relaxed) == 3 }
        held.endFirst()
        #expect(await [first, second, third] == [true, false, false])
        #expect(held.count == 2)
        #expect(await Self.succeeds(sync))
    }
}
