public import PostcardClient
import PostcardFoundation

extension UploadQueue {
    /// Hands uploads that are due to the system, and records their progress and outcomes, until the task is cancelled.
    ///
    /// The uploads continue when the task is cancelled and when the app is suspended or closed. Run the queue while the
    /// app is in the foreground, so that new uploads are handed over at once and progress is shown.
    ///
    /// On Linux, and for a queue without a session, an ``PostcardClient/UploadClient`` sends the uploads in this
    /// process: with the session's idle timeout, policy, header fields and presigned forms, or else with default
    /// settings.
    ///
    /// - Parameter endsWhenEmpty: Whether to return when no upload is left that can be sent. Defaults to `false`.
    /// - Throws: ``UploadQueueError`` if the queue cannot be opened, if the database fails, with code
    ///   ``UploadQueueError/Code/session`` if the system does not carry the session's uploads, or with code
    ///   ``UploadQueueError/Code/inUse`` if this process makes another queue with the session or, where this process
    ///   sends the uploads itself, if another process does; `CancellationError` if the task is cancelled.
    @concurrent
    public func run(endsWhenEmpty: Bool = false) async throws {
        guard let sender else {
            var (client, options) = (UploadClient(), QueueOptions(endsWhenEmpty: endsWhenEmpty))
            if let session {
                client.timeouts.idle = session.idleTimeout
                options.retryPolicy = session.retryPolicy
                options.headerFields = session.headerFields
                options.presignedForm = session.presignedForm
            }
            return try await run(client, options: options)
        }
        let store = try await opening.storeOnceUnlocked(time)
        // If this fails, the next run tries again.
        try? store.sweep(at: time.date())
        sender.start()
        // The app may be suspended from here on, and then ended without notice.
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
            group.addTask { [updates = store.updates] in
                // Uploads may wait for a network.
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

    /// Hands uploads that are due to the system and returns, for an extension that is about to end. The uploads
    /// continue.
    ///
    /// Does nothing for a queue without a session, and on Linux.
    ///
    /// - Throws: ``UploadQueueError`` if the queue cannot be opened, if the database fails, with code
    ///   ``UploadQueueError/Code/suspended`` if the system is about to suspend the app, or with code
    ///   ``UploadQueueError/Code/session`` if the system does not carry the session's uploads; `CancellationError` if
    ///   this process makes another queue with the session.
    public func handOver() async throws {
        try await sender?.handOver()
    }

    /// Sends the queue's uploads in this process until the task is cancelled.
    ///
    /// Uploads that were being sent when a process ended are sent again with the same `Idempotency-Key`. If the server
    /// resumes uploads, they start at the first byte that it is missing. When the task is cancelled, uploads that are
    /// being sent go back into the queue. Uploads that ``run(endsWhenEmpty:)`` has handed to the system stay with it.
    ///
    /// - Parameters:
    ///   - client: The client, with its transport, timeouts, rules and interceptors. Its total timeout counts from the
    ///     upload's first attempt, also while no process is running. An upload whose interceptor throws an error is
    ///     tried again by the policy of the options. The client's retry policy and its resumption policy are not used.
    ///   - options: How the uploads are sent, such as how many at a time.
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/inUse`` if another process sends from the
    ///   queue, and with other codes if the database fails; `CancellationError` if the task is cancelled.
    @concurrent
    public func run(_ client: UploadClient, options: QueueOptions = QueueOptions()) async throws {
        let store = try await opening.storeOnceUnlocked(time)
        let lock = try store.directory.lock()
        defer { withExtendedLifetime(lock) {} }
        try await LocalSender(store, client, options, time).run()
    }

    /// Handles the events for which the system woke the app. Returns when all of them are settled and what follows is
    /// handed over, or after ``BackgroundSession/maximumWakeUp``.
    ///
    /// ```swift
    /// .backgroundTask(.urlSession("com.example.pets")) { await queue.handleEvents() }
    /// ```
    public func handleEvents() async {
        guard let sender else { return }
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        sender.wakeUp { continuation.finish() }
        for await _ in stream {}
    }

    /// Handles the events for which the system woke the app, in an app with a `UIApplicationDelegate`.
    ///
    /// ```swift
    /// func application(
    ///     _ application: UIApplication, handleEventsForBackgroundURLSession identifier: String,
    ///     completionHandler: @escaping () -> Void
    /// ) {
    ///     UploadQueue.handleEvents(forSession: identifier, completionHandler: completionHandler)
    /// }
    /// ```
    ///
    /// The queue with the session may be made before or after this call.
    ///
    /// - Parameters:
    ///   - identifier: The session's identifier.
    ///   - completionHandler: Called once, on the main actor, when the queue has settled all events and handed over
    ///     what follows, or after ``BackgroundSession/maximumWakeUp``, and after 20 seconds at most if there is no
    ///     queue with the session yet.
    @MainActor
    public static func handleEvents(
        forSession identifier: String, completionHandler: @escaping () -> Void
    ) {
        let handler = WakeUpHandler(completionHandler)
        BackgroundSessionRegistry.shared.wakeUp(identifier) {
            Task { @MainActor in handler.call() }
        }
    }

    /// Disconnects this process from the transfer service. Transfers continue.
    package func disconnect() async {
        sender?.close()
        await sender?.closed()
    }
}

/// Keeps a completion handler, which UIKit does not declare Sendable, on the main actor.
@MainActor
private final class WakeUpHandler {
    let call: () -> Void

    init(_ call: @escaping () -> Void) {
        self.call = call
    }
}
