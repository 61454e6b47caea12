import Foundation
import GRDB
import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// A system that is about to suspend the app: at once, or when the test says so.
private final class ExpiringSystem: Sendable {
    private struct State {
        var isRefusing = false
        var open: [Int: @Sendable () -> Void] = [:]
        var begun = 0
        var waiting: [CheckedContinuation<Void, Never>] = []
    }

    private let state = Mutex(State())

    /// The number of activities that were begun.
    var begun: Int { state.withLock { $0.begun } }

    /// Waits until all activities have ended.
    func ended() async {
        await withCheckedContinuation { continuation in
            let isOver = state.withLock { state in
                if !state.open.isEmpty { state.waiting.append(continuation) }
                return state.open.isEmpty
            }
            if isOver { continuation.resume() }
        }
    }

    private func end(_ number: Int) {
        let waiting = state.withLock { state -> [CheckedContinuation<Void, Never>] in
            state.open[number] = nil
            guard state.open.isEmpty else { return [] }
            defer { state.waiting = [] }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    var system: SystemActivity {
        SystemActivity { [self] expire in
            let number = state.withLock { state -> Int? in
                if state.isRefusing { return nil }
                state.begun += 1
                state.open[state.begun] = expire
                return state.begun
            }
            guard let number else { return nil }
            return { [self] in end(number) }
        }
    }

    /// Expires all activities, and grants none until ``resume()``.
    func expire() {
        let open = state.withLock { state in
            state.isRefusing = true
            return state.open
        }
        for expire in open.values { expire() }
    }

    /// Grants activities again.
    func resume() { state.withLock { $0.isRefusing = false } }
}

/// What a queue does when the system is about to suspend the app.
@Suite(.timeLimit(.minutes(10))) struct ActivityTests {
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let system = ExpiringSystem()
    private let identifier = UUID().uuidString
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/uploads"))
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    private func queue(at time: QueueTime = QueueTime()) -> UploadQueue {
        UploadQueue(
            directory: directory, session: BackgroundSession(identifier: identifier), service: KeepingService(kept),
            time: time, activity: system.system)
    }

    /// A form whose stream waits for the test after its first bytes.
    private func slowForm(_ file: URL, _ reached: AsyncStream<Void>.Continuation) throws -> MultipartForm {
        var form = QueuedForms.form("초코", file)
        let content = FormStream {
            AsyncStream<Data> { continuation in
                continuation.yield(Data(repeating: 7, count: 1000))
                reached.yield()
                // It never ends by itself.
                continuation.onTermination = { _ in }
            }
        }
        form.append(content, named: "rest", filename: "rest.bin")
        return form
    }

    @Test func `a form that is enqueued while the app is suspended is not in the queue, and its file is still there`()
        async throws
    {
        let file = folder.url.appending(path: "photo.jpg")
        try Data(repeating: 1, count: 5000).write(to: file)
        let queue = queue()
        try await queue.open()
        let (reached, continuation) = AsyncStream.makeStream(of: Void.self)
        let form = try slowForm(file, continuation)
        let enqueuing = Task { try await queue.enqueue(form, to: url) }
        for await _ in reached { break }
        system.expire()
        let error = await #expect(throws: UploadQueueError.self) { try await enqueuing.value }
        #expect(error?.code == .suspended)
        await system.ended()
        system.resume()
        #expect(try await queue.uploads() == [])
        #expect(try FileManager.default.contentsOfDirectory(atPath: directory.appending(path: "bodies").path) == [])
        #expect(try Data(contentsOf: file).count == 5000)
        // It is enqueued when the app runs again.
        try await queue.enqueue(QueuedForms.form("초코", file), to: url)
        #expect(try await queue.uploads().count == 1)
    }

    @Test func `an app that is about to be suspended changes nothing, and can read`() async throws {
        let queue = queue()
        let id = try await queue.withoutSession.enqueue(QueuedForms.form(), to: url)
        try await queue.open()
        system.expire()
        var codes: [UploadQueueError.Code] = []
        let calls: [@Sendable () async throws -> Void] = [
            { try await queue.enqueue(QueuedForms.form(), to: url) }, { try await queue.cancel(id) },
            { try await queue.pause(id) }, { try await queue.pause() }, { try await queue.clear() },
            { try await queue.handOver() },
        ]
        for call in calls {
            do { try await call() } catch let error as UploadQueueError { codes.append(error.code) }
        }
        #expect(codes == Array(repeating: .suspended, count: calls.count))
        #expect(try await queue.uploads().map(\.state) == [.waiting])
        #expect(kept.handedOver.isEmpty)
        system.resume()
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        await queue.disconnect()
    }

    /// The same code tries again on a device that was not unlocked yet.
    @Test func `a queue that is run before it can be opened tries again until it can`() async throws {
        system.expire()
        let pauses = Mutex(0)
        let time = QueueTime(sleep: { [system] end in
            let count = pauses.withLock { count in
                count += 1
                return count
            }
            if count > 3 { try await Task.sleep(until: end, clock: .continuous) }
            if count == 3 { system.resume() }
        })
        let queue = queue(at: time)
        try await queue.run(endsWhenEmpty: true)
        #expect(pauses.withLock { $0 } >= 3)
        await queue.disconnect()
    }

    @Test func `a query is not interrupted together with a write, when the app is about to be suspended`() async throws
    {
        let queue = queue()
        let store = try await queue.opening.store()
        let isFirst = Mutex(true)
        // The interruption comes while the query calls this.
        let expire = DatabaseFunction("expire", argumentCount: 0) { [system] _ in
            if isFirst.withLock({ first in
                defer { first = false }; return first
            }) {
                try store.database.write { _ in system.expire() }
            }
            return 1
        }
        let count = try store.database.read { db in
            db.add(function: expire)
            return try Int.fetchOne(
                db,
                sql: """
                    WITH RECURSIVE numbers(number) AS (SELECT 1 UNION ALL SELECT number + 1 FROM numbers LIMIT 1000)
                    SELECT sum(expire()) FROM numbers
                    """)
        }
        #expect(count == 1000)
    }

    @Test func `handing over stops when the app is about to be suspended, and goes on when it runs again`() async throws
    {
        let queue = queue()
        for _ in 0..<10 { try await queue.withoutSession.enqueue(QueuedForms.form(), to: url) }
        // The system has the first one by then.
        kept.refuseNext { [system] in system.expire() }
        await #expect(throws: UploadQueueError.self) { try await queue.handOver() }
        #expect(kept.handedOver.count == 1)
        await system.ended()
        system.resume()
        try await queue.handOver()
        // Those that were marked as being sent wait a little.
        #expect(Set(kept.handedOver.map(\.id.upload)).count == kept.handedOver.count)
        kept.endFirst(kept.handedOver.count, .response(status: 201, headerFields: [:], url: url, method: .post))
        try await queue.handOver()
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone || $0.state.isRetrying })
        await queue.disconnect()
    }

