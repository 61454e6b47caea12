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
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let identifier = "org.example.\(UUID().uuidString)"

    init() throws {
        folder = try TemporaryFolder()
    }

    private func queue(
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

    private static func address() throws -> URL { try #require(URL(string: "https://example.com/uploads")) }

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

    @Test func `what the system reports while a queue is closed is not lost`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let url = try Self.address()
        kept.beforeDisconnecting { [kept] in
            kept.endFirst(1, .response(status: 201, headerFields: HTTPFields(), url: url, method: .post))
        }
        await queue.disconnect()
        let state = try await UploadQueue(directory: folder.url.appending(path: "queue")).upload(id)?.state
        #expect(state?.name == "done")
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

    /// Leaves an upload that the system has for a year, in a queue with a ``SteppedClock``.
    private func misdate(
        _ queue: UploadQueue, _ conditions: UploadConditions = UploadConditions(), to address: URL? = nil
    ) async throws -> QueuedUpload.ID {
        let id = try await queue.enqueue(
            QueuedForms.form(), to: address ?? Self.address(), conditions: conditions)
        try await queue.handOver()
        try kept.end(.failed(.connectionLost(to: Self.address(), "it broke")))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [2])
        #expect(try #require(kept.handedOver.first?.earliestBegin) > Date(timeIntervalSinceNow: 30_000_000))
        return id
    }

    @Test func `a retry begins soon when the clock was a year ahead and is right again`() async throws {
        kept.setResumeData(Data("rest".utf8))
        let first = queue(time: SteppedClock().time)
        _ = try await misdate(first)
        await first.disconnect()
        let queue = queue()
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [3])
        // The end of the attempt that the system had may still be reported.
        #expect(try #require(kept.handedOver.first?.earliestBegin) < Date(timeIntervalSinceNow: 6))
        #expect(kept.handedOver.first?.resumeData == Data("rest".utf8))
        await queue.disconnect()
    }

    @Test func `a retry begins soon when the clock is set back while the app runs`() async throws {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        _ = try await misdate(queue)
        clock.advance(by: .seconds(-31_536_000))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [3])
        let begin = try #require(kept.handedOver.first?.earliestBegin)
        #expect(abs(begin.timeIntervalSince(clock.date) - 5) < 0.001)
        await queue.disconnect()
    }

    @Test func `an upload that was paused while it was sent is sent soon when the clock is right again`() async throws {
        let clock = SteppedClock()
        // None is handed over before it is due.
        let queue = queue(maximumOpen: 1, time: clock.time)
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        try kept.end(.failed(.connectionLost(to: Self.address(), "it broke")))
        try await queue.handOver()
        clock.advance(by: .seconds(60))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .sending)
        try await queue.pause()
        clock.advance(by: .seconds(-31_536_000))
        try await queue.resume()
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        clock.advance(by: .seconds(6))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [3])
        await queue.disconnect()
    }

    @Test func `the deadline counts from now if the first attempt was made while the clock was ahead`() async throws {
        let clock = SteppedClock()
        var policy = RetryPolicy.persistent
        policy.deadline = .seconds(3600)
        let queue = queue(policy: policy, time: clock.time)
        let id = try await misdate(queue)
        clock.advance(by: .seconds(-31_536_000))
        try await queue.handOver()
        clock.advance(by: .seconds(7200))
        try kept.end(.failed(.connectionLost(to: Self.address(), "it broke")))
        try await queue.handOver()
        let reason = try #require(try await queue.upload(id)?.state.failure)
        #expect(reason.contains("3600 seconds after the first"), "\(reason)")
        await queue.disconnect()
    }

    @Test(arguments: [false, true])
    func `what is done after the clock was ahead is listed before what was done then`(
        isSameProcess: Bool
    ) async throws {
        let clock = SteppedClock()
        func open() -> UploadQueue {
            UploadQueue(
                directory: folder.url, session: BackgroundSession(identifier: identifier),
                service: KeepingService(kept), retention: UploadRetention(maximumCount: 1), time: clock.time)
        }
        var queue = open()
        let (first, second) = try await (
            queue.enqueue(QueuedForms.form(), to: Self.address()), queue.enqueue(QueuedForms.form(), to: Self.address())
        )
        try await queue.handOver()
        kept.endFirst(1, try response(201))
        try await queue.handOver()
        try await queue.acknowledge(try await queue.uploads())
        #expect(try await queue.uploads().map(\.id) == [first, second])
        if !isSameProcess { await queue.disconnect() }
        clock.advance(by: .seconds(-31_536_000))
        if !isSameProcess { queue = open() }
        try kept.end(try response(201))
        try await queue.handOver()
        try await queue.acknowledge(try await queue.uploads())
        #expect(try await queue.uploads().map(\.id) == [second])
        await queue.disconnect()
    }

    @Test func `a retry whose upload has a time of its own waits for it when the clock is right again`() async throws {
        let time = Date(timeIntervalSinceNow: 500_000)
        let first = queue(time: SteppedClock().time)
        _ = try await misdate(first, UploadConditions(notBefore: time))
        await first.disconnect()
        // Once, and not with each process.
        for _ in 0..<2 {
            let queue = queue()
            try await queue.handOver()
            let begin = try #require(kept.handedOver.first?.earliestBegin)
            #expect(kept.handedOver.map(\.id.number) == [3] && abs(begin.timeIntervalSince(time)) < 1)
            await queue.disconnect()
        }
    }

    @Test func `a retry for which the policy allows such a delay is left with the system`() async throws {
        let clock = SteppedClock()
        var policy = RetryPolicy.persistent
        policy.maximumRetryAfter = .seconds(40_000_000)
        let queue = queue(policy: policy, time: clock.time)
        _ = try await misdate(queue)
        clock.advance(by: .seconds(-31_536_000))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [2])
        await queue.disconnect()
    }

    @Test func `a sender in this process leaves another's retry to its session when the clock is right`() async throws {
        let server = try await ReceivingServer()
        let first = queue(time: SteppedClock().time)
        let id = try await misdate(first, to: server.uploads)
        await first.disconnect()
        let local = UploadQueue(directory: folder.url.appending(path: "queue"))
        let other = try await local.enqueue(QueuedForms.form(), to: server.uploads)
        try await local.run(UploadClient(), options: .draining)
        #expect(try await local.upload(other)?.state.isDone == true)
        let upload = try #require(try await local.upload(id))
        #expect(upload.state.isRetrying && upload.attempts == 2)
    }

    @Test func `a sender in this process sends a retry soon when the clock is right again`() async throws {
        let server = try await ReceivingServer()
        let clock = SteppedClock()
        let first = queue(time: clock.time)
        let id = try await first.withoutSession.enqueue(QueuedForms.form(), to: server.uploads)
        kept.refuseNext { throw CocoaError(.fileReadNoPermission) }
        try await first.handOver()
        await first.disconnect()
        #expect(kept.handedOver.isEmpty)
        clock.advance(by: .seconds(-31_536_000))
        let local = UploadQueue(
            directory: folder.url.appending(path: "queue"), session: nil, service: nil, time: clock.time)
        #expect(try await local.upload(id)?.state.isRetrying == true)
        let running = Task { try await local.run(UploadClient(), options: .draining) }
        // The queue before has slept too.
        await clock.waitForSleep(ofAtMost: .seconds(10))
        guard case .retrying(let due, _) = try await local.upload(id)?.state else { Issue.record("It is not."); return }
        #expect(abs(due.timeIntervalSince(clock.date) - 5) < 0.001)
        clock.advance(by: .seconds(31_600_000))
        try await running.value
        #expect(try await local.upload(id)?.state.isDone == true)
    }

    private static let firstEnds: [AttemptEnd] = [
        .failed(.connectionLost(to: URL(filePath: "/"), "it broke")), .interrupted(.cancelled),
        .response(status: 503, headerFields: HTTPFields(), url: nil, method: nil),
    ]

    /// The system repeats a request without a report, and loses the count of its bytes: what it has sent says nothing.
    @Test(arguments: firstEnds)
    func `a success counts, whatever became of the transfers before it`(end: AttemptEnd) async throws {
        let first = queue()
        let id = try await first.enqueue(QueuedForms.form(), to: Self.address())
        try await first.handOver()
        try kept.end(end)
        try await first.handOver()
        await first.disconnect()
        // The app's next process.
        let second = queue()
        try await second.handOver()
        try kept.end(try response(201))
        try await second.handOver()
        let upload = try #require(try await second.upload(id))
        #expect(upload.state.isDone && upload.attempts == 2, "\(upload.state)")
        await second.disconnect()
    }

    @Test func `after a 409, a form may have arrived that the system may have sent before`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        for attempt in 1...10 {
            try await queue.handOver()
            try kept.end(try response(409))
            try await queue.handOver()
            let upload = try #require(try await queue.upload(id))
            switch upload.state {
            case .retrying(_, let failure): #expect(failure.delivery.mayHaveArrived && attempt < 10)
            case .failed(let failure): #expect(failure.delivery.mayHaveArrived && failure.response?.status == 409)
            default: Issue.record("\(upload.state)")
            }
        }
        #expect(try await queue.upload(id)?.state.failure != nil)
        await queue.disconnect()
    }

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

    @Test func `an upload with a new address is done if the server at the old one has accepted it`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let attempt = try #require(kept.handedOver.first?.id)
        try await queue.retry(id, to: try #require(URL(string: "https://example.net/uploads")))
        try await queue.handOver()
        let url = try Self.address()
        kept.reportLate(
            attempt, Data("old".utf8),
            .response(status: 201, headerFields: [:], url: url, method: .post, requestURL: url))
        try await queue.handOver()
        let state = try #require(try await queue.upload(id)?.state)
        guard case .done(let response) = state else { Issue.record("\(state)"); return }
        #expect(response.body == Data("old".utf8) && kept.handedOver.isEmpty)
        await queue.disconnect()
    }

    @Test func `an upload that is retried by hand holds back those of its group that the system has`() async throws {
        let queue = queue()
        let first = try await queue.enqueue(
            QueuedForms.form("1"), to: Self.address(), conditions: UploadConditions(group: "g"))
        let second = try await queue.enqueue(
            QueuedForms.form("2"), to: Self.address(),
            conditions: UploadConditions(notBefore: Date(timeIntervalSinceNow: 3600), group: "g"))
        try await queue.cancel(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1 && kept.handedOver.first?.earliestBegin != nil)
        try await queue.retry(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1 && kept.handedOver.first?.earliestBegin == nil)
        try kept.end(try response(422))
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        #expect(try await queue.upload(second)?.state == .waiting)
        try await queue.cancel(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1 && kept.handedOver.first?.earliestBegin != nil)
        await queue.disconnect()
    }

    @Test func `an upload that was being sent when an earlier one was retried waits for it after a failure`()
        async throws
    {
        let queue = queue()
        let (first, second) = try await (
            queue.enqueue(QueuedForms.form("1"), to: Self.address(), conditions: UploadConditions(group: "g")),
            queue.enqueue(QueuedForms.form("2"), to: Self.address(), conditions: UploadConditions(group: "g"))
        )
        try await queue.cancel(first)
        try await queue.handOver()
        try await queue.retry(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 2)
        // The second one is still being sent, and fails before the first.
        let url = try Self.address()
        kept.endFirst(
            1, .response(status: 503, headerFields: [.retryAfter: "120"], url: url, method: .post))
        try await queue.handOver()
        #expect(try await queue.upload(second)?.state.isRetrying == true && kept.handedOver.count == 1)
        try kept.end(try response(422))
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        try await queue.cancel(first)
        try await queue.handOver()
        // It still waits as long as the server has said.
        let begin = try #require(kept.handedOver.first?.earliestBegin)
        #expect(begin > Date(timeIntervalSinceNow: 60) && kept.handedOver.count == 1)
        await queue.disconnect()
    }

    @Test func `the deadline of an upload that never began does not pass while it is held back`() async throws {
        let clock = SteppedClock()
        var policy = RetryPolicy.persistent
        policy.deadline = .seconds(3600)
        let queue = queue(policy: policy, time: clock.time)
        let first = try await queue.enqueue(
            QueuedForms.form("1"), to: Self.address(), conditions: UploadConditions(group: "g"))
        let second = try await queue.enqueue(
            QueuedForms.form("2"), to: Self.address(),
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(3600), group: "g"))
        try await queue.cancel(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        try await queue.retry(first)
        try await queue.handOver()
        clock.advance(by: .seconds(3 * 3600))
        try kept.end(try response(201))
        try await queue.handOver()
        #expect(try await queue.upload(second)?.state == .sending && kept.handedOver.count == 1)
        await queue.disconnect()
    }

    @Test func `an upload that is retried by hand before its time still waits for it`() async throws {
        let server = try await ReceivingServer()
        let clock = SteppedClock()
        let queue = UploadQueue(directory: folder.url, session: nil, service: nil, time: clock.time)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: server.uploads,
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(60)))
        try await queue.cancel(id)
        try await queue.retry(id)
        try await queue.run(UploadClient(), options: .draining)
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state == .waiting && upload.attempts == 0)
        clock.advance(by: .seconds(61))
        try await queue.run(UploadClient(), options: .draining)
        #expect(try await queue.upload(id)?.state.isDone == true)
    }

    @Test func `an upload that expires after it was retried has no response of an earlier failure`() async throws {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(expires: clock.date.addingTimeInterval(60)))
        try await queue.handOver()
        try kept.end(try response(401))
        try await queue.handOver()
        guard case .failed(let refusal) = try await queue.upload(id)?.state else { Issue.record("It has not."); return }
        #expect(refusal.response?.status == 401)
        try await queue.retry(id)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        guard case .failed(let failure) = try await queue.upload(id)?.state else { Issue.record("It has not."); return }
        #expect(failure.code == .expired && failure.response == nil)
        await queue.disconnect()
    }

    @Test func `an upload that expires between two attempts has no response of the first`() async throws {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(expires: clock.date.addingTimeInterval(60)))
        try await queue.handOver()
        try kept.end(try response(503))
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        try await queue.handOver()
        guard case .failed(let failure) = try await queue.upload(id)?.state else { Issue.record("It has not."); return }
        #expect(failure.code == .expired && failure.response == nil)
        await queue.disconnect()
    }

    // MARK: - What an app can show

    @Test func `an upload that was handed over before its time is being sent from its first bytes on`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(notBefore: Date(timeIntervalSinceNow: 3600)))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .waiting)
        let transfer = try #require(kept.handedOver.first)
        var changes = try await queue.store.changes.stream().makeAsyncIterator()
        _ = await changes.next()
        kept.report(.sent(transfer.id, bytes: 1))
        // The run of the queue looks at it again: the system may have another such upload now.
        _ = await changes.next()
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .sending)
        await queue.disconnect()
    }

    @Test func `a list of uploads follows whenever the system has sent more of one`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let transfer = try #require(kept.handedOver.first)
        var shown: [Int64] = []
        for try await uploads in queue.updates() {
            let bytes = try #require(uploads.first?.bytesSent)
            shown.append(bytes)
            if bytes == 20 { break }
            kept.report(.sent(transfer.id, bytes: bytes + 10))
        }
        #expect(shown == [0, 10, 20])
        await queue.disconnect()
    }

    @Test(arguments: [false, true])
    func `an upload that begins again shows nothing of what was sent before`(isCancelled: Bool) async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        kept.report(.sent(try #require(kept.handedOver.first?.id), bytes: 50))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.bytesSent == 50)
        if isCancelled {
            try await queue.cancel(id)
        } else {
            try kept.end(try response(422))
        }
        try await queue.handOver()
        try await queue.retry(id)
        try await queue.handOver()
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state == .sending && upload.bytesSent == 0)
        await queue.disconnect()
    }

    @Test func `an app can show that background updates are disabled, and what the server said`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        try kept.end(.interrupted(.updatesDisabled))
        try await queue.handOver()
        guard case .retrying(let due, let failure) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It is not retrying.")
        }
        #expect(
            failure.code == .backgroundUpdatesDisabled && failure.advice?.contains("Background App Refresh") == true)
        #expect(failure.delivery.mayHaveArrived && failure.response == nil && due > Date())
        #expect(failure.localizedMessage?.key == "UploadFailure.background-updates-disabled")
        try kept.end(
            .response(
                status: 422, headerFields: [.contentType: "text/plain", .location: "/help"], url: try Self.address(),
                method: .post))
        try await queue.handOver()
        guard case .failed(let refusal) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(refusal.code == .refused && refusal.response?.status == 422 && refusal.localizedMessage == nil)
        #expect(refusal.response?.headerFields[.location] == "/help" && refusal.response?.contentType == "text/plain")
        #expect(refusal.advice?.contains("refused a value") == true && refusal.message.contains("422"))
        try await queue.retry(id)
        #expect(try await queue.upload(id)?.state == .waiting)
        await queue.disconnect()
    }

    @Test func `a run ends with the reason if the system does not carry the session`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let running = Task { try await queue.run() }
        try await eventually { !kept.handedOver.isEmpty }
        kept.invalidate(.inUse)
        let error = await #expect(throws: UploadQueueError.self) { try await running.value }
        #expect(error?.code == .sessionInUse && error?.advice?.contains("of its own") == true)
        await queue.disconnect()
    }

    // MARK: - Queues that are made again

    /// An app may make its queue again before it has released the one before.
    @Test(arguments: [false, true])
    func `a queue that is made again gets the events, also if the one before is closed late`(
        isClosedLate: Bool
    ) async throws {
        let first = queue()
        let id = try await first.enqueue(QueuedForms.form(), to: Self.address())
        try await first.handOver()
        let second = queue()
        if isClosedLate {
            try await second.handOver()
            await first.disconnect()
        } else {
            await first.disconnect()
            try await second.handOver()
        }
        try kept.end(try response(201))
        try await second.handOver()
        #expect(try await second.upload(id)?.state.isDone == true)
        #expect(try await second.upload(id)?.attempts == 1)
        await second.disconnect()
    }

    @Test func `a queue says so whose session a later queue uses, and cannot send with it`() async throws {
        let first = queue()
        try await first.enqueue(QueuedForms.form(), to: Self.address())
        let running = Task { try await first.run() }
        try await eventually { !kept.handedOver.isEmpty }
        let second = queue()
        let error = await #expect(throws: UploadQueueError.self) { try await running.value }
        #expect(error?.code == .inUse && error?.message.contains("later queue") == true)
        await #expect(throws: (any Error).self) { try await first.handOver() }
        try await second.handOver()
        #expect(kept.handedOver.count == 1)
        await second.disconnect()
    }

    // MARK: - Uploads that are done

    @Test func `the latest uploads that the app knows to be done are listed, and all of them are counted`() async throws
    {
        var session = BackgroundSession(identifier: identifier)
        session.maximumConnectionsPerHost = 1
        let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))
        let time = QueueTime(date: { now.withLock { $0 } })
        let queue = UploadQueue(
            directory: folder.url, session: session, service: KeepingService(kept),
            retention: UploadRetention(maximumCount: 2, maximumAge: .seconds(1000)), time: time)
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<4 {
            ids.append(try await queue.enqueue(QueuedForms.form(), to: Self.address()))
            try await queue.handOver()
            try kept.end(try response(201))
            try await queue.handOver()
            #expect(try await queue.uploads().last?.state.isDone == true)
            try await queue.acknowledge(try await queue.uploads())
            now.withLock { $0 += 100 }
        }
        let waiting = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        #expect(try await queue.uploads().map(\.id) == [ids[2], ids[3], waiting])
        #expect(try await queue.doneCount == 4)
        // They become too old while nothing else is done.
        now.withLock { $0 += 850 }
        try await queue.store.sweep(at: time.date())
        #expect(try await queue.uploads().map(\.id) == [ids[3], waiting])
        try await queue.clear(.ended)
        try await queue.pause()
        #expect(try await queue.uploads().map(\.id) == [waiting])
        #expect(try await queue.doneCount == 4)
        await queue.disconnect()
    }

    private func response(_ status: Int) throws -> AttemptEnd {
        .response(status: status, headerFields: HTTPFields(), url: try Self.address(), method: .post)
    }
}
