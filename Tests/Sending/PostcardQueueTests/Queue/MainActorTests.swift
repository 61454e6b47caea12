import Foundation
import GRDB
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// An app makes and uses its queue on the main actor, which must have its turns all the time. Turns are counted,
/// because time says nothing on a busy machine.
///
/// One test after the other: each has a thread wait for a database, and on Linux the main actor of a test process needs
/// one of the same few threads.
@MainActor @Suite(.serialized, .timeLimit(.minutes(10))) struct MainActorTests {
    /// After these, the work waits for the database. In a process with many tests, each takes a while.
    private static let turns = 5

    private let folder: TemporaryFolder
    private let directory: URL

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
    }

    private static func address() throws -> URL { try #require(URL(string: "http://127.0.0.1:1/")) }

    /// Does something that needs the database, which another connection has locked until the main actor had its turns.
    /// If the main actor itself waits for the lock, that never ends, and the work fails.
    private func takeTurns(while work: @escaping @MainActor @Sendable () async throws -> Void) async throws {
        var configuration = Configuration()
        configuration.allowsUnsafeTransactions = true
        let other = try DatabaseQueue(
            path: directory.appending(path: "queue.sqlite").path, configuration: configuration)
        try Self.execute("BEGIN IMMEDIATE", other)
        let isDone = Mutex(false)
        let task = Task { @MainActor in
            defer { isDone.withLock { $0 = true } }
            try await work()
        }
        for _ in 0..<Self.turns { await Task.yield() }
        // It really waits for the lock.
        #expect(!isDone.withLock { $0 })
        try Self.execute("COMMIT", other)
        try await task.value
    }

    /// At once, and without the threads of other tasks.
    private static func execute(_ sql: String, _ database: DatabaseQueue) throws {
        try database.writeWithoutTransaction { try $0.execute(sql: sql) }
    }

    private static let actions: [(name: String, act: @MainActor @Sendable (UploadQueueList) -> Task<Void, Never>)] = [
        ("pause one", { $0.pause(1) }), ("retry", { $0.retry(2) }), ("cancel", { $0.cancel(1) }),
        ("pause all", { $0.pause() }), ("resume all", { $0.resume() }), ("retry all", { $0.retryAll() }),
        ("cancel all", { $0.cancelAll() }), ("clear", { $0.clear() }),
    ]

    @Test func `the main actor has its turns while an action of a list waits for the database`() async throws {
        let queue = UploadQueue(directory: directory)
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: Self.address()) }
        try await queue.cancel(2)
        let list = UploadQueueList(queue)
        for (name, act) in Self.actions {
            try await takeTurns { await act(list).value }
            #expect(list.error == nil, "\(name)")
        }
    }

    @Test func `actions of a list follow each other in their order`() async throws {
        let queue = UploadQueue(directory: directory)
        try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let list = UploadQueueList(queue)
        for _ in 0..<20 {
            list.pause(1)
            await list.resume(1).value
            #expect(list.error == nil)
        }
        list.cancel(1)
        await list.resume(1).value
        #expect(list.error?.code == .wrongState)
    }

    @Test func `the main actor has its turns while a queue is opened and run`() async throws {
        try await UploadQueue(directory: directory).open()
        let opening = UploadQueue(directory: directory)
        try await takeTurns { try await opening.open() }
        let running = UploadQueue(directory: directory)
        try await takeTurns { try await running.run(endsWhenEmpty: true) }
    }

    @Test func `the main actor has its turns while a form is enqueued`() async throws {
        let queue = UploadQueue(directory: directory)
        try await queue.open()
        let address = try Self.address()
        try await takeTurns { try await queue.enqueue(QueuedForms.form(), to: address) }
    }

    /// A probe for a large form, alone in its process: for 1 GB, set POSTCARD_PROBED_MB=1024.
    @Test func `a form is copied elsewhere than on the main actor, which has its turns meanwhile`() async throws {
        let probed = ProcessInfo.processInfo.environment["POSTCARD_PROBED_MB"].flatMap(Int.init)
        let film = try folder.sparseFile("film.mov", size: UInt64((probed ?? 16) << 20))
        let wasOnMainThread = Mutex<Bool?>(nil)
        var form = QueuedForms.form("초코", film)
        let log = FormStream(length: 3) {
            wasOnMainThread.withLock { $0 = Thread.isMainThread }
            return AsyncStream { continuation in
                continuation.yield(Data("log".utf8))
                continuation.finish()
            }
        }
        form.append(log, named: "log", filename: "log.txt")
        let queue = UploadQueue(directory: directory)
        let (made, address) = (form, try Self.address())
        let isDone = Mutex(false)
        let task = Task { @MainActor in
            defer { isDone.withLock { $0 = true } }
            return try await queue.enqueue(made, to: address)
        }
        var turns = 0
        while !isDone.withLock({ $0 }) {
            await Task.yield()
            turns += 1
        }
        #expect(try await queue.bodyExists(try await task.value))
        #expect(wasOnMainThread.withLock { $0 } == false)
        if let probed {
            print("The main actor had \(turns) turns while \(probed) MB were enqueued.")
            #expect(turns > 100 * probed)
        }
    }
}
