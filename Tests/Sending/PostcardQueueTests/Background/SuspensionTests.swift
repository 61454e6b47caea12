import Foundation
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import PostcardTransferDaemon
import Testing

/// What the model of the transfer daemon does to an app, and what the app's queue makes of it.
@Suite(.timeLimit(.minutes(10))) struct SuspensionTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    // MARK: - The model

    #if os(Linux)
    @Test func `the model ends an app that is suspended with a lock`() async throws {
        let program =
            "import fcntl, time; f = open('\(folder.url.appending(path: "lock").path)', 'w')\n"
            + "fcntl.lockf(f, fcntl.LOCK_EX); open('\(folder.url.appending(path: "ready").path)', 'w'); time.sleep(1000)"
        let daemon = try await TransferDaemon(app: ["/usr/bin/env", "python3", "-c", program])
        try await daemon.open()
        try await eventually {
            FileManager.default.fileExists(atPath: folder.url.appending(path: "ready").path)
        }
        let status = try await daemon.suspend()
        #expect(status[.suspended] == 1 && status[.killedWithLock] == 1 && !status.isRunning)
        #expect(status.failures.first?.contains("locks") == true)
    }
    #endif

    @Test func `the model ends an app that takes too long for its events`() async throws {
        var options = TransferDaemon.Options()
        options.wakeUpBudget = 0.1
        // The model adds arguments, which this program ignores.
        let program = "import time; time.sleep(1000)"
        let daemon = try await TransferDaemon(options, app: ["/usr/bin/env", "python3", "-c", program])
        let app = SimulatedApp(directory: directory, daemon: daemon)
        _ = try await app.handOver(to: [try #require(URL(string: "http://127.0.0.1:1/"))])
        try await daemon.cancelAll(.insufficientResources)
        let status = try await daemon.wait(for: .overran, atLeast: 1)
        #expect(status[.backgroundLaunches] >= 1)
    }

    // MARK: - The queue

    #if os(Linux)
    @Test func `an app that is suspended again and again has no lock then, and sends everything`() async throws {
        let server = try await ReceivingServer()
        let plan = BackgroundAppPlan(
            directory: directory.path, socket: "", session: "org.example.app", forms: 40, fileBytes: 20_000,
            addresses: [server.uploads])
        let file = folder.url.appending(path: "plan").path
        let program = Program.url.deletingLastPathComponent().appending(path: "PostcardBackgroundApp")
        let daemon = try await TransferDaemon(app: [program.path, file])
        var own = plan
        own.socket = daemon.socket
        try own.write(to: file)
        for round in 0..<20 {
            try await daemon.open()
            // More of it each time.
            try await daemon.letHappen(round, then: Double(round) * 0.002)
            try await daemon.suspend()
        }
        try await daemon.open()
        let status = try await daemon.waitUntilResting()
        #expect(status[.killedWithLock] == 0)
        #expect(status.failures == [])
        #expect(try await server.end().records.count == 40)
    }
    #endif

    @Test func `an upload whose file the system has linked is sent again after a failure`() async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.linksFiles = true
        let app = SimulatedApp(directory: directory, daemon: try await TransferDaemon(options))
        _ = try await app.handOver(2, to: server.uploads)
        // The transfers are lost, and the system's names of the files with them, but for one that it forgets.
        let bodies = directory.appending(path: "bodies")
        for name in try FileManager.default.contentsOfDirectory(atPath: bodies.path) {
            try FileManager.default.linkItem(
                at: bodies.appending(path: name), to: folder.url.appending(path: name))
        }
        try await app.daemon.lose(.atOnce)
        try await app.daemon.setNetwork(isUp: true)
        let queue = app.queue()
        try await queue.run(endsWhenEmpty: true)
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone })
        #expect(try await server.end().records.count == 2)
    }

    @Test func `an upload that asks for credentials fails with the server's response`() async throws {
        let server = try await ReceivingServer("--token", "secret")
        let app = SimulatedApp(directory: directory, daemon: try await TransferDaemon())
        _ = try await app.handOver(to: [server.uploads])
        try await app.daemon.setNetwork(isUp: true)
        try await app.daemon.wait(for: .challenged, atLeast: 1)
        let queue = app.queue(isWakeUp: true)
        await queue.handleEvents()
        await queue.disconnect()
        let next = app.queue()
        try await next.run(endsWhenEmpty: true)
        let upload = try #require(try await next.uploads().first)
        guard case .failed(let failure) = upload.state else { throw ProgramFailure("\(upload.state)") }
        #expect(failure.response?.status == 401)
        #expect(failure.code != .unclear)
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `an upload that the system has resumed by itself is done`() async throws {
        let server = try await ReceivingServer()
        var options = TransferDaemon.Options()
        options.resumes = true
        options.drop = 1
        options.dropsOnce = true
        options.resourceTimeout = 60
        let app = SimulatedApp(directory: directory, daemon: try await TransferDaemon(options))
        let queue = app.queue()
        try await queue.enqueue(SimulatedApp.form("form", fileBytes: 2_000_000), to: server.uploads)
        try await queue.run(endsWhenEmpty: true)
        let upload = try #require(try await queue.uploads().first)
        #expect(upload.state.isDone && upload.attempts == 1, "\(upload.state)")
        #expect(try await app.daemon.status()[.resumed] == 1)
        #expect(try await server.end().records.count == 1)
    }

    @Test func `an upload that was handed over in the background waits for good conditions`() async throws {
        let server = try await ReceivingServer()
        let daemon = try await TransferDaemon()
        let app = SimulatedApp(directory: directory, daemon: daemon)
        try await daemon.setNetwork(isUp: true, isCellular: true)
        let woken = app.queue(isWakeUp: true)
        try await woken.enqueue(SimulatedApp.form("form"), to: server.uploads)
        await woken.handleEvents()
        #expect(try await woken.uploads().map(\.state) == [.sending])
        #expect(try await daemon.waitUntilResting()[.started] == 0)
        await woken.disconnect()
        try await daemon.setNetwork(isUp: true)
        let queue = app.queue()
        try await queue.run(endsWhenEmpty: true)
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone && $0.attempts == 1 })
        #expect(try await server.end().records.count == 1)
    }

    #if os(Linux)
    @Test func `an app that is launched before the first unlock loses nothing`() async throws {
        let server = try await ReceivingServer()
        var plan = BackgroundAppPlan(
            directory: directory.path, socket: "", session: "org.example.app", forms: 0, fileBytes: 1000,
            addresses: [server.uploads])
        let file = folder.url.appending(path: "plan").path
        let program = Program.url.deletingLastPathComponent().appending(path: "PostcardBackgroundApp")
        let daemon = try await TransferDaemon(app: [program.path, file])
        plan.socket = daemon.socket
        try plan.write(to: file)
        try await daemon.setNetwork(isUp: false)
        // The first launch also pauses the queue. If the app ended then, the system would have no transfers, and would
        // never launch it again.
        try await daemon.open()
        try await daemon.wait(for: .exits, atLeast: 1)
        plan.forms = 5
        try plan.write(to: file)
        try await daemon.open()
        try await daemon.wait(for: .handedOver, atLeast: 5)
        try await daemon.lockDevice(hiding: directory)
        try await daemon.setNetwork(isUp: true)
        // Their ends are reported to processes that cannot open the queue.
        try await daemon.wait(for: .backgroundLaunches, atLeast: 2)
        try await daemon.kill()
        try await daemon.unlockDevice()
        try await daemon.waitUntilResting()
        try await daemon.open()
        let status = try await daemon.waitUntilResting()
        #expect(status.failures == [])
        #expect(status.transfers == [])
        let queue = UploadQueue(directory: directory)
        #expect(try await queue.uploads().allSatisfy { $0.state.isDone })
        #expect(try await server.end().records.count == 5)
    }
    #endif
}
