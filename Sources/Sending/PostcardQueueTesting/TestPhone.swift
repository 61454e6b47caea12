import PostcardClient
public import PostcardFoundation
public import PostcardQueue
public import PostcardTesting
import Synchronization

/// A phone for the tests of an app's queue: the app's own code runs unchanged, and the phone takes the place of the
/// system, which carries uploads while the app is closed.
///
/// ```swift
/// @Test func `a pet that was sent while the app was closed is marked as uploaded`() async throws {
///     let phone = try TestPhone()
///     let app = await phone.launch { PetApp(folder: phone.directory) }
///     let id = try await app.queue.enqueue(form, to: url, tag: "7")
///     await phone.upload(id)?.expectText("name", "초코")
///
///     await phone.kill()
///     await phone.answer(.created(["id": "7"]), to: id)
///     await phone.wakeUp { identifier in
///         let app = PetApp(folder: phone.directory)
///         await app.queue.handleEvents(forSession: identifier)
///         #expect(await app.isUploaded("7"))
///     }
/// }
/// ```
///
/// Queues that are made in ``launch(_:)`` and `wakeUp`, also by tasks that begin there, use the phone: its
/// sessions, clock, networks, disk and activities. On Linux too, where queues have no background sessions. Time passes
/// only with ``advance(by:)``.
///
/// The phone's process is a part of the test's own. ``kill()`` disconnects the queues of the app, and does not stop other
/// code of the app. Nothing of a process that has ended may be used any longer.
public final class TestPhone: Sendable {
    /// An empty folder for the app's queue, which is removed with the phone.
    public let directory: URL

    private let system: PhoneSystem
    private let location: TestLocation

