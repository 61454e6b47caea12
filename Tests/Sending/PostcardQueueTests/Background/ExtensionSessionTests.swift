import Foundation
import PostcardClient
import PostcardForm
import PostcardTestSupport
import PostcardTransferDaemon
import Testing

@testable import PostcardQueue

/// The sessions of an app and its extension, each of which only one process can use at a time.
@Suite(.timeLimit(.minutes(10))) struct ExtensionSessionTests {
    private let folder: TemporaryFolder
    private let server: ReceivingServer
    private let daemon: TransferDaemon
    /// The process of the app, which is never ended.
    private let appProcess: DaemonProcess
    /// Tests run at the same time, so each has its own sessions.
    private let name = "org.example.app\(UUID().uuidString)"

    init() async throws {
        folder = try TemporaryFolder()
        server = try await ReceivingServer()
        daemon = try await TransferDaemon()
        appProcess = daemon.process()
    }

    private func queue(
        _ session: BackgroundSession, in process: DaemonProcess,
        others: (@Sendable (BackgroundSession) -> any TransferService)? = nil
    ) -> UploadQueue {
        var session = session
        // By the tests' fast clock, which says nothing about a busy machine.
        session.maximumWakeUp = .seconds(100_000)
        return UploadQueue(
            directory: folder.url.appending(path: "queue"), session: session,
            service: process.service(of: session.identifier), otherService: others, time: FastTime.time)
    }

    private func app() -> UploadQueue {
        queue(BackgroundSession(identifier: name), in: appProcess) { [appProcess] session in
            appProcess.service(of: session.identifier, isWakeUp: true)
        }
    }

    /// A session that the extension uses in all runs.
    private var sameSession: BackgroundSession { BackgroundSession(identifier: "\(name).share") }
    private var sessionOfARun: BackgroundSession {
        BackgroundSession(extension: "\(name).share", appGroup: "group.org.example")
    }

    /// Runs the extension, which sends a form and ends.
    @discardableResult
    private func share(_ form: String, with session: BackgroundSession) async throws -> QueuedUpload.ID {
        let process = daemon.process("extension \(UUID().uuidString)")
        let queue = queue(session, in: process)
        // It is not handed over before the call that waits for it.
        let id = try await queue.withoutSession.enqueue(SimulatedApp.form(form), to: server.uploads)
        let result: Result<Void, any Error>
        do { result = .success(try await queue.handOver()) } catch { result = .failure(error) }
        await queue.disconnect()
        await process.end()
        try result.get()
        return id
    }

    /// Wakes the app for each session for which the system does.
    private func wake(_ app: UploadQueue) async throws {
        for session in try await daemon.status().waking { await app.handleEvents(forSession: session) }
        // It hands over what is left in a task of its own, which might else take the next form from the extension.
        try await app.handOver()
    }

    @Test(arguments: [false, true])
    func `an extension sends again and again while the app lives and is never opened`(isSame: Bool) async throws {
        let app = app()
        let shares = ProcessInfo.processInfo.environment["POSTCARD_DAEMON_SHARES"].flatMap(Int.init) ?? 20
        for number in 1...shares {
            // Nothing ends before the extension does.
            try await daemon.setNetwork(isUp: false)
            try await share("form \(number)", with: isSame ? sameSession : sessionOfARun)
            try await daemon.setNetwork(isUp: true)
            try await daemon.wait(for: .ended, atLeast: number)
            try await wake(app)
            #expect(try await app.uploads().last?.state.isDone == true)
        }
        let status = try await daemon.wait(for: .released, atLeast: shares)
        #expect(status[.refused] == 0)
        #expect(status.transfers.isEmpty && status.failures.isEmpty)
        await app.disconnect()
        #expect(try await server.end().records.count == shares)
    }

    @Test func `a run of the extension sends while the app has the session of an earlier one`() async throws {
        let app = app()
        try await daemon.setNetwork(isUp: false)
        try await share("one", with: sessionOfARun)
        let running = Task { try await app.run() }
        try await daemon.wait(for: .connects, atLeast: 3)
        try await share("two", with: sessionOfARun)
        #expect(try await daemon.status()[.refused] == 0)
        try await daemon.setNetwork(isUp: true)
        try await daemon.wait(for: .ended, atLeast: 2)
        // The app is connected to the first session, and is woken for the second one.
        try await wake(app)
        try await eventually { try await app.uploads().allSatisfy(\.state.isDone) }
        running.cancel()
        _ = try? await running.value
        await app.disconnect()
        #expect(try await daemon.status().failures.isEmpty)
        #expect(try await server.end().records.count == 2)
    }

    @Test func `a session that the app has is reported, and the upload waits for the next hand-over`() async throws {
        let app = app()
        try await daemon.setNetwork(isUp: false)
        try await share("one", with: sameSession)
        await app.handleEvents(forSession: sameSession.identifier)
        // The app has nothing of its own to hand over when the next form comes.
        try await app.handOver()
        // It is still being sent, so the app keeps the session.
        let error = await #expect(throws: UploadQueueError.self) { try await share("two", with: sameSession) }
        #expect(error?.code == .sessionInUse && error?.advice?.contains("of its own") == true)
        #expect(try await daemon.status()[.refused] > 0)
        #expect(try await daemon.status()[.handedOver] == 1)
        #expect(try await app.uploads().allSatisfy { !$0.state.isEnded })
        // The app hands it over, and nothing is sent twice.
        try await app.handOver()
        #expect(try await daemon.status()[.handedOver] == 2)
        try await daemon.setNetwork(isUp: true)
        try await daemon.wait(for: .ended, atLeast: 2)
        await app.handleEvents(forSession: sameSession.identifier)
        try await eventually { try await app.uploads().allSatisfy(\.state.isDone) }
        await app.disconnect()
        #expect(try await server.end().records.count == 2)
    }

    @Test func `what an extension sent is settled when the app is opened after a force-quit`() async throws {
        try await daemon.setNetwork(isUp: false)
        try await share("one", with: sessionOfARun)
        try await daemon.forceQuit()
        #expect(try await daemon.status().waking.isEmpty)
        try await daemon.setNetwork(isUp: true)
        let app = app()
        let running = Task { try await app.run() }
        try await eventually { try await app.uploads().allSatisfy(\.state.isDone) }
        running.cancel()
        _ = try? await running.value
        await app.disconnect()
        #expect(try await daemon.status()[.released] == 1)
        #expect(try await server.end().records.count == 1)
    }

    @Test func `the app leaves the session of an extension that runs to it`() async throws {
        let process = daemon.process("extension")
        let session = sessionOfARun
        try await daemon.setNetwork(isUp: false)
        let queue = queue(session, in: process)
        try await queue.withoutSession.enqueue(SimulatedApp.form("one"), to: server.uploads)
        try await queue.handOver()
        // The queue of the test's other process would be found for the session otherwise.
        await queue.disconnect()
        let app = app()
        let running = Task { try await app.run() }
        try await daemon.wait(for: .refused, atLeast: 1)
        try await app.handOver()
        #expect(try await app.uploads().map(\.state) == [.sending])
        await process.end()
        try await daemon.setNetwork(isUp: true)
        try await daemon.wait(for: .ended, atLeast: 1)
        try await wake(app)
        #expect(try await app.uploads().map(\.state.name) == ["done"])
        running.cancel()
        _ = try? await running.value
        await app.disconnect()
        #expect(try await daemon.status()[.handedOver] == 1)
        #expect(try await server.end().records.count == 1)
    }

    // MARK: - The session of a process

    private final class Thing {}

    @Test func `a session that was given up ends once, and then another one can be made`() async {
        let (one, other) = (Thing(), Thing())
        var slot = SessionSlot<Thing>.none
        var given = slot.giveUp()
        #expect(given == nil && !slot.isEnding)
        slot = .open(one)
        if case .known = slot.end(other) {} else { Issue.record("Another one has ended.") }
        given = slot.giveUp()
        #expect(given === one && slot.isEnding)
        given = slot.giveUp()
        #expect(given == nil)
        await withCheckedContinuation { caller in
            let waits = slot.wait(caller)
            #expect(waits)
            guard case .givenUp(let waiting) = slot.end(one) else { return caller.resume() }
            #expect(waiting.count == 1)
            for caller in waiting { caller.resume() }
        }
        #expect(!slot.isEnding)
        if case .known = slot.end(one) {} else { Issue.record("It has ended before.") }
        slot = .open(other)
        if case .unexpected = slot.end(other) {} else { Issue.record("It was not given up.") }
    }
}
