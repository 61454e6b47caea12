import PostcardClient
public import PostcardFoundation
public import PostcardQueue
public import PostcardTesting
import Synchronization

/// A phone for the tests of an app's queue. The app's own code runs unchanged, and the phone simulates the system,
/// which sends uploads while the app is closed.
///
/// ```swift
/// @Test func `a pet that was sent while the app was closed is marked as uploaded`() async throws {
///     let phone = try TestPhone()
///     let app = await phone.launch { PetApp(folder: phone.directory) }
///     let id = try await app.queue.enqueue(form, to: url, tag: "7")
///     await phone.upload(id)?.expectText("name", "초코")
///
///     await phone.kill()
///     await phone.respond(with: .created(["id": "7"]), to: id)
///     await phone.wakeUp { identifier in
///         let app = PetApp(folder: phone.directory)
///         await app.queue.handleEvents(forSession: identifier)
///         #expect(await app.isUploaded("7"))
///     }
/// }
/// ```
///
/// Queues that are made in ``launch(_:)`` and `wakeUp`, even by tasks that begin there, use the phone: its sessions,
/// clock, networks, disk and activities. This works on Linux too, where queues have no background sessions. Time passes
/// only with ``advance(by:)``.
///
/// The app's process is simulated within the test's own process. ``kill()`` disconnects the queues of the app, but does
/// not stop other code of the app. Do not use objects of a simulated process after its end.
public final class TestPhone: Sendable {
    /// An empty folder for the app's queue. It is removed when the phone is released.
    public let directory: URL

    private let system: PhoneSystem
    private let location: TestLocation

