import Foundation
import PostcardClient
import PostcardQueue
import PostcardTestSupport
import PostcardTransferDaemon
import Testing

/// The queue with a model of the system's transfer daemon.
@Suite(.timeLimit(.minutes(5))) struct TransferDaemonTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func outbox(_ options: TransferDaemon.Options = .init()) async throws -> Outbox {
        Outbox(directory: folder.url.appending(path: "queue"), daemon: try await TransferDaemon(options))
    }

    // MARK: - Events

    @Test(arguments: [false, true])
    func `events that come twice and late are settled once`(isEager: Bool) async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.duplicate = 1
        options.eventDelay = 0.005
        options.eager = isEager
        let outbox = try await outbox(options)
        let queue = try outbox.queue()
        for number in 0..<5 {
            try await queue.enqueue(Outbox.form("form \(number)", fileBytes: 200_000), to: server.uploads)
        }
        try await queue.run(endsWhenEmpty: true)
        let uploads = try queue.uploads()
        #expect(uploads.count == 5)
        #expect(uploads.allSatisfy { $0.state.isDone && $0.attempts == 1 && $0.bytesSent == $0.totalBytes })
        #expect(try await outbox.daemon.status()[.begun] == 5)
        let remains = try await server.end()
        #expect(remains.records.count == 5 && remains.unfinished.isEmpty)
    }

    @Test(arguments: [false, true])
    func `what ended while no process was there is settled by the next one`(isEager: Bool) async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.eager = isEager
        let outbox = try await outbox(options)
        _ = try await outbox.handOver(3, to: server.uploads)
        try await outbox.daemon.setNetwork(isUp: true)
        try await outbox.daemon.wait(for: .ended, atLeast: 3)
        let queue = try outbox.queue()
        #expect(try queue.uploads().allSatisfy { $0.state == .sending })
        try await queue.run(endsWhenEmpty: true)
        #expect(try queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 1 })
        #expect(try await outbox.daemon.status()[.begun] == 3)
        #expect(try await server.end().records.count == 3)
    }

    @Test func `a transfer that is still carried is not handed over again`() async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        _ = try await outbox.handOver(2, to: server.uploads)
        let queue = try outbox.queue()
        // It connects, finds both in progress, and only then are they sent.
        async let run: Void = queue.run(endsWhenEmpty: true)
        try await outbox.daemon.wait(for: .connects, atLeast: 2)
        try await outbox.daemon.setNetwork(isUp: true)
        try await run
        #expect(try queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 1 })
        #expect(try await outbox.daemon.status()[.begun] == 2)
        #expect(try await server.end().records.count == 2)
    }

    // MARK: - The user and the system

    @Test func `uploads that a force-quit cancelled go on when the user opens the app`() async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        let ids = try await outbox.handOver(3, to: server.uploads)
        let status = try await outbox.daemon.forceQuit()
        #expect(status[.cancelled] == 3)
        let queue = try outbox.queue()
        for id in ids { #expect(try queue.bodyExists(id)) }
        try await outbox.daemon.setNetwork(isUp: true)
        try await queue.run(endsWhenEmpty: true)
        #expect(try queue.uploads().allSatisfy { $0.state.isDone })
        #expect(try await server.end().records.count == 3)
    }

    @Test(arguments: [TransferDaemon.Loss.atOnce, .answered])
    func `a transfer that the system lost is sent again under the same key`(loss: TransferDaemon.Loss) async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        try await FaultProxy.run([], before: server.url) { proxy in
            _ = try await outbox.handOver(to: proxy.uploads)
            try await outbox.daemon.lose(loss)
            try await outbox.daemon.setNetwork(isUp: true)
            try await outbox.daemon.wait(for: .lost, atLeast: 1)
            let queue = try outbox.queue()
            try await queue.run(endsWhenEmpty: true)
            #expect(try queue.uploads().map(\.state.isDone) == [true])
            #expect(proxy.seen.count == (loss == .answered ? 2 : 1))
            #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
            #expect(proxy.seen.allSatisfy { $0["Idempotency-Key"] != nil })
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a broken connection is retried by the system, and the form is stored once`() async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.resourceTimeout = 60
        let outbox = try await outbox(options)
        try await FaultProxy.run([.answerLost, .reset(atByte: 100_000)], before: server.url) { proxy in
            let queue = try outbox.queue()
            try await queue.enqueue(Outbox.form("form", fileBytes: 200_000), to: proxy.uploads)
            try await queue.run(endsWhenEmpty: true)
            #expect(try queue.uploads().map(\.attempts) == [1])
            #expect(try queue.uploads().allSatisfy { $0.state.isDone })
            #expect(proxy.seen.count == 3)
        }
        #expect(try await outbox.daemon.status()[.retried] == 2)
        #expect(try await server.end().records.count == 1)
    }

    /// The app does not learn that the system has sent the form before.
    @Test func `a server that is still at work on the system's first try is asked again`() async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        try await FaultProxy.run([.answerLost, .answer(.init(409))], before: server.url) { proxy in
            let queue = try outbox.queue()
            try await queue.enqueue(Outbox.form("form"), to: proxy.uploads)
            try await queue.run(endsWhenEmpty: true)
            let states = try queue.uploads().map(\.state)
            #expect(states.map(\.isDone) == [true], "\(states)")
            #expect(proxy.seen.count == 3)
        }
        #expect(try await server.end().records.count == 1)
    }

    // MARK: - Redirects, which the system follows without asking

    @Test func `a redirect within the origin is followed, and the form is done`() async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        try await FaultProxy.run([.answer(.init(307, ["Location": "/uploads"]))], before: server.url) { proxy in
            let queue = try outbox.queue()
            try await queue.enqueue(Outbox.form("form"), to: proxy.url.appending(path: "moved"))
            try await queue.run(endsWhenEmpty: true)
            #expect(try queue.uploads().map(\.state.isDone) == [true])
            #expect(proxy.seen.map(\.path) == ["/moved", "/uploads"])
        }
        #expect(try await server.end().records.count == 1)
    }

    /// The system has sent the form elsewhere, or nothing of it: in neither case did the server that it was for take it.
    @Test(arguments: [303, 301, 307, 308])
    func `a redirect that drops the form or leaves the origin is a failure, and keeps the body`(
        status: Int
    ) async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        let location = status < 307 ? "/uploads" : server.uploads.absoluteString
        try await FaultProxy.run([.answer(.init(status, ["Location": location]))], before: server.url) { proxy in
            let queue = try outbox.queue()
            let id = try await queue.enqueue(Outbox.form("form"), to: proxy.url.appending(path: "elsewhere"))
            try await queue.run(endsWhenEmpty: true)
            let upload = try #require(try queue.uploads().first)
            #expect(upload.state.failure?.isEmpty == false, "\(upload.state)")
            #expect(upload.attempts == 1)
            #expect(try queue.bodyExists(id))
        }
        #expect(try await server.end().records.count == (status < 307 ? 0 : 1))
    }

    // MARK: - Failures

    @Test func `a body that vanished is a failure of that upload alone`() async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        let queue = try outbox.queue()
        let vanished = try await queue.enqueue(Outbox.form("form 1", fileBytes: 3_000_000), to: server.uploads)
        try await queue.enqueue(Outbox.form("form 2"), to: server.uploads)
        #expect(try removeFiles(ofAtLeast: 3_000_000) == 1)
        #expect(try !queue.bodyExists(vanished))
        try await queue.run(endsWhenEmpty: true)
        for upload in try queue.uploads() {
            if upload.id == vanished {
                #expect(upload.state.failure?.isEmpty == false, "\(upload.state)")
            } else {
                #expect(upload.state.isDone, "\(upload.state)")
            }
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a body that vanishes after it was handed over still arrives`() async throws {
        let server = try await ReceivingServer()
        let outbox = try await outbox()
        _ = try await outbox.handOver(to: server.uploads, fileBytes: 3_000_000)
        #expect(try removeFiles(ofAtLeast: 3_000_000) == 1)
        try await outbox.daemon.setNetwork(isUp: true)
        let queue = try outbox.queue()
        try await queue.run(endsWhenEmpty: true)
        #expect(try queue.uploads().map(\.state.isDone) == [true])
        #expect(try await server.end().records.count == 1)
    }

    /// Removes the large files of the queue's directory, and says how many there were.
    private func removeFiles(ofAtLeast bytes: Int) throws -> Int {
        let files = FileManager.default.enumerator(
            at: folder.url.appending(path: "queue"), includingPropertiesForKeys: [.fileSizeKey, .isRegularFileKey])
        let large = (files?.allObjects ?? []).compactMap { $0 as? URL }.filter { url in
            let values = try? url.resourceValues(forKeys: [.fileSizeKey, .isRegularFileKey])
            return values?.isRegularFile == true && values?.fileSize ?? 0 >= bytes
        }
        for file in large { try FileManager.default.removeItem(at: file) }
        return large.count
    }

    @Test func `a server that is not there is tried as often as the policy says, and the body is kept`() async throws {
        var options = TransferDaemon.Options()
        options.resourceTimeout = 0.1
        var outbox = try await outbox(options)
        outbox.retryPolicy.maximumAttempts = 2
        let queue = try outbox.queue()
        let id = try await queue.enqueue(Outbox.form("form"), to: try #require(URL(string: "http://127.0.0.1:1/")))
        try await queue.run(endsWhenEmpty: true)
        let upload = try #require(try queue.uploads().first)
        #expect(upload.state.failure?.isEmpty == false, "\(upload.state)")
        #expect(upload.attempts == 2)
        #expect(try queue.bodyExists(id))
        #expect(try await outbox.daemon.status()[.begun] == 2)
    }

    @Test func `a system without its daemon is an error that says so`() async throws {
        let service = DaemonTransferService(socket: folder.url.appending(path: "nothing").path)
        let error = await #expect(throws: DaemonFailure.self) { try await service.connect { _ in } }
        #expect(error?.description.contains("transfer daemon") == true)
        let directory = folder.url.appending(path: "queue")
        let queue = try UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString), service: service)
        await #expect(throws: (any Error).self) { try await queue.run() }
    }
}
