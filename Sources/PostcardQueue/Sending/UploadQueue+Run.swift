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
    /// back into the queue.
    ///
    /// - Parameters:
    ///   - client: What sends them: its transport, timeouts, rules and interceptors. Its policies for retries and
    ///     resumption are not used.
    ///   - options: How many at a time, and the like.
    /// - Throws: ``UploadQueueError`` where another process sends from the queue, or where the database fails;
    ///   `CancellationError`.
    public func run(_ client: UploadClient, options: QueueOptions = QueueOptions()) async throws {
        let lock = try QueueDirectory.Lock(directory)
        defer { withExtendedLifetime(lock) {} }
        try database.write { try $0.recoverUploads() }
        let folders = try database.read { try $0.folders() }
        directory.sweep(keeping: folders, now: .now)
        try await QueueRun(self, client, options).run()
    }
}
#endif
