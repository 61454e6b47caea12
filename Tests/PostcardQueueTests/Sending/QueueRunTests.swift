import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct QueueRunTests {
    private static var client: UploadClient { UploadClient(transport: AsyncHTTPTransport()) }

    /// The values of the field `name` of every record, the first that came first.
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

    @Test func `a queue is emptied in order, copies included`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 300_000)
        for index in 0..<5 {
            try await queue.enqueue(QueuedForms.form("\(index)", file), to: server.uploads)
        }
        try FileManager.default.removeItem(at: file)
        var options = QueueOptions.draining
        options.concurrency = 1
        try await queue.run(Self.client, options: options)
        let uploads = try queue.uploads()
        for upload in uploads {
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(response.status == 201)
            #expect(upload.bytesSent == upload.totalBytes && upload.attempts == 1)
        }
        #expect(try await Self.received(by: server) == ["0", "1", "2", "3", "4"])
        let copies = folder.url.appending(path: "queue/bodies").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: copies).isEmpty)
        #expect(try await server.end().records.count == 5)
    }

    @Test func `higher priorities go first, and groups in their order`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        try await queue.enqueue(QueuedForms.form("a"), to: server.uploads)
        try await queue.enqueue(QueuedForms.form("g1"), to: server.uploads, conditions: UploadConditions(group: "g"))
        try await queue.enqueue(
            QueuedForms.form("g2"), to: server.uploads, conditions: UploadConditions(priority: 8, group: "g"))
        try await queue.enqueue(QueuedForms.form("high"), to: server.uploads, conditions: UploadConditions(priority: 1))
        try await queue.enqueue(QueuedForms.form("b"), to: server.uploads)
        var options = QueueOptions.draining
        options.concurrency = 1
        try await queue.run(Self.client, options: options)
        #expect(try await Self.received(by: server) == ["high", "a", "g1", "g2", "b"])
    }

    @Test func `an upload waits for its time, and is sent when that has come`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let start = Date()
        let tomorrow = try await queue.enqueue(
            QueuedForms.form("tomorrow"), to: server.uploads,
            conditions: UploadConditions(notBefore: start.addingTimeInterval(86_400), priority: 9))
        let soon = try await queue.enqueue(
            QueuedForms.form("soon"), to: server.uploads,
            conditions: UploadConditions(notBefore: start.addingTimeInterval(2), priority: 9))
        let now = try await queue.enqueue(QueuedForms.form("now"), to: server.uploads)
        let running = Task { try await queue.run(Self.client) }
        for try await uploads in queue.updates() {
            let states = Dictionary(uniqueKeysWithValues: uploads.map { ($0.id, $0.state) })
            // Nothing else makes the queue send it.
            if states[soon] != .waiting { #expect(Date() >= start.addingTimeInterval(2)) }
            if states[soon]?.name == "done", states[now]?.name == "done" { break }
        }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        let late = try #require(try queue.upload(tomorrow))
        #expect(late.state == .waiting && late.attempts == 0)
        #expect(try await Self.received(by: server).sorted() == ["now", "soon"])
    }

    @Test func `an upload waits for a network that is not metered`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let id = try await queue.enqueue(
            QueuedForms.form("photos"), to: server.uploads, conditions: UploadConditions(networks: .unmetered))
        var options = QueueOptions.draining
        for path in [nil, NetworkPath(isExpensive: true), NetworkPath(isConstrained: true)] {
            options.networkPath = { path }
            try await queue.run(Self.client, options: options)
            #expect(try queue.upload(id)?.state == .waiting)
        }
        options.networkPath = { NetworkPath() }
        try await queue.run(Self.client, options: options)
        #expect(try queue.upload(id)?.state.name == "done")
    }

    @Test func `a failure that may pass is tried again, one that does not is kept with its reason`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url.appending(path: "queue"))
        let nobody = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let server = try await ReceivingServer("--max-file", "1kB")
        let file = try folder.file("a.jpg", size: 100_000)
        let unreached = try await queue.enqueue(QueuedForms.form("nobody"), to: nobody)
        let tooLarge = try await queue.enqueue(QueuedForms.form("large", file), to: server.uploads)
        let bodies = folder.url.appending(path: "queue/bodies")
        let known = try Set(FileManager.default.contentsOfDirectory(atPath: bodies.path))
        let vanished = try await queue.enqueue(QueuedForms.form("gone", file), to: server.uploads)
        let changed = try await queue.enqueue(QueuedForms.form("changed", file), to: server.uploads)
        let new = try Set(FileManager.default.contentsOfDirectory(atPath: bodies.path)).subtracting(known).sorted()
        try FileManager.default.removeItem(at: bodies.appending(path: new[0]))
        try Data(repeating: 2, count: 101).write(to: bodies.appending(path: new[1]))
        try await queue.run(Self.client, options: QueueOptions.draining)
        for (id, attempts, reason) in [
            (unreached, 5, "127.0.0.1:1"), (tooLarge, 1, "413"), (vanished, 1, "Enqueue it again"),
            (changed, 1, "Enqueue it again"),
        ] {
            let upload = try #require(try queue.upload(id))
            guard case .failed(let because) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(because.contains(reason))
            #expect(upload.attempts == attempts)
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `an upload whose server answers before it has the form is kept, and not tried again`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 8 << 20)
        let early = Fault.earlyAnswer(Fault.Answer(200, body: "ok"), atByte: 100_000, .reading)
        try await FaultProxy.run([early, early], before: server.url) { proxy in
            let id = try await queue.enqueue(QueuedForms.form("early", file), to: proxy.uploads)
            var options = QueueOptions.draining
            options.resumption = nil
            // Retried by hand, it fails again: no attempt can have delivered it.
            for attempt in 1...2 {
                try await queue.run(Self.client, options: options)
                let upload = try #require(try queue.upload(id))
                guard case .failed(let reason) = upload.state else { Issue.record("\(upload.state)"); return }
                #expect(reason.contains("before it had the whole form") && upload.attempts == attempt)
                try queue.retry(id)
            }
            try await queue.run(Self.client, options: options)
            #expect(try queue.upload(id)?.state.name == "done")
        }
        #expect(try await server.end().records.count == 1)
    }

    /// How a server answers a form whose key it knows: before it has read the form again.
    private static let replay = Fault.earlyAnswer(Fault.Answer(201, body: "known"), atByte: 100_000, .reading)

    private static func expectReplay(_ queue: UploadQueue, _ id: QueuedUpload.ID) throws {
        let upload = try #require(try queue.upload(id))
        guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); return }
        #expect(response.body == Data("known".utf8) && upload.attempts == 2)
    }

    @Test func `after a lost response, the server may answer before it has read the form again`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 8 << 20)
        try await FaultProxy.run([.answerLost, Self.replay], before: server.url) { proxy in
            let id = try await queue.enqueue(QueuedForms.form("lost", file), to: proxy.uploads)
            var options = QueueOptions.draining
            options.resumption = nil
            try await queue.run(Self.client, options: options)
            try Self.expectReplay(queue, id)
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `after a process was killed, the server may answer before it has read the form again`() async throws {
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue")
        let queue = try UploadQueue(directory: directory)
        let server = try await ReceivingServer()
        let form = QueuedForms.form("killed", try folder.file("a.jpg", size: 8 << 20))
        let length = Int(try #require(try form.layout().contentLength))
        let posts = Mutex(0)
        try await FaultProxy.run(before: server.url) { request in
            // A server that does not resume uploads.
            guard request.method == "POST" else { return .answer(Fault.Answer(404)) }
            posts.withLock { $0 += 1 }
            return posts.withLock { $0 } == 1 ? .stall(atByte: length) : Self.replay
        } while: { proxy in
            let id = try await queue.enqueue(form, to: proxy.uploads)
            let options = ["queue", "run", "--drain", "--queue", directory.path]
            let sender = try RunningProgram(options)
            await proxy.waitForBody(of: length)
            sender.kill()
            #expect(try await Program.run(options).status == 0)
            try Self.expectReplay(queue, id)
        }
    }

    @Test func `a failed upload holds back its group until it is cancelled`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let refused = try #require(URL(string: server.url.absoluteString + "/nowhere"))
        let first = try await queue.enqueue(
            QueuedForms.form("1"), to: refused, conditions: UploadConditions(group: "g"))
        let second = try await queue.enqueue(
            QueuedForms.form("2"), to: server.uploads, conditions: UploadConditions(group: "g"))
        try await queue.run(Self.client, options: QueueOptions.draining)
        #expect(try queue.upload(first)?.state.name == "failed")
        #expect(try queue.upload(second)?.state == .waiting)
        try queue.cancel(first)
        try await queue.run(Self.client, options: QueueOptions.draining)
        #expect(try queue.upload(second)?.state.name == "done")
    }

    @Test func `one that is cancelled on its way is ended, and one that is interrupted goes back`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let cancelled = try await queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let interrupted = try await queue.enqueue(QueuedForms.form("2", file), to: proxy.uploads)
            let running = Task { try await queue.run(Self.client) }
            var updates = queue.updates().makeAsyncIterator()
            while let uploads = try await updates.next(),
                !uploads.allSatisfy({ $0.state == .sending && $0.bytesSent > 0 })
            {}
            try queue.cancel(cancelled)
            while let uploads = try await updates.next(), !uploads.contains(where: { $0.state == .cancelled }) {}
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            #expect(try queue.upload(cancelled)?.state == .cancelled)
            #expect(try queue.upload(interrupted)?.state == .waiting)
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `two do not send from one queue`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let other = try UploadQueue(directory: folder.url)
        let error = await #expect(throws: UploadQueueError.self) {
            try await withThrowingTaskGroup(of: Void.self) { group in
                for queue in [queue, other] { group.addTask { try await queue.run(Self.client) } }
                try await group.next()
            }
        }
        #expect(error?.code == .inUse)
        try await other.run(Self.client, options: QueueOptions.draining)
    }

    @Test func `the list follows the queue`() async throws {
        let folder = try TemporaryFolder()
        let queue = try UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let list = await UploadQueueList(queue)
        let following = Task { await list.follow() }
        try await queue.enqueue(QueuedForms.form("1"), to: server.uploads)
        try await queue.run(Self.client, options: QueueOptions.draining)
        while await !list.uploads.contains(where: { $0.state.name == "done" }) {
            try Task.checkCancellation()
            await Task.yield()
        }
        following.cancel()
        await following.value
        #expect(await list.error == nil)
    }
}
