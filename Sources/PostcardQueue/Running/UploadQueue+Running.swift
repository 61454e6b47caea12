public import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadQueue {
    /// Hands everything that is due to the system, and follows it, until the task is cancelled.
    ///
    /// The uploads go on when the task is cancelled, when the app is suspended and when it is gone. Run the queue while the
    /// app is in the foreground, so that new uploads are handed over at once and progress is shown.
    ///
    /// On Linux, and for a queue without a session, an ``PostcardClient/UploadClient`` with the default settings sends the
    /// uploads in this process.
    ///
    /// - Parameter endsWhenEmpty: Whether it returns when nothing is left that can be done. Defaults to `false`.
    /// - Throws: ``UploadQueueError`` if the database fails; `CancellationError`.
    public func run(endsWhenEmpty: Bool = false) async throws {
        guard let outbox else {
            var options = QueueOptions(endsWhenEmpty: endsWhenEmpty)
            if let session { options.retryPolicy = session.retryPolicy }
            return try await run(UploadClient(), options: options)
        }
        try store.sweep()
        outbox.start()
        try await withThrowingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask { [changes = store.changes] in
                // For what other processes do, such as a share extension.
                while true {
                    try await Task.sleep(for: .seconds(1), clock: .continuous)
                    changes.note()
                }
            }
            for await _ in store.changes.stream() {
                try outbox.checkFailure()
                try? store.saveProgress()
                store.sights.note()
                if endsWhenEmpty, try !store.database.read({ try $0.hasOpenUploads(of: outbox.session.identifier) }) {
                    return
                }
                outbox.noteChange()
            }
        }
        try Task.checkCancellation()
    }

    /// Hands everything that is due to the system and returns when that is done, for an extension that ends right after. The
    /// uploads go on.
    ///
    /// Does nothing for a queue without a session, and on Linux.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails; an error of the session.
    public func handOver() async throws {
        try await outbox?.handOver()
    }

    /// Sends what is in the queue and what is put into it, in this process, until the task is cancelled.
    ///
    /// Uploads that were being sent when a process ended are sent again, under the same `Idempotency-Key`, and from the first
    /// byte that the server is missing if it resumes uploads. When the task is cancelled, uploads that are being sent go back
    /// into the queue. What was handed to the system by ``run(endsWhenEmpty:)`` is left to it.
    ///
    /// - Parameters:
    ///   - client: What sends them: its transport, timeouts, rules and interceptors. Its policies for retries and
    ///     resumption are not used.
    ///   - options: How many at a time, and the like.
    /// - Throws: ``UploadQueueError`` if another process sends from the queue, or if the database fails;
    ///   `CancellationError`.
    public func run(_ client: UploadClient, options: QueueOptions = QueueOptions()) async throws {
        let lock = try store.folder.lock()
        defer { withExtendedLifetime(lock) {} }
        try await QueueRun(store, client, options).run()
    }

    /// Handles the events that the system has woken the app for, and returns when all of them are settled and what follows is
    /// handed over.
    ///
    /// ```swift
    /// .backgroundTask(.urlSession("com.example.pets")) { await queue.handleEvents() }
    /// ```
    public func handleEvents() async {
        guard let outbox else { return }
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        outbox.wakeUp { continuation.finish() }
        for await _ in stream {}
    }

    /// Handles the events that the system has woken the app for, in an app with a `UIApplicationDelegate`.
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
    /// The queue of the session may be made before or after this call.
    ///
    /// - Parameters:
    ///   - identifier: The session's identifier.
    ///   - completionHandler: Called once on the main actor, when the queue has settled all events and handed over what
    ///     follows.
    @MainActor
    public static func handleEvents(
        forSession identifier: String, completionHandler: @escaping () -> Void
    ) {
        let handler = WakeUpHandler(completionHandler)
        BackgroundSessions.shared.wakeUp(identifier) {
            Task { @MainActor in handler.call() }
        }
    }

    /// Ends this process's part in carrying uploads, which go on; waits until that is done.
    package func disconnect() async {
        outbox?.close()
        await outbox?.closed()
    }
}

/// Holds a completion handler of UIKit's, which is not Sendable, where it was passed: on the main actor.
@MainActor
private final class WakeUpHandler {
    let call: () -> Void

    init(_ call: @escaping () -> Void) {
        self.call = call
    }
}
