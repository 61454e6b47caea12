import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import PostcardQueue

/// Uploads that are sent in this process.
@Suite(.timeLimit(.minutes(10))) struct LocalSenderTests {
    private static var client: UploadClient { UploadClient(transport: AsyncHTTPTransport()) }

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

    @Test func `an upload is retried only if its failure may pass, and keeps the reason`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let server = try await ReceivingServer("--max-file", "1kB")
        let file = try folder.file("a.jpg", size: 100_000)
        let unreached = try await queue.enqueue(QueuedForms.form("unreached"), to: closed)
        let tooLarge = try await queue.enqueue(QueuedForms.form("large", file), to: server.uploads)
        let bodies = folder.url.appending(path: "queue/bodies")
        let known = try Set(FileManager.default.contentsOfDirectory(atPath: bodies.path))
        let removed = try await queue.enqueue(QueuedForms.form("removed", file), to: server.uploads)
        let changed = try await queue.enqueue(QueuedForms.form("changed", file), to: server.uploads)
        let new = try Set(FileManager.default.contentsOfDirectory(atPath: bodies.path)).subtracting(known).sorted()
        try FileManager.default.removeItem(at: bodies.appending(path: new[0]))
        try Data(repeating: 2, count: 101).write(to: bodies.appending(path: new[1]))
        try await queue.run(Self.client, options: QueueOptions.draining)
        for (id, attempts, reason) in [
            (unreached, 5, "127.0.0.1:1"), (tooLarge, 1, "413"), (removed, 1, "Enqueue it again"),
            (changed, 1, "Enqueue it again"),
        ] {
            let upload = try #require(try await queue.upload(id))
            guard case .failed(let failure) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(failure.message.contains(reason))
            #expect(upload.attempts == attempts)
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `an upload fails if the server accepts it before it has read the form`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 8 << 20)
        let early = Fault.earlyResponse(Fault.Response(200, body: "ok"), atByte: 100_000, .reading)
        try await FaultProxy.run([early, early], before: server.url) { proxy in
            let id = try await queue.enqueue(QueuedForms.form("early", file), to: proxy.uploads)
            var options = QueueOptions.draining
            options.resumption = nil
            // A retry by hand fails as well: no attempt can have delivered the form.
            for attempt in 1...2 {
                try await queue.run(Self.client, options: options)
                let upload = try #require(try await queue.upload(id))
                guard case .failed(let failure) = upload.state else { Issue.record("\(upload.state)"); return }
                #expect(failure.message.contains("before it had the whole form") && upload.attempts == attempt)
                try await queue.retry(id)
            }
            try await queue.run(Self.client, options: options)
            #expect(try await queue.upload(id)?.state.name == "done")
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `after a lost response, the server may respond before it has read the form again`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 8 << 20)
        let replay = Fault.earlyResponse(Fault.Response(201, body: "known"), atByte: 100_000, .reading)
        try await FaultProxy.run([.responseLost, replay], before: server.url) { proxy in
            let id = try await queue.enqueue(QueuedForms.form("lost", file), to: proxy.uploads)
            var options = QueueOptions.draining
            options.resumption = nil
            try await queue.run(Self.client, options: options)
            let upload = try #require(try await queue.upload(id))
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); return }
            #expect(response.body == Data("known".utf8) && upload.attempts == 2)
        }
        #expect(try await server.end().records.count == 1)
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

    @Test func `an interceptor that gives up ends the upload`() async throws {
        struct Strict: UploadInterceptor {
            func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision { .giveUp }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(QueuedForms.form("unreached"), to: closed)
        var client = Self.client
        client.interceptors = [Strict()]
        try await queue.run(client, options: QueueOptions.draining)
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state.failure?.contains("127.0.0.1:1") == true && upload.attempts == 1, "\(upload.state)")
    }

    @Test(arguments: ["before the upload", "after it"])
    func `an upload whose interceptor fails is sent later`(moment: String) async throws {
        /// Has no network to get a token.
        struct Offline: UploadInterceptor {
            let moment: String

            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                if moment == "before the upload" { throw URLError(.notConnectedToInternet) }
            }

            func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
                throw URLError(.notConnectedToInternet)
            }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(QueuedForms.form("unsent"), to: closed)
        var client = Self.client
        client.interceptors = [Offline(moment: moment)]
        let running = Task { [client] in try await queue.run(client) }
        var failure: QueuedUpload.Failure?
        for try await uploads in queue.updates() {
            guard let state = uploads.first(where: { $0.id == id })?.state else { continue }
            if case .retrying(_, let latest) = state { failure = latest }
            guard failure == nil, !state.isEnded else { break }
        }
        running.cancel()
        _ = await running.result
        #expect(failure?.message.contains(". An interceptor failed: ") == true, "\(String(describing: failure))")
        #expect(failure?.code == .interceptorFailed && failure?.delivery.mayHaveArrived == false)
    }

    @Test func `an upload may have arrived if its interceptor fails after a lost response`() async throws {
        /// Has no network any longer when it is to make a second request.
        struct Offline: UploadInterceptor {
            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                if attempt > 1 { throw URLError(.notConnectedToInternet) }
            }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { request in
            // The form is sent to an upload resource.
            (request["Content-Length"].flatMap(Int.init) ?? 0) > 1_000_000 ? .responseLost : .none
        } while: { proxy in
            let id = try await queue.enqueue(QueuedForms.form("lost", file), to: proxy.uploads)
            var client = Self.client
            client.interceptors = [Offline()]
            var options = QueueOptions.draining
            options.retryPolicy.maximumAttempts = 1
            options.resumption?.retryPolicy.firstDelay = .milliseconds(1)
            try await queue.run(client, options: options)
            guard case .failed(let failure) = try await queue.upload(id)?.state else {
                Issue.record("It has not failed.")
                return
            }
            #expect(failure.code == .interceptorFailed && failure.delivery.mayHaveArrived, "\(failure)")
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `the server keeps what it has of a paused upload, whatever becomes of cancelled ones`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 2_000_000)
        } while: { proxy in
            let id = try await queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            var options = QueueOptions()
            options.resumption = ResumptionPolicy(deletesCancelledUploads: true)
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            for try await uploads in queue.updates() where uploads.contains(where: { $0.bytesSent > 1_000_000 }) {
                break
            }
            try await queue.pause(id)
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            let resource = try #require(try await queue.store.database.read { try $0.row(id) }?.resource)
            let ending = try await Program.run(
                "curl", ["-sI", "-H", "Upload-Draft-Interop-Version: 8", resource.absoluteString])
            let head = String(decoding: ending.output, as: UTF8.self)
            #expect(head.hasPrefix("HTTP/1.1 204"), "\(head)")
        }
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

    @Test func `an upload goes back into the queue when the run is cancelled, whatever its interceptor then throws`()
        async throws
    {
        /// Waits for a token, as if with URLSession.
        struct Waiting: UploadInterceptor {
            let begun: AsyncStream<Void>.Continuation

            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                begun.yield()
                do { try await Task.sleep(for: .seconds(600)) } catch { throw URLError(.cancelled) }
            }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(QueuedForms.form("unsent"), to: closed)
        let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
        var client = Self.client
        client.interceptors = [Waiting(begun: continuation)]
        let running = Task { [client] in try await queue.run(client) }
        for await _ in begun { break }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(try await queue.upload(id)?.state == .waiting)
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

    @Test func `an upload stops when it is cancelled, and goes back into the queue when the run is`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let cancelled = try await queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let interrupted = try await queue.enqueue(QueuedForms.form("2", file), to: proxy.uploads)
            let running = Task { try await queue.run(Self.client) }
            for try await uploads in queue.updates()
            where uploads.allSatisfy({ $0.state == .sending && $0.bytesSent > 0 }) { break }
            try await queue.cancel(cancelled)
            try await queue.wait { $0[cancelled] == .cancelled }
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            #expect(try await queue.upload(cancelled)?.state == .cancelled)
            #expect(try await queue.upload(interrupted)?.state == .waiting)
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `a form of which all was sent when the run is cancelled is asked about, if the policy says so`()
        async throws
    {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.bin", size: 50_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let whole = try await queue.enqueue(QueuedForms.form("1"), to: proxy.uploads)
            let half = try await queue.enqueue(QueuedForms.form("2", file), to: proxy.uploads)
            var options = QueueOptions()
            options.retryPolicy.repeatsUnclear = false
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            for try await uploads in queue.updates() {
                let sent = Dictionary(uniqueKeysWithValues: uploads.map { ($0.id, $0.fraction) })
                if sent[whole] == 1, let sent = sent[half], sent > 0 { break }
            }
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            #expect(try await queue.upload(half)?.state == .waiting)
            guard case .failed(let failure) = try await queue.upload(whole)?.state else {
                Issue.record("It would be sent twice.")
                return
            }
            #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
        }
        _ = try await server.end()
    }

    @Test(arguments: [true, false])
    func `a form of which all was sent when it is paused is asked about, if the policy says so`(repeats: Bool)
        async throws
    {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let id = try await queue.enqueue(QueuedForms.form("1"), to: proxy.uploads)
            var options = QueueOptions()
            options.retryPolicy.repeatsUnclear = repeats
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            for try await uploads in queue.updates() where uploads.first?.fraction == 1 { break }
            try await queue.pause(id)
            if !repeats {
                try await queue.wait { $0[id]?.name == "failed" }
                guard case .failed(let failure) = try await queue.upload(id)?.state else { return }
                #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
            }
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            if repeats { #expect(try await queue.upload(id)?.state == .paused) }
        }
        _ = try await server.end()
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
