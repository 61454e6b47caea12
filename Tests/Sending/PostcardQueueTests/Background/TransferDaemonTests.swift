import Foundation
import HTTPTypes
import PostcardClient
import PostcardQueue
import PostcardTestSupport
import PostcardTransferDaemon
import Synchronization
import Testing

/// The queue with a model of the system's transfer daemon.
@Suite(.timeLimit(.minutes(10))) struct TransferDaemonTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func app(_ options: TransferDaemon.Options = .init()) async throws -> SimulatedApp {
        SimulatedApp(directory: folder.url.appending(path: "queue"), daemon: try await TransferDaemon(options))
    }

    // MARK: - Events

    @Test(arguments: [false, true])
    func `events that arrive twice and late are settled once`(isEager: Bool) async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.duplicate = 1
        options.eventDelay = 0.005
        options.eager = isEager
        let app = try await app(options)
        let queue = app.queue()
        for number in 0..<5 {
            try await queue.enqueue(SimulatedApp.form("form \(number)", fileBytes: 200_000), to: server.uploads)
        }
        try await queue.run(endsWhenEmpty: true)
        let uploads = try await queue.uploads()
        #expect(uploads.count == 5)
        #expect(uploads.allSatisfy { $0.state.isDone && $0.attempts == 1 && $0.bytesSent == $0.totalBytes })
        #expect(try await app.daemon.status()[.handedOver] == 5)
        let remains = try await server.end()
        #expect(remains.records.count == 5 && remains.unfinished.isEmpty)
    }

    @Test(arguments: [false, true])
    func `transfers that ended while no process ran are settled by the next one`(isEager: Bool) async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.eager = isEager
        let app = try await app(options)
        _ = try await app.handOver(3, to: server.uploads)
        try await app.daemon.setNetwork(isUp: true)
        try await app.daemon.wait(for: .ended, atLeast: 3)
        let queue = app.queue()
        #expect(try await queue.uploads().allSatisfy { $0.state == .sending })
        try await queue.run(endsWhenEmpty: true)
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 1 })
        #expect(try await app.daemon.status()[.handedOver] == 3)
        #expect(try await server.end().records.count == 3)
    }

    @Test func `a transfer in progress is not handed over again`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        _ = try await app.handOver(2, to: server.uploads)
        let queue = app.queue()
        // They are sent after the queue has connected and found both.
        async let run: Void = queue.run(endsWhenEmpty: true)
        try await app.daemon.wait(for: .connects, atLeast: 2)
        try await app.daemon.setNetwork(isUp: true)
        try await run
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 1 })
        #expect(try await app.daemon.status()[.handedOver] == 2)
        #expect(try await server.end().records.count == 2)
    }

    // MARK: - The user and the system

    @Test func `uploads that a force-quit cancelled are sent when the user opens the app`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        let ids = try await app.handOver(3, to: server.uploads)
        let status = try await app.daemon.forceQuit()
        #expect(status[.cancelled] == 3)
        let queue = app.queue()
        for id in ids { #expect(try await queue.bodyExists(id)) }
        try await app.daemon.setNetwork(isUp: true)
        try await queue.run(endsWhenEmpty: true)
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone })
        #expect(try await server.end().records.count == 3)
    }

    @Test(arguments: [
        (TransferDaemon.CancellationReason.updatesDisabled, UploadError.Code.backgroundUpdatesDisabled),
        (.insufficientResources, .insufficientResources),
    ])
    func `uploads that the system cancelled are sent again later, and say why they wait`(
        reason: TransferDaemon.CancellationReason, code: UploadError.Code
    ) async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        _ = try await app.handOver(2, to: server.uploads)
        try await app.daemon.cancelAll(reason)
        // The time until the next attempt does not pass before the test has looked.
        var frozen = app
        let date = frozen.time.date()
        frozen.time.date = { date }
        let queue = frozen.queue()
        try await app.process(queue) { [daemon = app.daemon] in
            try await daemon.wait(for: .handedOver, atLeast: 4)
        }
        for upload in try await queue.uploads() {
            guard case .retrying(_, let failure) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(failure.code == code)
        }
        try await app.daemon.setNetwork(isUp: true)
        try await app.queue().run(endsWhenEmpty: true)
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 2 })
        #expect(try await server.end().records.count == 2)
    }

    @Test func `a session that the system ends is made again, and its uploads are sent with it`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        try await app.daemon.setNetwork(isUp: false)
        let queue = app.queue()
        for number in 0..<3 { try await queue.enqueue(SimulatedApp.form("form \(number)"), to: server.uploads) }
        async let run: Void = queue.run(endsWhenEmpty: true)
        try await app.daemon.wait(for: .handedOver, atLeast: 3)
        try await app.daemon.invalidate()
        try await app.daemon.wait(for: .handedOver, atLeast: 6)
        try await app.daemon.setNetwork(isUp: true)
        try await run
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 2 })
        let status = try await app.daemon.status()
        #expect(status[.connects] == 2 && status.failures == [])
        #expect(try await server.end().records.count == 3)
    }

    @Test func `an upload that begins later has header fields that are made then`() async throws {
        let server = try await ReceivingServer()
        let count = Mutex(0)
        var options = TransferDaemon.Options()
        // However busy the machine is.
        options.requestPatience = 100
        var app = try await app(options)
        app.headerFields = { _ in
            let number = count.withLock { count in
                count += 1
                return count
            }
            return [.authorization: "Bearer \(number)"]
        }
        try await FaultProxy.run([], before: server.url) { [app] proxy in
            let queue = app.queue()
            let later = FastTime.time.date().addingTimeInterval(100_000)
            try await queue.enqueue(
                SimulatedApp.form("form"), to: proxy.uploads, conditions: UploadConditions(notBefore: later))
            async let run: Void = queue.run(endsWhenEmpty: true)
            try await app.daemon.wait(for: .handedOver, atLeast: 1)
            try await app.daemon.beginDelayed()
            try await run
            #expect(try await queue.uploads().map(\.state.isDone) == [true])
            #expect(proxy.seen.map { $0["Authorization"] } == ["Bearer 2"])
        }
        #expect(try await app.daemon.status()[.asked] == 1)
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a hundred forms arrive although the system stalls with more than twenty`() async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.stallsAbove = 20
        var app = try await app(options)
        app.maximumOpenUploads = 20
        try await app.daemon.setNetwork(isUp: false)
        let queue = app.queue()
        for number in 0..<100 { try await queue.enqueue(SimulatedApp.form("form \(number)"), to: server.uploads) }
        async let run: Void = queue.run(endsWhenEmpty: true)
        try await app.daemon.wait(for: .handedOver, atLeast: 20)
        try await app.daemon.setNetwork(isUp: true)
        try await run
        #expect(try await queue.doneCount == 100)
        #expect(try await app.daemon.status()[.mostOpen] == 20)
        #expect(try await server.end().records.count == 100)
    }

    /// The system repeats a request and does not report that. An honest server has the form and need not read it again.
    @Test func `an early success counts after a repetition by the system`() async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        // Longer than a busy machine takes.
        options.resourceTimeout = 600
        let app = try await app(options)
        let early = Fault.earlyResponse(Fault.Response(201, body: "known"), atByte: 100_000, .reading)
        try await FaultProxy.run([.responseLost, early], before: server.url) { proxy in
            let queue = app.queue()
            try await queue.enqueue(SimulatedApp.form("form", fileBytes: 8 << 20), to: proxy.uploads)
            try await queue.run(endsWhenEmpty: true)
            let upload = try #require(try await queue.uploads().first)
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); return }
            #expect(response.body == Data("known".utf8) && upload.attempts == 1)
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test(arguments: [TransferDaemon.Loss.atOnce, .answered])
    func `a transfer that the system lost is sent again with the same key`(loss: TransferDaemon.Loss) async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        try await FaultProxy.run([], before: server.url) { proxy in
            _ = try await app.handOver(to: proxy.uploads)
            try await app.daemon.lose(loss)
            try await app.daemon.setNetwork(isUp: true)
            try await app.daemon.wait(for: .lost, atLeast: 1)
            let queue = app.queue()
            try await queue.run(endsWhenEmpty: true)
            #expect(try await queue.uploads().map(\.state.isDone) == [true])
            #expect(proxy.seen.count == (loss == .answered ? 2 : 1))
            #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
            #expect(proxy.seen.allSatisfy { $0["Idempotency-Key"] != nil })
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a broken connection is retried by the system, and the form is stored once`() async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        // Longer than a busy machine takes.
        options.resourceTimeout = 600
        let app = try await app(options)
        try await FaultProxy.run([.responseLost, .reset(atByte: 100_000)], before: server.url) { proxy in
            let queue = app.queue()
            try await queue.enqueue(SimulatedApp.form("form", fileBytes: 200_000), to: proxy.uploads)
            try await queue.run(endsWhenEmpty: true)
            #expect(try await queue.uploads().map(\.attempts) == [1])
            #expect(try await queue.uploads().allSatisfy { $0.state.isDone })
            #expect(proxy.seen.count == 3)
        }
        #expect(try await app.daemon.status()[.retried] == 2)
        #expect(try await server.end().records.count == 1)
    }

    /// The system does not report that it has sent the form before.
    @Test func `an upload is retried if the server is still processing the system's first attempt`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        try await FaultProxy.run([.responseLost, .response(.init(409))], before: server.url) { proxy in
            let queue = app.queue()
            try await queue.enqueue(SimulatedApp.form("form"), to: proxy.uploads)
            try await queue.run(endsWhenEmpty: true)
            let states = try await queue.uploads().map(\.state)
            #expect(states.map(\.isDone) == [true], "\(states)")
            #expect(proxy.seen.count == 3)
        }
        #expect(try await server.end().records.count == 1)
    }

    // MARK: - Redirects, which the system follows without asking

    @Test func `a redirect within the origin is followed, and the form is done`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        try await FaultProxy.run([.response(.init(307, ["Location": "/uploads"]))], before: server.url) { proxy in
            let queue = app.queue()
            try await queue.enqueue(SimulatedApp.form("form"), to: proxy.url.appending(path: "moved"))
            try await queue.run(endsWhenEmpty: true)
            #expect(try await queue.uploads().map(\.state.isDone) == [true])
            #expect(proxy.seen.map(\.path) == ["/moved", "/uploads"])
        }
        #expect(try await server.end().records.count == 1)
    }

    /// The system sent the form elsewhere or not at all, so the right server did not accept it.
    @Test(arguments: [303, 301, 307, 308])
    func `a redirect that drops the form or leaves the origin fails the upload and keeps its body`(
        status: Int
    ) async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        let location = status < 307 ? "/uploads" : server.uploads.absoluteString
        try await FaultProxy.run([.response(.init(status, ["Location": location]))], before: server.url) { proxy in
            let queue = app.queue()
            let id = try await queue.enqueue(SimulatedApp.form("form"), to: proxy.url.appending(path: "elsewhere"))
            try await queue.run(endsWhenEmpty: true)
            let upload = try #require(try await queue.uploads().first)
            #expect(upload.state.failure?.isEmpty == false, "\(upload.state)")
            #expect(upload.attempts == 1)
            #expect(try await queue.bodyExists(id))
        }
        #expect(try await server.end().records.count == (status < 307 ? 0 : 1))
    }

    // MARK: - Failures

    @Test func `a missing body fails only its own upload`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        let queue = app.queue()
        // Otherwise it may be handed over before its body is gone.
        try await queue.pause()
        let missing = try await queue.enqueue(SimulatedApp.form("form 1", fileBytes: 3_000_000), to: server.uploads)
        try await queue.enqueue(SimulatedApp.form("form 2"), to: server.uploads)
        #expect(try removeFiles(ofAtLeast: 3_000_000) == 1)
        #expect(try await !queue.bodyExists(missing))
        try await queue.resume()
        try await queue.run(endsWhenEmpty: true)
        for upload in try await queue.uploads() {
            if upload.id == missing {
                #expect(upload.state.failure?.isEmpty == false, "\(upload.state)")
            } else {
                #expect(upload.state.isDone, "\(upload.state)")
            }
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `a form arrives even if its body is removed after it was handed over`() async throws {
        let server = try await ReceivingServer()
        let app = try await app()
        _ = try await app.handOver(to: server.uploads, fileBytes: 3_000_000)
        #expect(try removeFiles(ofAtLeast: 3_000_000) == 1)
        try await app.daemon.setNetwork(isUp: true)
        let queue = app.queue()
        try await queue.run(endsWhenEmpty: true)
        #expect(try await queue.uploads().map(\.state.isDone) == [true])
        #expect(try await server.end().records.count == 1)
    }

    /// Removes the large files in the queue's directory, and returns their number.
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

    @Test func `an unreachable server is tried as often as the policy allows, and the body is kept`() async throws {
        var options = TransferDaemon.Options()
        options.resourceTimeout = 0.1
        var app = try await app(options)
        app.retryPolicy.maximumAttempts = 2
        let queue = app.queue()
        let id = try await queue.enqueue(
            SimulatedApp.form("form"), to: try #require(URL(string: "http://127.0.0.1:1/")))
        try await queue.run(endsWhenEmpty: true)
        let upload = try #require(try await queue.uploads().first)
        #expect(upload.state.failure?.isEmpty == false, "\(upload.state)")
        #expect(upload.attempts == 2)
        #expect(try await queue.bodyExists(id))
        #expect(try await app.daemon.status()[.handedOver] == 2)
    }

    @Test func `no attempt begins after the deadline`() async throws {
        var app = try await app()
        app.retryPolicy.deadline = .seconds(1800)
        let queue = app.queue()
        let id = try await queue.enqueue(
            SimulatedApp.form("form"), to: try #require(URL(string: "http://127.0.0.1:1/")))
        try await queue.failAnHourAgo(id, because: "There was no network.")
        try await queue.run(endsWhenEmpty: true)
        let reason = try #require(try await queue.upload(id)?.state.failure)
        #expect(
            reason.contains("1800 seconds after the first") && reason.hasSuffix("There was no network."), "\(reason)")
        #expect(try await app.daemon.status()[.handedOver] == 0)
    }

    @Test func `a missing transfer daemon is reported`() async throws {
        let service = DaemonTransferService(socket: folder.url.appending(path: "nothing").path)
        let error = await #expect(throws: DaemonFailure.self) {
            try await service.connect { _ in
            } freshFields: { _ in
                nil
            }
        }
        #expect(error?.description.contains("transfer daemon") == true)
        let directory = folder.url.appending(path: "queue")
        let queue = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString), service: service)
        await #expect(throws: (any Error).self) { try await queue.run() }
    }
}
