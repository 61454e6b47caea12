/// The uploads of a queue as an asynchronous sequence of lists: the current list, and a new list after each change.
///
/// ```swift
/// for try await uploads in queue.updates(limit: 100) {
///     show(uploads)
/// }
/// ```
///
/// Lists are at least 250 milliseconds apart, and combine the changes in between. On Apple platforms, changes by other
/// processes cause a new list too. On Linux, such changes are in the list that follows the next change by this process.
public struct QueueUpdates: AsyncSequence, Sendable {
    let queue: UploadQueue
    let limit: Int
    let start: QueuedUpload.ID
    /// Whether a list has the newest uploads instead of the oldest, if there are more than the limit.
    var keepsNewest = false

    /// Waits for changes of the queue, and reads the uploads after each change.
    public struct Iterator: AsyncIteratorProtocol {
        private let queue: UploadQueue
        private let limit: Int
        private let start: QueuedUpload.ID
        private let keepsNewest: Bool
        private var changes: AsyncStream<Void>.Iterator
        private var last: ContinuousClock.Instant?
        /// The rows of the last read, and the version of the database's rows just before that read.
        private var rows: [QueuedUpload] = []
        private var version: Int?

        init(_ updates: QueueUpdates) {
            queue = updates.queue
            limit = updates.limit
            start = updates.start
            keepsNewest = updates.keepsNewest
            changes = queue.opening.updates.stream().makeAsyncIterator()
        }

        /// Waits for the next change and returns the uploads. Returns `nil` if the task is cancelled.
        ///
        /// - Throws: ``UploadQueueError`` if the database cannot be read.
        public mutating func next() async throws -> [QueuedUpload]? { try await nextList()?.uploads }

        /// Waits for the next change and returns the uploads. The rows are read from the database only if more than the
        /// progress of uploads has changed, and then `hasNewRows` is true.
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
    /// The uploads as a sequence of lists, for a screen.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of uploads in a list, oldest first. Defaults to no limit.
    ///   - id: The identifier after which the list starts. Defaults to 0, the beginning.
    public func updates(limit: Int = .max, after id: QueuedUpload.ID = 0) -> QueueUpdates {
        QueueUpdates(queue: self, limit: limit, start: id)
    }
}

/// The uploads of a queue that have ended, as an asynchronous sequence. First come the uploads that the app has not
/// acknowledged, in the order in which they ended. Then each other upload follows when it ends. Each upload is returned
/// once or more.
///
/// ```swift
/// for try await upload in queue.outcomes {
///     if case .done(let response) = upload.state { try save(response, of: upload) }
///     try await queue.acknowledge(upload)
/// }
/// ```
///
/// An upload that is not acknowledged stays in the queue with its response, and the next loop returns it again. An
/// acknowledged upload is returned again only if it is retried and ends once more, even after restarts.
///
/// On Linux, uploads that end in another process are returned when this process sends or changes an upload.
public struct EndedUploads: AsyncSequence, Sendable {
    let queue: UploadQueue

    /// Reads the uploads that have ended, and waits for further ones.
    public struct Iterator: AsyncIteratorProtocol {
        private let queue: UploadQueue
        private var changes: AsyncStream<Void>.Iterator
        /// The sequence number of the latest end that was read.
        private var last: Int64 = 0
        /// Uploads that were read and not returned yet.
        private var read: ArraySlice<QueuedUpload> = []

        init(_ queue: UploadQueue) {
            self.queue = queue
            changes = queue.opening.ends.stream().makeAsyncIterator()
        }

        /// Waits until an upload has ended and returns it. Returns `nil` if the task is cancelled.
        ///
        /// - Throws: ``UploadQueueError`` if the database cannot be read.
        public mutating func next() async throws -> QueuedUpload? {
            while true {
                if let upload = read.popFirst() { return upload }
                let (uploads, last) = try await queue.unacknowledged(after: last)
                if last > self.last {
                    (read, self.last) = (uploads[...], last)
                } else if await changes.next(isolation: #isolation) == nil {
                    return nil
                }
            }
        }
    }

    public func makeAsyncIterator() -> Iterator { Iterator(queue) }
}

extension UploadQueue {
    /// The uploads that are done, failed or cancelled, each until the app acknowledges it (see ``EndedUploads``).
    public var outcomes: EndedUploads { EndedUploads(queue: self) }

    /// Acknowledges the end of an upload, so that ``outcomes`` does not return it again. An upload that is done stays
    /// in the list within the limits of ``UploadRetention``.
    ///
    /// - Parameter upload: The upload from ``outcomes``. If it has ended again since, the new end is not acknowledged.
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func acknowledge(_ upload: QueuedUpload) async throws(UploadQueueError) { try await acknowledge([upload]) }

    /// Acknowledges the ends of several uploads, in one write.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func acknowledge(_ uploads: [QueuedUpload]) async throws(UploadQueueError) {
        try await work { [time] store throws(UploadQueueError) in try store.acknowledge(uploads, at: time.date()) }
    }

    /// Reads uploads that have ended and that the app has not acknowledged, in the order in which they ended.
    ///
    /// - Parameter end: Only ends with a higher sequence number are read. Defaults to 0, which is before all ends.
    /// - Returns: The uploads, and the sequence number of the latest end that was read.
    package func unacknowledged(
        after end: Int64 = 0
    ) async throws(UploadQueueError) -> (uploads: [QueuedUpload], last: Int64) {
        try await work { store throws(UploadQueueError) in try store.unacknowledged(after: end) }
    }
}
