import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct BackgroundRunTests {
    private let folder: TemporaryFolder
    private let queue: UploadQueue

    init() throws {
        folder = try TemporaryFolder()
        queue = try UploadQueue(directory: folder.url.appending(path: "queue"))
    }

    private func uploads(rules: FormRules? = nil) async throws -> BackgroundUploads {
        try await BackgroundUploads(
            identifier: "test", directory: folder.url.appending(path: "background"), rules: rules)
    }

    /// What lies in the folder of the background uploads beside its lock.
    private var handedOver: [String] {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder.url.appending(path: "background").path)
                .filter { $0 != "lock" }
        }
    }

    /// Runs the queue until the uploads are as a test wants them, and then interrupts it.
    private func run(
        in uploads: BackgroundUploads, options: QueueOptions = QueueOptions(),
        until isReached: @Sendable ([QueuedUpload]) -> Bool
    ) async throws {
        let running = Task { [queue] in try await queue.run(in: uploads, options: options) }
        for try await list in queue.updates() where isReached(list) { break }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await Self.end(of: running) }
    }

    /// Waits until the proxy has some of the first upload.
    private func waitUntilUnderWay(to proxy: FaultProxy) async throws {
        for try await list in queue.updates() where list[0].bytesSent > 0 { break }
        await proxy.waitForBody(of: 1)
    }

    /// Waits for a run, which does not outlast a test that is out of time.
    private static func end(of running: Task<Void, any Error>) async throws {
        try await withTaskCancellationHandler {
            try await running.value
        } onCancel: {
            running.cancel()
        }
    }

    @Test func `a queue is emptied, and nothing of it is left in the background uploads`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 300_000)
        for index in 0..<5 { try queue.enqueue(QueuedForms.form("\(index)", file), to: server.uploads, files: .copied) }
        try FileManager.default.removeItem(at: file)
        let uploads = try await uploads()
        let own = try await uploads.add(QueuedForms.form("the app's own"), to: server.uploads)
        try await queue.run(in: uploads, options: QueueOptions.draining)
        for upload in try queue.uploads() {
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(response.status == 201 && response.body.contains(Data("a.jpg".utf8)))
            #expect(upload.bytesSent == upload.totalBytes && upload.attempts == 1)
        }
        #expect(try await uploads.response(of: own).status == .created)
        #expect(try handedOver == [own.uuidString])
        let copies = folder.url.appending(path: "queue/files").path
        #expect(try FileManager.default.contentsOfDirectory(atPath: copies).isEmpty)
        #expect(uploads.problems.isEmpty)
        await uploads.close()
        #expect(try await server.end().records.count == 6)
    }

    @Test func `an upload waits for a network that is not metered, and the system is told so, too`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.stall(atByte: 1)], before: server.url) { proxy in
            let id = try queue.enqueue(
                QueuedForms.form("photos", file), to: proxy.uploads,
                conditions: UploadConditions(needsUnmeteredNetwork: true))
            let uploads = try await uploads()
            var options = QueueOptions.draining
            options.isNetworkUnmetered = { false }
            try await queue.run(in: uploads, options: options)
            #expect(try queue.upload(id)?.state == .waiting)
            options.isNetworkUnmetered = { true }
            try await run(in: uploads, options: options) { $0[0].bytesSent > 0 }
            let manifest = folder.url.appending(path: "background/\(try handedOver[0])/manifest.json")
            #expect(try String(contentsOf: manifest, encoding: .utf8).contains("\"needsUnmeteredNetwork\" : true"))
            await uploads.close()
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `a group goes in its order, and one that failed holds it back`() async throws {
        let server = try await ReceivingServer()
        let missing = try folder.file("a.jpg", size: 10)
        let conditions = UploadConditions(group: "g")
        let first = try queue.enqueue(QueuedForms.form("1", missing), to: server.uploads, conditions: conditions)
        let second = try queue.enqueue(QueuedForms.form("2"), to: server.uploads, conditions: conditions)
        try FileManager.default.removeItem(at: missing)
        let uploads = try await uploads()
        try await queue.run(in: uploads, options: QueueOptions.draining)
        #expect(try queue.upload(second)?.state == .waiting)
        try queue.cancel(first)
        try await queue.run(in: uploads, options: QueueOptions.draining)
        #expect(try queue.upload(second)?.state.name == "done")
        await uploads.close()
    }

    @Test func `what cannot be sent or is refused is kept with its reason`() async throws {
        let server = try await ReceivingServer("--max-file", "1kB")
        let large = try folder.file("large.jpg", size: 100_000)
        let vanishing = try folder.file("b.jpg", size: 100)
        let changing = try folder.file("c.jpg", size: 100)
        let nobody = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let unreached = try queue.enqueue(QueuedForms.form("nobody"), to: nobody)
        let refused = try queue.enqueue(QueuedForms.form("large", large), to: server.uploads)
        let vanished = try queue.enqueue(QueuedForms.form("gone", vanishing), to: server.uploads)
        let changed = try queue.enqueue(QueuedForms.form("changed", changing), to: server.uploads)
        try FileManager.default.removeItem(at: vanishing)
        try Data(repeating: 2, count: 101).write(to: changing)
        let uploads = try await uploads()
        try await queue.run(in: uploads, options: QueueOptions.draining)
        for (id, attempts, reason) in [
            (unreached, 5, "127.0.0.1:1"), (refused, 1, "413"), (vanished, 1, "b.jpg"), (changed, 1, "c.jpg"),
        ] {
            let upload = try #require(try queue.upload(id))
            guard case .failed(let because) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(because.contains(reason))
            #expect(upload.attempts == attempts)
        }
        #expect(try handedOver.isEmpty)
        await uploads.close()
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `a server that is busy is asked again under the same key, and one that says no is not`() async throws {
        let server = try await ReceivingServer()
        try await FaultProxy.run(before: server.url) { request in
            switch request.number {
            case 0: .answer(Fault.Answer(503, ["Retry-After": "0"], body: "busy"))
            case 2: .answer(Fault.Answer(422, body: "no picture"))
            default: .none
            }
        } while: { proxy in
            let uploads = try await uploads()
            var options = QueueOptions.draining
            options.concurrency = 1
            let busy = try queue.enqueue(QueuedForms.form("1"), to: proxy.uploads)
            try await queue.run(in: uploads, options: options)
            let done = try #require(try queue.upload(busy))
            #expect(done.state.name == "done" && done.attempts == 2)
            #expect(proxy.seen.count == 2 && Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
            let refused = try queue.enqueue(QueuedForms.form("2"), to: proxy.uploads)
            try await queue.run(in: uploads, options: options)
            guard case .failed(let reason) = try queue.upload(refused)?.state else {
                Issue.record("A form that was refused has to fail.")
                return
            }
            #expect(reason.contains("422") && reason.contains("no picture"))
            #expect(try handedOver.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `so many are handed over at a time as there are places, and one that is cancelled makes room`()
        async throws
    {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let ids = try (0..<3).map { try queue.enqueue(QueuedForms.form("\($0)", file), to: proxy.uploads) }
            let uploads = try await uploads()
            let running = Task { [queue] in try await queue.run(in: uploads, options: QueueOptions(concurrency: 2)) }
            var updates = queue.updates().makeAsyncIterator()
            while let list = try await updates.next(), list.count(where: { $0.bytesSent > 0 }) < 2 {}
            #expect(uploads.uploads.count == 2)
            #expect(try queue.upload(ids[2])?.state == .waiting)
            try queue.cancel(ids[0])
            while let list = try await updates.next(), list[2].bytesSent == 0 {}
            #expect(try queue.upload(ids[0])?.state == .cancelled)
            #expect(uploads.uploads.count == 2)
            running.cancel()
            await #expect(throws: CancellationError.self) { try await Self.end(of: running) }
            #expect(try queue.uploads().map(\.state) == [.cancelled, .sending, .sending])
            await uploads.close()
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `one that is cancelled and retried at once is sent once`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run([.stall(atByte: 1)], before: server.url) { proxy in
            let id = try queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let uploads = try await uploads()
            let running = Task { [queue] in try await queue.run(in: uploads, options: QueueOptions.draining) }
            try await waitUntilUnderWay(to: proxy)
            try queue.cancel(id)
            try queue.retry(id)
            try await Self.end(of: running)
            let upload = try #require(try queue.upload(id))
            #expect(upload.state.name == "done" && upload.attempts == 2)
            #expect(proxy.seen.count == 2)
            #expect(try handedOver.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `an interrupted run leaves what it handed over, and a later one finds it`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.slow(bytesPerSecond: 400_000)], before: server.url) { proxy in
            let id = try queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let uploads = try await uploads()
            try await run(in: uploads) { $0[0].bytesSent > 0 }
            await proxy.waitForBody(of: 1)
            #expect(try queue.upload(id)?.state == .sending)
            try FileManager.default.removeItem(at: file)
            try await queue.run(in: uploads, options: QueueOptions.draining)
            let upload = try #require(try queue.upload(id))
            #expect(upload.state.name == "done" && upload.attempts == 1)
            #expect(proxy.seen.count == 1)
            #expect(try handedOver.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a client leaves alone what was handed over, until it is cancelled and retried`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.stall(atByte: 1)], before: server.url) { proxy in
            let id = try queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let uploads = try await uploads()
            try await run(in: uploads) { $0[0].bytesSent > 0 }
            await proxy.waitForBody(of: 1)
            let client = UploadClient(transport: AsyncHTTPTransport())
            try await queue.run(client, options: QueueOptions.draining)
            #expect(try queue.upload(id)?.state == .sending)
            #expect(proxy.seen.count == 1)
            try queue.cancel(id)
            try queue.retry(id)
            try await queue.run(client, options: QueueOptions.draining)
            #expect(try queue.upload(id)?.state.name == "done")
            try await queue.run(in: uploads, options: QueueOptions.draining)
            #expect(uploads.uploads.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `where the background uploads are closed the run ends and the form stays handed over`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.stall(atByte: 1)], before: server.url) { proxy in
            let id = try queue.enqueue(
                QueuedForms.form("1", file), to: proxy.uploads, headerFields: [.authorization: "Bearer abc"])
            let first = try await uploads()
            let running = Task { [queue] in try await queue.run(in: first) }
            try await waitUntilUnderWay(to: proxy)
            await first.close()
            let error = await #expect(throws: BackgroundUploadError.self) { try await Self.end(of: running) }
            #expect(error?.code == .closed)
            #expect(try queue.upload(id)?.state == .sending)
            // Its bytes are in the folder.
            try FileManager.default.removeItem(at: file)
            let second = try await uploads()
            try await queue.run(in: second, options: QueueOptions.draining)
            let upload = try #require(try queue.upload(id))
            #expect(upload.state.name == "done" && upload.attempts == 2)
            #expect(proxy.seen.map { $0["Authorization"] } == ["Bearer abc", "Bearer abc"])
            #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
            await second.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `one that is cancelled in the background uploads is cancelled in the queue`() async throws {
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.stall(atByte: 1)], before: server.url) { proxy in
            let id = try queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let uploads = try await uploads()
            let running = Task { [queue] in try await queue.run(in: uploads, options: QueueOptions.draining) }
            try await waitUntilUnderWay(to: proxy)
            try uploads.cancel(try #require(uploads.uploads.first).id)
            try await Self.end(of: running)
            #expect(try queue.upload(id)?.state == .cancelled)
            #expect(try handedOver.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.isEmpty)
    }
}