    /// Makes a phone on which the app does not run yet.
    ///
    /// - Parameters:
    ///   - network: The network in use. Defaults to a network without restrictions, such as Wi-Fi.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
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
                    + "\(first.sent). Respond to them: await phone.respond(with: .created, to: id)",
                at: location)
        }
        try? FileManager.default.removeItem(at: directory)
    }

    // MARK: - The app

    /// Launches the app as its user does. If the app is already running, it is killed first.
    ///
    /// - Parameter make: Makes the app's objects, such as its queue.
    /// - Returns: The result of `make`.
    public func launch<App>(_ make: () async throws -> App) async rethrows -> App {
        await kill()
        return try await run(make, in: system.launch(inBackground: false))
    }

    private func run<Value>(_ work: () async throws -> Value, in replacement: QueueSystem) async rethrows -> Value {
        let value = try await QueueSystem.$replacement.withValue(replacement) { try await work() }
        await system.settle()
        return value
    }

    /// Ends the app without notice, as the system does when it needs memory. First the app hands all due uploads to the
    /// system, which continues to send them.
    public func kill() async {
        await system.settle()
        await system.kill()
    }

    /// Ends the app in the app switcher. The system cancels the app's uploads, and does not wake the app until the next
    /// launch.
    public func forceQuit() async {
        await kill()
        let sessions = system.state.withLock { state in
            state.isForceQuit = true
            return state.sessions.mapValues { Set($0.transfers.map(\.transfer.id)) }
        }
        for (identifier, ids) in sessions { system.end(ids, of: identifier, .forceQuit) }
    }

    /// Suspends the app, as the system does some seconds after its user has left it. First the app hands all due
    /// uploads to the system. The app's activities expire, and its timers stop. Events of its uploads are reported when
    /// the app runs again.
    public func suspend() async {
        await system.settle()
        let expiring = system.state.withLock { state in
            if state.isRunning { state.mode = .suspended }
            return state.mode == .suspended ? Array(state.activities.values) : []
        }
        for expire in expiring { expire() }
    }

    /// Opens the suspended app again.
    public func resume() async {
        let isSuspended = system.state.withLock { state in
            if state.mode == .suspended { state.mode = .foreground }
            return state.mode == .foreground
        }
        if isSuspended { await catchUp() }
    }

    /// Reports the missed events to an app that was suspended, and fires its timers.
    private func catchUp() async {
        system.deliverPending()
        await system.clock.wakeAll(until: system.clock.instant) { await system.settle() }
    }

    /// Wakes or launches the app in the background, as the system does when all its uploads have ended. Afterwards the
    /// app is suspended again.
    ///
    /// The system also wakes the app if a server has requested credentials for an upload. The test fails if there is no
    /// reason to wake the app, or if the user has quit the app.
    ///
    /// - Parameters:
    ///   - handle: Does the app's work at a wake-up: makes its queue if the app was killed, and calls
    ///     `handleEvents(forSession:)`. It is called with the identifier of each session that has events.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
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
                        + "run. Suspend or kill the app, and respond to them: await phone.respondToAll(with: .created)",
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

    /// The current time of the app's queue. It starts at the real time.
    public var date: Date { system.date }

    /// The network in use. Uploads that may not use it get no response.
    public var network: NetworkPath {
        get { system.state.withLock { $0.network } }
        set { system.state.withLock { $0.network = newValue } }
    }

    /// The number of free bytes on the phone. Defaults to `nil`, the number of this machine.
    public var freeBytes: Int64? {
        get { system.state.withLock { $0.freeBytes } }
        set { system.state.withLock { $0.freeBytes = newValue } }
    }

    /// Whether the phone is locked, so that the system cannot store the app's responses. An accepted upload is then
    /// done without the body of its response, and any other upload is sent again. Defaults to `false`.
    public var isLocked: Bool {
        get { system.state.withLock { $0.isLocked } }
        set { system.state.withLock { $0.isLocked = newValue } }
    }

    /// Advances the clock, and returns when the queues of the running app have finished the work that is due.
    ///
    /// - Parameter duration: How far to advance the clock.
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

    /// The uploads that the system has and that have not ended, in the order in which it got them. Waits until the
    /// running app has handed over the uploads that are due.
    public var handedOver: [SentUpload] {
        get async { await transfers().map(\.upload.sent) }
    }

    /// An upload that the system has; `nil` if the system does not have it. Waits until the running app has handed over
    /// the uploads that are due.
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

    /// Responds to an upload that the system has, and returns when the running app has handled the response. If the app
    /// does not run, the system reports the response when it runs again.
    ///
    /// With `connectionFails`, `untrusted`, `breaks` or `responseLost` the system has stopped retrying. A form that is
    /// received slowly takes no time. The test fails if the system does not have the upload or may not send it yet.
    ///
    /// - Parameters:
    ///   - response: The response. With `neverResponds` the system keeps the upload.
    ///   - id: The upload's identifier in its queue.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public func respond(
        with response: TestResponse, to id: QueuedUpload.ID,
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
                "Several queues of the app have an upload \(id). Call respondToAll, or use a phone for each queue.",
                at: location)
        }
        if let obstacle = system.obstacle(to: upload) { return system.reporter.fail(obstacle, at: location) }
        await self.respond(with: response, to: upload, of: session)
        await system.settle()
    }

    /// Responds to all uploads that the system has and may send now.
    public func respondToAll(with response: TestResponse) async {
        for (session, upload) in await transfers() where system.obstacle(to: upload) == nil {
            await self.respond(with: response, to: upload, of: session)
        }
        await system.settle()
    }

    private func respond(with response: TestResponse, to upload: PhoneSystem.HandedOver, of session: String) async {
        let (id, url) = (upload.transfer.id, upload.transfer.url)
        let events: [AttemptEvent]
        switch response.kind {
        case .neverResponds: return
        case .response(let response):
            upload.sent.arrived()
            events = system.events(of: response, to: upload)
            // The system wakes the app to ask for credentials. The app has none, so it then gets this response.
            if response.status == .unauthorized, response.headerFields[.wwwAuthenticate] != nil,
                system.state.withLock({ !$0.isRunning })
            {
                return system.change(id, of: session) { $0.challenge = events }
            }
        case .unencodable(let error):
            return system.reporter.fail("The value of TestResponse.created cannot be encoded: \(error)", at: location)
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
