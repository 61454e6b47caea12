import Foundation
import PostcardFiles
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardServer

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
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        let othersWait = DispatchSemaphore(value: 0)
        let count = Mutex(0)
        let sync = SharedDirectorySync("/") { path throws(FileError) in
            let number = count.withLock { count in
                count += 1
                return count
            }
            guard number == 1 else { return }
            begin.yield()
            #expect(othersWait.wait(timeout: .now() + 300) == .success)
        }
        // Not on file threads, which other tests need while these wait.
        async let first: Void = onThread { try sync.synchronize() }
        for await _ in began { break }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<20 { group.addTask { try await onThread { try sync.synchronize() } } }
            try await eventually { sync.turns.load(ordering: .relaxed) == 21 }
            othersWait.signal()
            try await group.waitForAll()
        }
        try await first
        #expect(count.withLock(\.self) == 2)
    }

    /// The system reports that it could not write something only once.
    @Test func `a sync that fails fails all callers that it was for`() async throws {
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        let othersWait = DispatchSemaphore(value: 0)
        let count = Mutex(0)
        let sync = SharedDirectorySync("/") { path throws(FileError) in
            let number = count.withLock { count in
                count += 1
                return count
            }
            switch number {
            case 1:
                begin.yield()
                #expect(othersWait.wait(timeout: .now() + 300) == .success)
            case 2: throw FileError("sync", path, Errno.ioError)
            default: break
            }
        }
        async let first = Self.succeeds(sync)
        for await _ in began { break }
        async let second = Self.succeeds(sync)
        async let third = Self.succeeds(sync)
        try await eventually { sync.turns.load(ordering: .relaxed) == 3 }
        othersWait.signal()
        #expect(await [first, second, third] == [true, false, false])
        #expect(count.withLock(\.self) == 2)
        #expect(await Self.succeeds(sync))
    }
}
