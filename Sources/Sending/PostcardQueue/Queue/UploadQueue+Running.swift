public import PostcardClient
import PostcardFoundation
import Synchronization

extension UploadQueue {
    /// Hands due uploads to the system, and records their progress and outcomes, until the task is cancelled.
    ///
    /// The uploads continue when the task is cancelled and when the app is suspended or closed. Run the queue while the
    /// app is in the foreground, to hand over uploads that other processes enqueue or that were not due before.
    /// ``UploadQueueList/run()`` runs the queue for a screen.
    ///
    /// On Linux, and for a queue without a session, an `UploadClient` sends the uploads in this process, with the
    /// session's idle timeout, policy, header fields and presigned forms, or else with default settings.
    ///
    /// - Parameter endsWhenEmpty: Whether to return when no upload is left that can be sent. Defaults to `false`.
    /// - Throws: ``UploadQueueError`` if the queue cannot be opened or the database fails. Its code is
    ///   ``UploadQueueError/Code/sessionInUse`` or ``UploadQueueError/Code/sessionUnavailable`` if the system does not
    ///   accept the session's uploads. Its code is ``UploadQueueError/Code/inUse`` if this process makes another queue
    ///   with the session, or if another process sends the uploads of a queue without a session. `CancellationError` if
    ///   the task is cancelled.
    @concurrent
    public func run(endsWhenEmpty: Bool = false) async throws {
        guard let sender else {
            var (client, options) = (UploadClient(), QueueOptions(endsWhenEmpty: endsWhenEmpty))
            if let session {
                client.timeouts.idle = session.idleTimeout
                options.retryPolicy = session.retryPolicy
                options.headerFields = session.headerFields
                options.presignedForm = session.presignedForm
                client.responses.acceptedStatuses = session.acceptedStatuses
                options.accepts = session.accepts
            }
            return try await run(client, options: options)
        }
        let store = try await opening.storeOnceUnlocked(time)
        // If the cleanup fails, the next run tries it again.
        try? store.sweep(at: time.date())
        if endsWhenEmpty { await resumeImports() }
        sender.start()
        try await settleExtensions()
        // From here on, the app may be suspended and ended without notice.
        defer { store.database.noteRest() }
        try await withThrowingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask { [changes = store.changes, pollInterval = store.broadcast.pollInterval, time] in
                // Other processes, such as a share extension, may change the queue, and uploads may expire.
                while true {
                    try await time.sleep(time.instant() + (time.pollInterval ?? pollInterval))
                    changes.notify()
                }
            }
            group.addTask { [self] in await keepImporting() }
            group.addTask { [updates = store.updates] in
                // The states of uploads that wait for a network may have changed.
                for await _ in NetworkMonitor.shared.changes() { updates.notify() }
            }
            for await _ in store.changes.stream() {
                try sender.checkFailure()
                try? store.saveProgress()
                store.updates.notify()
                if endsWhenEmpty, try !store.database.read({ try $0.hasOpenUploads(of: sender.session.identifier) }) {
                    return
                }
                sender.noteChange()
            }
        }
        try Task.checkCancellation()
    }

    /// Hands due uploads to the system and returns, for an extension that is about to end. Unlike
    /// ``enqueue(_:to:method:headerFields:conditions:tag:)``, this method waits until the system has the uploads, and
    /// throws an error if that fails. The uploads continue when the extension ends.
    ///
    /// The method does nothing for a queue without a session, and on Linux.
    ///
    /// - Throws: ``UploadQueueError`` if the queue cannot be opened or the database fails, and with these codes:
    ///   ``UploadQueueError/Code/suspended`` if the system is about to suspend the app,
    ///   ``UploadQueueError/Code/sessionInUse`` if another process uses the session, and
    ///   ``UploadQueueError/Code/sessionUnavailable`` if the system does not accept its uploads for another reason. The
    ///   uploads then wait until the app or an extension hands them over again. `CancellationError` if this process
    ///   makes another queue with the session.
    public func handOver() async throws {
        try await sender?.handOver()
    }

    /// Sends the queue's uploads in this process until the task is cancelled.
    ///
    /// Uploads that were being sent when a process ended are sent again with the same `Idempotency-Key`. If the server
    /// resumes uploads, they start at the first byte that the server is missing. When the task is cancelled, uploads
    /// that are being sent go back into the queue.
    ///
    /// A queue with a session hands no uploads to the system while this method runs, and hands over the remaining
    /// uploads when it ends. So a task that the system lets run for a while, such as a `BGContinuedProcessingTask`,
    /// sends as fast as the app in the foreground, and the system takes over when the task expires. The system keeps
    /// the uploads that it already has.
    ///
    /// - Parameters:
    ///   - client: The client, with its transport, timeouts, rules and interceptors. Its total timeout counts from the
    ///     upload's first attempt, even while no process is running. An upload whose interceptor throws an error is
    ///     tried again according to the retry policy of `options`. The client's own retry and resumption policies do
    ///     not apply.
    ///   - options: The settings for sending, such as the number of uploads at a time.
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/inUse`` if another process sends from the
    ///   queue, and with other codes if the database fails; `CancellationError` if the task is cancelled.
    @concurrent
    public func run(_ client: UploadClient, options: QueueOptions = QueueOptions()) async throws {
        sender?.localRunBegins()
        defer { sender?.localRunEnds() }
        let store = try await opening.storeOnceUnlocked(time)
        reporter?.start()
        let lock = try store.directory.lock()
        defer { withExtendedLifetime(lock) {} }
        if options.endsWhenEmpty { await resumeImports() }
        async let _: Void = keepImporting()
        let result: Result<Void, any Error>
        do {
            result = .success(try await LocalSender(store, client, options, time).run())
        } catch {
            result = .failure(error)
        }
        await reporter?.reportAll()
        try result.get()
    }

    /// Handles the events for which the system woke the app. Returns when all events are handled, the next uploads are
    /// handed to the system, and the queue's closure was called for each upload that has ended. Returns after
    /// ``BackgroundSession/maximumWakeUp`` at the latest.
    ///
    /// ```swift
    /// .backgroundTask(.urlSession("com.example.pets")) { await queue.handleEvents() }
    /// ```
    public func handleEvents() async {
        await sender?.handleEvents()
    }

    /// Handles the events of a session for which the system woke the app: the queue's own session, or the session of
    /// an extension. If an extension's upload must be sent again, the queue's own session sends it.
    ///
    /// ```swift
    /// .backgroundTask(.urlSession(matching: { $0.hasPrefix("com.example.pets.share.") })) { identifier in
    ///     await queue.handleEvents(forSession: identifier)
    /// }
    /// ```
    ///
    /// - Parameter identifier: The session's identifier.
    public func handleEvents(forSession identifier: String) async {
        guard let other = settler(of: identifier) else { return await handleEvents() }
        await other.handleEvents()
        sender?.handOverSoon()
    }

    /// Handles the events for which the system woke the app, in an app with a `UIApplicationDelegate`. An app with an
    /// extension that sends uploads calls ``handleEvents(forSession:)`` and then the completion handler instead.
    ///
    /// ```swift
    /// func application(
    ///     _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     // The sessions of other libraries are theirs.
    ///     guard identifier == "com.example.pets" else { return }
    ///     UploadQueue.handleEvents(forSession: identifier, completionHandler: completionHandler)
    /// }
    /// ```
    ///
    /// The session's queue may be made before or after this call.
    ///
    /// - Parameters:
    ///   - identifier: The session's identifier.
    ///   - completionHandler: Called once, on the main actor, when the queue has handled all events and handed over the
    ///     next uploads, or after ``BackgroundSession/maximumWakeUp``. Without a queue for the session, it is called
    ///     after 20 seconds at the latest.
    @MainActor
    public static func handleEvents(
        forSession identifier: String, completionHandler: @escaping () -> Void
    ) {
        let handler = WakeUpHandler(completionHandler)
        BackgroundSessionRegistry.current.wakeUp(identifier) {
            Task { @MainActor in handler.call() }
        }
    }

    /// Returns when all events of the transfer service are handled, and the app's closure was called for ended uploads.
    package func rested() async {
        for sender in [sender].compactMap(\.self) + others.withLock({ Array($0.values) }) { await sender.rested() }
        await reporter?.rested()
    }

    /// Disconnects this process from the transfer service, whose transfers continue.
    package func disconnect() async {
        let senders = [sender].compactMap(\.self) + others.withLock { Array($0.values) }
        for sender in senders { sender.close() }
        for sender in senders { await sender.closed() }
    }
}

extension BackgroundSender {
    /// Handles the events of a wake-up, and returns when it is time to call the system's completion handler.
    func handleEvents() async {
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        wakeUp { continuation.finish() }
        for await _ in stream {}
    }
}

/// Holds a completion handler on the main actor, because UIKit does not declare it Sendable.
@MainActor
private final class WakeUpHandler {
    let call: () -> Void

    init(_ call: @escaping () -> Void) {
        self.call = call
    }
}
