import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// Uploads that are sent in this process.
@Suite(.timeLimit(.minutes(10))) struct LocalSenderTests {
    static var client: UploadClient { UploadClient(transport: AsyncHTTPTransport()) }

    /// The values of the field `name` in the server's records, oldest first.
    private static func received(by server: ReceivingServer) async throws -> [String] {
        struct Listing: Decodable {
            struct Record: Decodable {
                struct Field: Decodable { let value: String }
                let fields: [Field]
            }
            let uploads: [Record]
        }
        let ending = try await Program.run("curl", ["-s", server.uploads.absoluteString + "?limit=1000"])
        return try JSONDecoder().decode(Listing.self, from: ending.output).uploads.reversed().flatMap {
            $0.fields.map(\.value)
        }
    }

    @Test func `uploads are sent in order, and their bodies are removed`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 300_000)
        for index in 0..<5 {
            try await queue.enqueue(QueuedForms.form("\(index)", file), to: server.uploads)
        }
        try FileManager.default.removeItem(at: file)
        var options = QueueOptions.draining
        options.maximumConcurrentUploads = 1
        try await queue.run(Self.client, options: options)
        let uploads = try await queue.uploads()
        for upload in uploads {
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(response.status == 201)
            #expect(upload.bytesSent == upload.totalBytes && upload.attempts == 1)
        }
        #expect(try await Self.received(by: server) == ["0", "1", "2", "3", "4"])
        let bodies = folder.url.appending(path: "queue/bodies").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: bodies).isEmpty)
        #expect(try await server.end().records.count == 5)
    }

    @Test func `uploads with a higher priority are sent first, and groups in their order`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        try await queue.enqueue(QueuedForms.form("a"), to: server.uploads)
        try await queue.enqueue(QueuedForms.form("g1"), to: server.uploads, conditions: UploadConditions(group: "g"))
        try await queue.enqueue(
            QueuedForms.form("g2"), to: server.uploads, conditions: UploadConditions(priority: 8, group: "g"))
        try await queue.enqueue(QueuedForms.form("high"), to: server.uploads, conditions: UploadConditions(priority: 1))
        try await queue.enqueue(QueuedForms.form("b"), to: server.uploads)
        var options = QueueOptions.draining
        options.maximumConcurrentUploads = 1
        try await queue.run(Self.client, options: options)
        #expect(try await Self.received(by: server) == ["high", "a", "g1", "g2", "b"])
    }

    @Test func `an upload is sent when its time has come, and not before`() async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let clock = SteppedClock()
        let queue = UploadQueue(directory: folder.url, session: nil, service: nil, time: clock.time)
        let tomorrow = try await queue.enqueue(
            QueuedForms.form("tomorrow"), to: server.uploads,
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(86_400), priority: 9))
        let soon = try await queue.enqueue(
            QueuedForms.form("soon"), to: server.uploads,
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(60), priority: 9))
        let now = try await queue.enqueue(QueuedForms.form("now"), to: server.uploads)
        let running = Task {
            try await queue.run(Self.client, options: QueueOptions(pollInterval: nil))
        }
        try await queue.wait { $0[now]?.isDone == true }
        for id in [tomorrow, soon] { #expect(try await queue.upload(id)?.state == .waiting) }
        await clock.waitForSleeper()
        clock.advance(by: .seconds(61))
        try await queue.wait { $0[soon]?.isDone == true }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        let late = try #require(try await queue.upload(tomorrow))
        #expect(late.state == .waiting && late.attempts == 0)
        #expect(try await Self.received(by: server) == ["now", "soon"])
    }

    @Test func `an upload waits for a network that is not metered`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let id = try await queue.enqueue(
            QueuedForms.form("photos"), to: server.uploads, conditions: UploadConditions(networks: .unmetered))
        var options = QueueOptions.draining
        for path in [nil, NetworkPath(isExpensive: true), NetworkPath(isConstrained: true)] {
            options.networkPath = { path }
            try await queue.run(Self.client, options: options)
            #expect(try await queue.upload(id)?.state == .waiting)
        }
        options.networkPath = { NetworkPath() }
        try await queue.run(Self.client, options: options)
        #expect(try await queue.upload(id)?.state.name == "done")
    }

    @Test func `without a background session, its header fields are sent, and made again after a 401`() async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer("--token", "fresh")
        let calls = Mutex(0)
        var session = BackgroundSession(identifier: UUID().uuidString)
        session.headerFields = { _ in
            let number = calls.withLock { calls in
                calls += 1
                return calls
            }
            return [.authorization: number == 1 ? "Bearer stale" : "Bearer fresh"]
        }
        let queue = UploadQueue(directory: folder.url, session: session, service: nil)
        let id = try await queue.enqueue(QueuedForms.form(), to: server.uploads)
        try await queue.run(endsWhenEmpty: true)
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state.name == "done" && upload.attempts == 1, "\(upload.state)")
        #expect(calls.withLock { $0 } == 2)
    }

    @Test func `no attempt begins after the deadline, although no process was running before it`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let id = try await queue.enqueue(QueuedForms.form("late"), to: server.uploads)
        try await queue.failAnHourAgo(id, because: "There was no network.")
        var options = QueueOptions.draining
        options.retryPolicy.deadline = .seconds(1800)
        try await queue.run(Self.client, options: options)
        let reason = try #require(try await queue.upload(id)?.state.failure)
        #expect(
            reason.contains("1800 seconds after the first") && reason.hasSuffix("There was no network."), "\(reason)")
        // By hand it starts over.
        try await queue.retry(id)
        try await queue.run(Self.client, options: options)
        #expect(try await queue.upload(id)?.state.isDone == true)
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a retry that was being sent when its process ended is sent at once, also after the clock was set back`()
        async throws
    {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let clock = SteppedClock()
        let queue = UploadQueue(directory: folder.url, session: nil, service: nil, time: clock.time)
        let id = try await queue.enqueue(QueuedForms.form("retried"), to: server.uploads)
        try await queue.store.database.write { db in
            _ = try db.claimUpload(allowedBy: [0], excluding: [], at: clock.date)
            try db.delayUpload(
                id, until: clock.date.addingTimeInterval(3600),
                because: QueuedUpload.Failure(.connectionFailed, "There was no network."),
                as: .failure(conflicts: 0), mayHaveArrived: false)
            _ = try db.claimUpload(allowedBy: [0], excluding: [], at: clock.date.addingTimeInterval(7200))
        }
        try await queue.run(Self.client, options: QueueOptions.draining)
        #expect(try await queue.upload(id)?.state.isDone == true)
    }

    @Test func `the client's total timeout counts from the first attempt, also of an earlier process`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let id = try await queue.enqueue(QueuedForms.form("late"), to: server.uploads)
        try await queue.failAnHourAgo(id, because: "There was no network.")
        var client = Self.client
        client.timeouts.total = .seconds(1800)
        try await queue.run(client, options: QueueOptions.draining)
        let reason = try #require(try await queue.upload(id)?.state.failure)
        #expect(reason.contains("cannot finish within 1800 seconds"), "\(reason)")
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `an upload fails when it expires, also if nothing else happens`() async throws {
        /// Sends nothing until it is cancelled.
        struct Silent: UploadTransport {
            func send(
                _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
            ) async throws -> UploadResponse {
                let (stream, _) = AsyncStream.makeStream(of: Never.self)
                for await _ in stream {}
                throw CancellationError()
            }
        }
        let folder = try TemporaryFolder()
        let clock = SteppedClock()
        let queue = UploadQueue(directory: folder.url, session: nil, service: nil, time: clock.time)
        let address = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(
            QueuedForms.form(), to: address, conditions: UploadConditions(expires: clock.date.addingTimeInterval(60)))
        var client = UploadClient(transport: Silent())
        (client.timeouts.idle, client.timeouts.connect) = (nil, nil)
        let running = Task { [client] in try await queue.run(client, options: QueueOptions(pollInterval: nil)) }
        try await queue.wait { $0[id] == .sending }
        await clock.waitForSleeper()
        clock.advance(by: .seconds(61))
        try await queue.wait { $0[id]?.isEnded == true }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        guard case .failed(let failure) = try await queue.upload(id)?.state else {
            Issue.record("It has not failed.")
            return
        }
        #expect(failure.code == .expired)
    }

    @Test func `a failed upload holds back its group until it is cancelled`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let refused = try #require(URL(string: server.url.absoluteString + "/nowhere"))
        let first = try await queue.enqueue(
            QueuedForms.form("1"), to: refused, conditions: UploadConditions(group: "g"))
        let second = try await queue.enqueue(
            QueuedForms.form("2"), to: server.uploads, conditions: UploadConditions(group: "g"))
        try await queue.run(Self.client, options: QueueOptions.draining)
        #expect(try await queue.upload(first)?.state.name == "failed")
        #expect(try await queue.upload(second)?.state == .waiting)
        try await queue.cancel(first)
        try await queue.run(Self.client, options: QueueOptions.draining)
        #expect(try await queue.upload(second)?.state.name == "done")
    }

    @Test func `only one run at a time can send from a queue`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let other = UploadQueue(directory: folder.url)
        let error = await #expect(throws: UploadQueueError.self) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for queue in [queue, other] { group.addTask { try await queue.run(Self.client) } }
                try await group.next()
            }
        }
        #expect(error?.code == .inUse)
        // The lock ended with the run.
        await #expect(throws: Never.self) { try await other.run(Self.client, options: QueueOptions.draining) }
    }
}

extension UploadQueue {
    /// Waits until the states of the uploads meet a condition.
    func wait(until isMet: ([QueuedUpload.ID: QueuedUpload.State]) -> Bool) async throws {
        for try await uploads in updates()
        where isMet(Dictionary(uniqueKeysWithValues: uploads.map { ($0.id, $0.state) })) { return }
    }
}