    @Test func `a wake-up ends although the system grants no activity, and its events are settled later`() async throws
    {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        system.expire()
        try kept.end(.response(status: 201, headerFields: [:], url: url, method: .post))
        await queue.handleEvents()
        #expect(try await queue.upload(id)?.state == .sending)
        system.resume()
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state.isDone == true)
        await queue.disconnect()
    }

    /// The queue works between the two notifications, when the system wakes the app.
    @Test func `an app that tells its own databases of its suspension does not stop the queue`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        NotificationCenter.default.post(name: Database.suspendNotification, object: nil)
        defer { NotificationCenter.default.post(name: Database.resumeNotification, object: nil) }
        try await queue.pause(id)
        #expect(try await queue.upload(id)?.state == .paused)
    }

    @Test func `progress begins no activity, reads no rows and is shown four times a second`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        let total = try #require(try await queue.upload(id)).totalBytes
        try await queue.handOver()
        let attempt = try #require(kept.handedOver.first).id
        let store = try await queue.opening.store()
        let statements = Mutex(0)
        try store.database.write { $0.trace { _ in statements.withLock { $0 += 1 } } }
        // The first progress marks the upload as being sent.
        kept.report(.sent(attempt, bytes: 1))
        try await queue.handOver()
        await system.ended()
        let (begun, before) = (system.begun, statements.withLock { $0 })
        var updates = queue.updates().makeAsyncIterator()
        _ = try await updates.next()
        for bytes in 2...total { kept.report(.sent(attempt, bytes: bytes)) }
        var sent: Int64 = 0
        var lists = 0
        while sent < total {
            sent = try #require(try await updates.next()?.first).bytesSent
            lists += 1
        }
        #expect(system.begun == begun && statements.withLock { $0 } == before)
        #expect(lists <= 4, "\(lists) lists")
        await queue.disconnect()
    }

    @Test func `an enqueued form is handed over without a run, before the system may suspend the app`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: url)
        await system.ended()
        #expect(kept.handedOver.count == 1)
        // Also if the queue is gone by then, as in an intent.
        try await self.queue().enqueue(QueuedForms.form(), to: url)
        await system.ended()
        #expect(kept.handedOver.count == 2)
    }

    @Test func `a form is enqueued within one activity, however many queries that takes`() async throws {
        let queue = queue()
        try await queue.open()
        let before = system.begun
        try await queue.enqueue(QueuedForms.form(), to: url)
        #expect(system.begun == before + 1)
        await system.ended()
    }
}
