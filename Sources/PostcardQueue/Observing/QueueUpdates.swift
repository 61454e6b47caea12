/// The uploads of a queue: at once, and again whenever something has changed.
///
/// ```swift
/// for try await uploads in queue.updates(limit: 100) {
///     show(uploads)
/// }
/// ```
///
/// Changes that come faster than they are taken are one, and two elements are at least a quarter of a second apart. What
/// another process does is seen while this one runs the queue.
public struct QueueUpdates: AsyncSequence, Sendable {
    let queue: UploadQueue
    let limit: Int
    let start: QueuedUpload.ID
    /// Whether the limit keeps the newest instead of the oldest.
    var keepsNewest = false

    public struct AsyncIterator: AsyncIteratorProtocol {
        private let queue: UploadQueue
        private let limit: Int
        private let start: QueuedUpload.ID
        private let keepsNewest: Bool
        private var wakes: AsyncStream<Void>.Iterator
        private var last: ContinuousClock.Instant?

        init(_ updates: QueueUpdates) {
            queue = updates.queue
            limit = updates.limit
            start = updates.start
            keepsNewest = updates.keepsNewest
            wakes = queue.store.sights.stream().makeAsyncIterator()
        }

        /// The uploads as they are now; `nil` when the task is cancelled.
        ///
        /// - Throws: ``UploadQueueError``.
        public mutating func next() async throws -> [QueuedUpload]? {
            if let last { try? await Task.sleep(until: last + .milliseconds(250), clock: .continuous) }
            guard await wakes.next(isolation: #isolation) != nil else { return nil }
            last = .now
            return try queue.uploads(
                limit: limit, after: keepsNewest ? try queue.idBeforeNewest(limit) : start)
        }
    }

    public func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(self)
    }
}

extension UploadQueue {
    /// Follows the uploads.
    ///
    /// - Parameters:
    ///   - limit: The most uploads in a list. Defaults to all.
    ///   - id: Only those after this one. Defaults to all.
    public func updates(limit: Int = .max, after id: QueuedUpload.ID = 0) -> QueueUpdates {
        QueueUpdates(queue: self, limit: limit, start: id)
    }
}
