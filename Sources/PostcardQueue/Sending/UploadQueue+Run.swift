#if Queue
public import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadQueue {
    /// Sends what is in the queue, and what is put into it, until the task is cancelled.
    ///
    /// Uploads that were on their way when a process ended are sent again, under the same `Idempotency-Key`, and from the
    /// byte on that the server has not got where it resumes uploads. When the task is cancelled, those on their way go
    /// back into the queue. What ``run(in:options:)`` has handed to the system is left to it and stays
    /// ``QueuedUpload/State/sending``, until the queue is run in the background again, or it is cancelled and retried.
    ///
    /// - Parameters:
    ///   - client: What sends them: its transport, timeouts, rules and interceptors. Its policies for retries and
    ///     resumption are not used.
    ///   - options: How many at a time, and the like.
    /// - Throws: ``UploadQueueError`` where another process sends from the queue, or where the database fails;
    ///   `CancellationError`.
    public func run(_ client: UploadClient, options: QueueOptions = QueueOptions()) async throws {
        var client = client
        client.retryPolicy = .never
        client.resumption = options.resumption
        try await run(by: .client(client), options)
    }

    /// Sends what is in the queue, and what is put into it, by uploads that go on while the app is suspended or gone.
    ///
    /// ```swift
    /// let uploads = try await BackgroundUploads(
    ///     identifier: "com.example.pets", directory: folder.appending(path: "background"))
    /// let queue = try UploadQueue(directory: folder.appending(path: "queue"))
    /// try await queue.run(in: uploads)
    /// ```
    ///
    /// Make both at every start of the app, also where the system starts it because uploads have ended, and hand
    /// `handleEvents(completionHandler:)` of the background uploads what the system gives. What was handed over before
    /// is found again, whenever the app ended: what is on its way is followed, what has ended is written down, and what
    /// nobody knows of is begun anew from the same bytes, under the same `Idempotency-Key`.
    ///
    /// So many uploads as ``QueueOptions/concurrency`` says are handed to the system at a time, each as a file of its
    /// own. An app that is suspended hands over no more: give as many as should go on without it, and room for their
    /// forms. When the task is cancelled, what was handed over goes on and stays ``QueuedUpload/State/sending``; on
    /// Linux it ends with the process, and the next run begins it anew.
    ///
    /// There are no interceptors here: header fields are those that the form was enqueued with.
    ///
    /// - Parameters:
    ///   - uploads: What carries them, with the identifier and folder of the run before: what others have is not found
    ///     here, is sent a second time, and stays there. It may hold other uploads too. Leave the queue's own alone: it
    ///     removes them as they end, and sends anew what somebody else has removed.
    ///   - options: How many at a time, and the like. Uploads are not resumed: the policy for that is not used.
    /// - Throws: ``UploadQueueError`` where another process sends from the queue, or where the database fails;
    ///   `BackgroundUploadError` where the background uploads were closed; `CancellationError`.
    public func run(in uploads: BackgroundUploads, options: QueueOptions = QueueOptions()) async throws {
        try await run(by: .background(uploads), options)
    }

    private func run(by carrier: QueueCarrier, _ options: QueueOptions) async throws {
        let lock = try QueueDirectory.Lock(directory)
        defer { withExtendedLifetime(lock) {} }
        let recovered = try carrier.recover(self, options)
        let folders = try database.read { try $0.folders() }
        directory.sweep(keeping: folders, now: .now)
        try await QueueRun(self, carrier, options).run(resuming: recovered)
    }
}
#endif