    /// Makes a phone on which the app does not run yet.
    ///
    /// - Parameters:
    ///   - network: The network in use. Defaults to one without limits, such as Wi-Fi.
    ///   - fileID: Where a failure is reported: the caller, unless you say otherwise.
    ///   - filePath: As `fileID`.
    ///   - line: As `fileID`.
    /// - Throws: Errors of Foundation, if ``directory`` cannot be made.
    public init(
        network: NetworkPath = NetworkPath(),
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) throws {
        location = TestLocation(fileID: fileID, filePath: filePath, line: line)
        system = PhoneSystem(network: network, clock: TestClock(fileID: fileID, filePath: filePath, line: line))
        directory = FileManager.default.temporaryDirectory.appending(path: "TestPhone-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: directory, withIntermediateDirectories: true)
    }

    deinit {
        let (uploads, isLookedAt) = system.state.withLock { state in
            (state.sessions.values.flatMap(\.transfers), state.isLookedAt)
        }
        if let first = uploads.first, !isLookedAt {
            system.reporter.fail(
                "The test ended and looked at none of the \(uploads.count) uploads that the system has, such as "
                    + "\(first.sent). Answer them: await phone.answer(.created, to: id)",
                at: location)
        }
        try? FileManager.default.removeItem(at: directory)
    }

    // MARK: - The app

    /// Launches the app as its user does. If it runs already, it is killed first.
    ///
    /// - Parameter make: Makes what the app has, such as its queue.
    /// - Returns: What `make` returns.
    public func launch<App>(_ make: () async throws -> App) async rethrows -> App {
        await kill()
        return try await run(make, in: system.launch(inBackground: false))
    }

    private func run<Value>(_ work: () async throws -> Value, in replacement: QueueSystem) async rethrows -> Value {
        let value = try await QueueSystem.$replacement.withValue(replacement) { try await work() }
        await system.settle()
        return value
    }

    /// Ends the app without notice, as the system does when it needs memory, once the app has handed over what is due. What
    /// was handed over stays with the system.
    public func kill() async {
        await system.settle()
        await system.kill()
    }

    /// Ends the app in the app switcher. The system cancels what it has of the app's uploads, and does not wake the app
    /// until it is launched again.
    public func forceQuit() async {
        await kill()
        let sessions = system.state.withLock { state in
            state.isForceQuit = true
            return state.sessions.mapValues { Set($0.transfers.map(\.transfer.id)) }
        }
        for (identifier, ids) in sessions { system.end(ids, of: identifier, .forceQuit) }
    }

    /// Suspends the app, as the system does some seconds after its user has left it, once the app has handed over what is
    /// due. Its activities expire, and its timers stand still. What happens to its uploads is reported when it runs again.
    public func suspend() async {
        await system.settle()
        let expiring = system.state.withLock { state in
            if state.isRunning { state.mode = .suspended }
            return state.mode == .suspended ? Array(state.activities.values) : []
        }
        for expire in expiring { expire() }
    }

    /// Opens the app again that was suspended.
    public func resume() async {
        let isSuspended = system.state.withLock { state in
            if state.mode == .suspended { state.mode = .foreground }
            return state.mode == .foreground
        }
        if isSuspended { await catchUp() }
    }

    /// Lets an app that was suspended find out what has happened.
    private func catchUp() async {
        system.deliverPending()
        await system.clock.wakeAll(until: system.clock.instant) { await system.settle() }
    }

    /// Wakes or launches the app in the background, as the system does when the uploads have ended that it had. The app is
    /// suspended again afterwards.
    ///
    /// The system also wakes it if a server has asked for credentials of an upload. Fails the test if there is nothing to
    /// wake the app for, or if the user has quit the app.
    ///
    /// - Parameters:
    ///   - handle: Does what the app does then: makes its queue if the app was killed, and calls
    ///     `handleEvents(forSession:)`. Called with the identifier of each session that has events.
    ///   - fileID: Where a failure is reported: the caller, unless you say otherwise.
    ///   - filePath: As `fileID`.
    ///   - line: As `fileID`.
    public func wakeUp(
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        _ handle: (String) async throws -> Void
    ) async rethrows {
        let (sessions, isForceQuit, mode, present) = system.state.withLock { state in
            (
                state.sessions.filter(\.value.wakesApp).keys.sorted(),
                state.isForceQuit, state.mode, state.replacement
            )
        }
        guard !sessions.isEmpty, !isForceQuit else {
            return system.reporter.fail(
                isForceQuit
                    ? "The user has quit the app, so the system does not wake it. Call launch."
                    : "The system does not wake the app before all uploads have ended that it has, while the app does not "
                        + "run. Suspend or kill the app, and answer them: await phone.answerAll(.created)",
                at: TestLocation(fileID: fileID, filePath: filePath, line: line))
        }
        let replacement = (mode == .ended ? nil : present) ?? system.launch(inBackground: true)
        system.state.withLock { if $0.mode == .suspended { $0.mode = .background } }
        await catchUp()
        for identifier in sessions {
            system.report(.deliveredAll, of: identifier)
            try await run({ try await handle(identifier) }, in: replacement)
        }
        if mode != .foreground { await suspend() }
    }

    // MARK: - The system

    /// The moment that the app's queue takes for now. It begins at the present.
    public var date: Date { system.date }

    /// The network in use. Uploads that may not use it cannot be answered.
    public var network: NetworkPath {
        get { system.state.withLock { $0.network } }
        set { system.state.withLock { $0.network = newValue } }
    }

    /// The bytes that are free on the phone. Defaults to `nil`: those of this machine.
    public var freeBytes: Int64? {
        get { system.state.withLock { $0.freeBytes } }
        set { system.state.withLock { $0.freeBytes = newValue } }
    }

    /// Whether the phone is locked, with an app of which the system then cannot store responses: an upload that was
    /// accepted is done without the body of its response, and any other is sent again. Defaults to `false`.
    public var isLocked: Bool {
        get { system.state.withLock { $0.isLocked } }
        set { system.state.withLock { $0.isLocked = newValue } }
    }

    /// Lets time pass, and returns when the queues of the running app have done what is due.
    ///
    /// - Parameter duration: How much time passes.
    public func advance(by duration: Duration) async {
        let end = system.clock.instant + duration
        if system.state.withLock({ $0.isRunning }) {
            await system.clock.wakeAll(until: end) { await system.settle() }
        } else {
            system.clock.pass(duration)
            await system.beginDue()
        }
    }

    // MARK: - Uploads

    /// The uploads that the system has, in the order in which they were handed over. Waits until the running app has
    /// handed over what is due.
    public var handedOver: [SentUpload] {
        get async { await transfers().map(\.upload.sent) }
    }

    /// An upload that the system has; `nil` if it does not have it. Waits until the running app has handed over what is
    /// due.
    ///
    /// - Parameter id: The upload's identifier in its queue.
    public func upload(_ id: QueuedUpload.ID) async -> SentUpload? {
        await transfers().first { $0.upload.transfer.upload == id }?.upload.sent
    }

    private func transfers() async -> [(session: String, upload: PhoneSystem.HandedOver)] {
        await system.settle()
        return system.state.withLock { state in
            state.isLookedAt = true
            return state.sessions.keys.sorted().flatMap { session in
                (state.sessions[session]?.transfers ?? []).map { (session, $0) }
            }
        }
    }

    /// Lets the server answer an upload that the system has, and returns when the running app has settled it. The
    /// system tells an app that does not run as soon as it does.
    ///
    /// A connection that fails, breaks or loses its response is one that the system has given up retrying. A form that is
    /// received slowly takes no time. Fails the test if the system does not have the upload, or may not send it yet.
    ///
    /// - Parameters:
    ///   - answer: The answer. With `neverAnswers` the system keeps the upload.
    ///   - id: The upload's identifier in its queue.
    ///   - fileID: Where a failure is reported: the caller, unless you say otherwise.
    ///   - filePath: As `fileID`.
    ///   - line: As `fileID`.
    public func answer(
        _ answer: TestAnswer, to id: QueuedUpload.ID,
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) async {
        let all = await transfers()
        let location = TestLocation(fileID: fileID, filePath: filePath, line: line)
        let matches = all.filter { $0.upload.transfer.upload == id }
        guard let (session, upload) = matches.first else {
            let list = all.map { "\($0.upload.transfer.upload)" }.joined(separator: ", ")
            return system.reporter.fail(
                "The system does not have upload \(id). It has \(list.isEmpty ? "none" : list). "
                    + "Enqueue it while the app runs, in a queue with a session.",
                at: location)
        }
        guard matches.count == 1 else {
            return system.reporter.fail(
                "Several queues of the app have an upload \(id). Answer them with answerAll, or use a phone for each queue.",
                at: location)
        }
        if let obstacle = system.obstacle(to: upload) { return system.reporter.fail(obstacle, at: location) }
        await self.answer(answer, to: upload, of: session)
        await system.settle()
    }

    /// Lets the server answer all uploads that the system has and may send now.
    public func answerAll(_ answer: TestAnswer) async {
        for (session, upload) in await transfers() where system.obstacle(to: upload) == nil {
            await self.answer(answer, to: upload, of: session)
        }
        await system.settle()
    }

    private func answer(_ answer: TestAnswer, to upload: PhoneSystem.HandedOver, of session: String) async {
        let (id, url) = (upload.transfer.id, upload.transfer.url)
        let events: [AttemptEvent]
        switch answer.kind {
        case .neverAnswers: return
        case .response(let response):
            upload.sent.arrived()
            events = system.events(of: response, to: upload)
            // As of a session's delegate that has no credentials, the response is the app's then.
            if response.status == .unauthorized, response.headerFields[.wwwAuthenticate] != nil,
                system.state.withLock({ !$0.isRunning })
            {
                return system.change(id, of: session) { $0.challenge = events }
            }
        case .unencodable(let error):
            return system.reporter.fail("The value of TestAnswer.created cannot be encoded: \(error)", at: location)
        case .connectionFails:
            events = [.ended(id, .failed(.connectionFailed(to: url, "the phone's server accepts no connections")))]
        case .untrusted:
            events = [.ended(id, .failed(.tls(with: url, "the certificate of the phone's server is not trusted")))]
        case .breaks(let bytes):
            let sent = min(bytes ?? upload.transfer.length, upload.transfer.length)
            if sent == upload.transfer.length { upload.sent.arrived() }
            let error = UploadError.connectionLost(to: url, "the phone's server closed it after \(sent) bytes")
            events = [.sent(id, bytes: sent), .ended(id, .failed(error))]
        }
        system.state.withLock { $0.sessions[session]?.transfers.removeAll { $0.transfer.id == id } }
        for event in events { system.report(event, of: session) }
    }
}
