/// The uploads of a queue as an asynchronous sequence: the current list at once, and a new one after each change.
///
/// ```swift
/// for try await uploads in queue.updates(limit: 100) {
///     show(uploads)
/// }
/// ```
///
/// Lists are at least 250 milliseconds apart, and changes in between are combined. On Apple platforms, the queue is
/// notified of uploads that other processes enqueue or change. On Linux, the next list has such changes, but they cause none
/// by themselves: a list follows once this process begins, ends or changes an upload.
public struct QueueUpdates: AsyncSequence, Sendable {
    let queue: UploadQueue
    let limit: Int
    let start: QueuedUpload.ID
    /// Whether the limit applies to the newest uploads instead of the oldest.
    var keepsNewest = false

    /// Waits for changes of the queue, and reads the uploads after each.
    public struct Iterator: AsyncIteratorProtocol {
        private let queue: UploadQueue
        private let limit: Int
        private let start: QueuedUpload.ID
        private let keepsNewest: Bool
        private var changes: AsyncStream<Void>.Iterator
        private var last: ContinuousClock.Instant?
        /// The rows as they were read, and the version of the queue's rows before that.
        private var rows: [QueuedUpload] = []
        private var version: Int?

        init(_ updates: QueueUpdates) {
            queue = updates.queue
            limit = updates.limit
            start = updates.start
            keepsNewest = updates.keepsNewest
            changes = queue.opening.updates.stream().makeAsyncIterator()
        }

        /// Waits for the next change and returns the uploads, or `nil` if the task is cancelled.
        ///
        /// - Throws: ``UploadQueueError`` if the database cannot be read.
        public mutating func next() async throws -> [QueuedUpload]? { try await nextList()?.uploads }

        /// Waits for the next change, and reads the rows unless there is only progress.
        mutating func nextList() async throws -> (uploads: [QueuedUpload], hasNewRows: Bool)? {
            if let last { try? await Task.sleep(until: last + .milliseconds(250), clock: .continuous) }
            guard await changes.next(isolation: #isolation) != nil else { return nil }
            last = .now
            let latest = queue.opening.updates.version
            let hasNewRows = version != latest
            if hasNewRows {
                rows = try await queue.rows(limit: limit, after: keepsNewest ? nil : start)
                version = latest
            }
            return (try await queue.current(rows), hasNewRows)
        }
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(self)
    }
}

extension UploadQueue {
    /// Follows the uploads, to show them.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of uploads in a list, oldest first. Defaults to no limit.
    ///   - id: The identifier after which the list starts. Defaults to 0: from the beginning.
    public func updates(limit: Int = .max, after id: QueuedUpload.ID = 0) -> QueueUpdates {
        QueueUpdates(queue: self, limit: limit, start: id)
    }
}
