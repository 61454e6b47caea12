import Foundation
import GRDB
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// Which uploads are handed to the system, and when.
@Suite(.timeLimit(.minutes(10))) struct HandOverTests {
    let folder: TemporaryFolder
    let kept = KeptTransfers()
    let identifier = "org.example.\(UUID().uuidString)"

    init() throws {
        folder = try TemporaryFolder()
    }

    func queue(
        maximumOpen: Int? = nil, policy: RetryPolicy? = nil,
        headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)? = nil, time: QueueTime = QueueTime()
    ) -> UploadQueue {
        var session = BackgroundSession(identifier: identifier)
        if let maximumOpen { session.maximumOpenUploads = maximumOpen }
        if let policy { session.retryPolicy = policy }
        session.headerFields = headerFields
        return UploadQueue(
            directory: folder.url.appending(path: "queue"), session: session, service: KeepingService(kept), time: time)
    }

    static func address() throws -> URL { try #require(URL(string: "https://example.com/uploads")) }

    /// Each transfer that the system still has may have one, also those that were cancelled.
    @Test func `an upload is handed over however many names the system has given its body`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let bodies = folder.url.appending(path: "queue/bodies")
        let name = try #require(try FileManager.default.contentsOfDirectory(atPath: bodies.path).first)
        for number in 0..<3 {
            try FileManager.default.linkItem(
                at: bodies.appending(path: name), to: folder.url.appending(path: "held-\(number)"))
        }
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        await queue.disconnect()
    }

    @Test func `all uploads are handed over at once, including those that are due later`() async throws {
        let queue = queue(maximumOpen: 1000)
        // A whole number, which the database stores exactly.
        let later = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + 3600).rounded())
        for _ in 0..<120 { try await queue.enqueue(QueuedForms.form(), to: Self.address()) }
        let last = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(notBefore: later, networks: .unmetered, priority: 1))
        try await queue.handOver()
        #expect(kept.handedOver.count == 121)
        let delayed = try #require(kept.handedOver.last)
        #expect(delayed.networks == .unmetered)
        #expect(delayed.earliestBegin == later)
        #expect(try await queue.upload(last)?.state == .waiting)
        #expect(kept.handedOver.dropLast().allSatisfy { $0.earliestBegin == nil && $0.networks == .all })
        #expect(Set(kept.handedOver.map { $0.headerFields[.idempotencyKey] }).count == 121)
        await queue.disconnect()
    }

    @Test func `the system has at most 100 uploads at a time, and the next follow when some have ended`() async throws {
        let queue = queue()
        for _ in 0..<120 { try await queue.enqueue(QueuedForms.form(), to: Self.address()) }
        try await queue.handOver()
        #expect(kept.handedOver.count == 100)
        kept.endFirst(7, try response(201))
        try await queue.handOver()
        #expect(kept.handedOver.count == 100)
        kept.endFirst(100, try response(201))
        try await queue.handOver()
        #expect(kept.handedOver.count == 13)
        await queue.disconnect()
    }

    @Test func `uploads that are due later leave half of the system's uploads to others`() async throws {
        let queue = queue(maximumOpen: 10)
        for hour in 1...12 {
            try await queue.withoutSession.enqueue(
                QueuedForms.form(), to: Self.address(),
                conditions: UploadConditions(
                    notBefore: Date(timeIntervalSinceNow: 3600 * Double(13 - hour)), priority: 5))
        }
        try await queue.handOver()
        let dates = kept.handedOver.compactMap(\.earliestBegin)
        // The earliest ones, although they were enqueued last.
        #expect(dates.count == 5 && dates.sorted() == dates)
        #expect(dates.allSatisfy { $0 < Date(timeIntervalSinceNow: 3600 * 5.5) })
        await queue.disconnect()
        // Also in the next process.
        let next = self.queue(maximumOpen: 10)
        try await next.handOver()
        #expect(kept.handedOver.count == 5)
        for _ in 0..<12 { try await next.enqueue(QueuedForms.form(), to: Self.address()) }
        try await next.handOver()
        #expect(kept.handedOver.count == 10)
        #expect(kept.handedOver.count { $0.earliestBegin == nil } == 5)
        await next.disconnect()
    }

    @Test(arguments: [(0, 0.5), (1, 0.75), (-1, 0.25), (3, 0.875), (.max, 1), (.min, 0)] as [(Int, Float)])
    func `the priority of an upload is that of the system's task`(priority: Int, taskPriority: Float) async throws {
        let queue = queue()
        try await queue.enqueue(
            QueuedForms.form(), to: Self.address(), conditions: UploadConditions(priority: priority))
        try await queue.handOver()
        let found = try #require(kept.handedOver.first?.taskPriority)
        #expect(abs(found - taskPriority) < 0.001)
        await queue.disconnect()
    }

    @Test func `many transfers are cancelled in one pass`() async throws {
        let queue = queue()
        for _ in 0..<90 { try await queue.enqueue(QueuedForms.form(), to: Self.address()) }
        try await queue.handOver()
        try await queue.cancelAll()
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty && kept.cancellations == 1)
        await queue.disconnect()
    }

    @Test func `header fields are made when an upload is handed over, and not stored`() async throws {
        let queue = queue { _ in [.authorization: "Bearer fresh"] }
        try await queue.enqueue(QueuedForms.form(), to: Self.address(), headerFields: [.authorization: "Bearer old"])
        try await queue.handOver()
        #expect(kept.handedOver.map { $0.headerFields[.authorization] } == ["Bearer fresh"])
        let database = try Data(contentsOf: folder.url.appending(path: "queue/queue.sqlite"))
        #expect(database.range(of: Data("fresh".utf8)) == nil)
        await queue.disconnect()
    }

    @Test func `an upload is handed over again with fresh header fields after a 401`() async throws {
        let count = Mutex(0)
        let queue = queue { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return [.authorization: "Bearer \(number)"]
        }
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        try kept.end(try response(401))
        try await queue.handOver()
        #expect(kept.handedOver.map { $0.headerFields[.authorization] } == ["Bearer 2"])
        try kept.end(try response(401))
        try await queue.handOver()
        guard case .failed(let failure) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(failure.response?.status == 401 && !failure.delivery.mayHaveArrived)
        await queue.disconnect()
    }

    @Test func `a closure that takes longer than a wake-up is cancelled, and holds up nothing else`() async throws {
        var session = BackgroundSession(identifier: identifier)
        session.headerFields = { upload in
            if upload.id == 1 { try await Task.sleep(for: .seconds(3600)) }
            return [:]
        }
        // The limit of the first closure passes at once, and those of the others never.
        let sleeps = Mutex(0)
        let time = QueueTime(sleep: { end in
            let count = sleeps.withLock { count in
                count += 1
                return count
            }
            if count > 1 { try await Task.sleep(until: end + .seconds(3600)) }
        })
        let queue = UploadQueue(
            directory: folder.url.appending(path: "queue"), session: session, service: KeepingService(kept), time: time)
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: Self.address()) }
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        #expect(try await queue.upload(2)?.state == .sending)
        let upload = try #require(try await queue.upload(1))
        guard case .retrying(_, let failure) = upload.state else {
            throw ProgramFailure("The upload is \(upload.state).")
        }
        #expect(failure.message.contains("took longer than 20"), "\(failure.message)")
        await queue.disconnect()
    }

    @Test func `an upload is handed over later if its header fields cannot be made now`() async throws {
        let queue = queue { _ in throw UploadError.connectionLost(to: try Self.address(), "there is no network") }
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let upload = try #require(try await queue.upload(id))
        guard case .retrying(let due, let failure) = upload.state else {
            throw ProgramFailure("The upload is \(upload.state).")
        }
        #expect(due > Date() && failure.message.contains("no network") && upload.attempts == 1)
        #expect(kept.handedOver.isEmpty)
        await queue.disconnect()
    }

    @Test func `the uploads of a group are handed over one by one, also after one was cancelled and retried`()
        async throws
    {
        let queue = queue()
        let conditions = UploadConditions(group: "g")
        let first = try await queue.withoutSession.enqueue(
            QueuedForms.form(), to: Self.address(), conditions: conditions)
        try await queue.withoutSession.enqueue(QueuedForms.form(), to: Self.address(), conditions: conditions)
        try await queue.cancel(first)
        try await queue.retry(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        #expect(try await queue.uploads().map(\.attempts) == [1, 0])
        await queue.disconnect()
    }

    @Test func `the transfers of paused, cancelled and cleared uploads are cancelled`() async throws {
        let queue = queue()
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<4 { ids.append(try await queue.enqueue(QueuedForms.form(), to: Self.address())) }
        try await queue.handOver()
        try await queue.pause(ids[0])
        try await queue.cancel(ids[1])
        try await queue.cancel(ids[2])
        try await queue.clear(.ended)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        try await queue.pause()
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        try await queue.resume()
        try await queue.resume(ids[0])
        try await queue.handOver()
        #expect(kept.handedOver.count == 2)
        await queue.disconnect()
    }

    @Test func `transfers stop at once, also while nobody runs the queue`() async throws {
        let queue = queue()
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<3 { ids.append(try await queue.enqueue(QueuedForms.form(), to: Self.address())) }
        try await queue.handOver()
        var left = Set(kept.handedOver.map(\.id))
        var stops = kept.stops.stream.makeAsyncIterator()
        let ways: [(QueuedUpload.ID) async throws -> Void] = [
            { try await queue.cancel($0) }, { try await queue.pause($0) }, { _ in try await queue.cancelAll() },
        ]
        for stop in ways {
            try await stop(ids.removeFirst())
            let stopped = try #require(await stops.next())
            #expect(stopped.count == 1)
            left.subtract(stopped)
            #expect(Set(kept.handedOver.map(\.id)) == left)
        }
        await queue.disconnect()
    }

    @Test func `uploads are handed over later if neither that nor their failure could be saved`() async throws {
        let queue = queue()
        let first = try await queue.withoutSession.enqueue(QueuedForms.form(), to: Self.address())
        let second = try await queue.withoutSession.enqueue(QueuedForms.form(), to: Self.address())
        let file = folder.url.appending(path: "queue/queue.sqlite").path
        let trigger = "CREATE TRIGGER refusal BEFORE UPDATE ON upload BEGIN SELECT RAISE(ABORT, 'refused'); END"
        kept.refuseNext {
            try DatabaseQueue(path: file).write { try $0.execute(sql: trigger) }
            throw UploadQueueError(.databaseFailed, "refused")
        }
        await #expect(throws: UploadQueueError.self) { try await queue.handOver() }
        #expect(try await queue.uploads().map(\.state) == [.sending, .sending])
        #expect(kept.handedOver.isEmpty)
        try await DatabaseQueue(path: file).write { try $0.execute(sql: "DROP TRIGGER refusal") }
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [2])
        let waiting = try #require(try await queue.upload(first))
        #expect(waiting.state.isRetrying && waiting.attempts == 1, "\(waiting.state)")
        #expect(try await queue.upload(second)?.attempts == 2)
        await queue.disconnect()
    }

    @Test func `an upload that is lost while it waits in the system for its time is not counted as interrupted`()
        async throws
    {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        for (seconds, expected) in [(0, 1), (0, 1), (0, 1), (11, 2), (0, 2), (60, 3)] {
            clock.advance(by: .seconds(seconds))
            try await queue.handOver()
            #expect(kept.handedOver.count == 1)
            try kept.end(.interrupted(.lost))
            // Settled, and handed over again before its time.
            try await queue.handOver()
            let row = try #require(try await queue.store.database.read { try $0.row(id) })
            #expect(row.interruptions == expected)
        }
        await queue.disconnect()
    }

    // MARK: - A clock that was ahead

    @Test(arguments: ["uuid = lower(uuid)", "state = 'strange'", "attempts = 'x'", "total = -1"])
    func `an upload whose row cannot be read fails, also if the system has it`(change: String) async throws {
        let first = queue()
        let id = try await first.enqueue(QueuedForms.form(), to: Self.address())
        let other = try await first.enqueue(QueuedForms.form(), to: Self.address())
        try await first.handOver()
        try await first.store.database.write {
            try $0.execute(sql: "UPDATE upload SET \(change) WHERE id = ?", arguments: [id])
        }
        await first.disconnect()
        let second = queue()
        try await second.handOver()
        let row = try await second.store.database.read {
            try Row.fetchOne($0, sql: "SELECT state, session, reason FROM upload WHERE id = ?", arguments: [id])
        }
        #expect(row?["state"] == "failed" && row?["session"] == DatabaseValue.null, "\(String(describing: row))")
        #expect((row?["reason"] as String?)?.contains("damaged") == true)
        #expect(try await second.upload(other)?.state == .sending && kept.handedOver.count == 1)
        await second.disconnect()
    }

    // MARK: - Retries by hand

    func response(_ status: Int) throws -> AttemptEnd {
        .response(status: status, headerFields: HTTPFields(), url: try Self.address(), method: .post)
    }
}
