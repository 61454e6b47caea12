public import Observation

/// The uploads of a queue as a list on a screen, with what a person can do to them.
///
/// ```swift
/// struct Outbox: View {
///     @State var list: UploadQueueList
///     var body: some View {
///         List(list.uploads) { upload in
///             ProgressView(upload.parts.compactMap(\.filename).joined(separator: ", "), value: upload.fraction)
///         }
///         .task { await list.follow() }
///     }
/// }
/// ```
///
/// An action that is not possible any more, such as cancelling an upload that is done, changes nothing and is noted in
/// ``error``.
@MainActor @Observable
public final class UploadQueueList {
    /// The uploads, in the order in which they were enqueued.
    public private(set) var uploads: [QueuedUpload] = []

    /// Whether the whole queue is paused.
    public private(set) var isPaused = false

    /// What went wrong in the last action, or why the list no longer follows the queue; `nil` if nothing did.
    public private(set) var error: UploadQueueError?

    /// The queue.
    @ObservationIgnored public let queue: UploadQueue
    @ObservationIgnored private let limit: Int

    /// Makes a list that is empty until ``follow()`` runs.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - limit: The most uploads shown, the newest ones. Defaults to 1,000.
    public init(_ queue: UploadQueue, limit: Int = 1000) {
        self.queue = queue
        self.limit = limit
    }

    /// The share of all uploads' bytes that was sent, from 0 to 1. Cancelled and failed uploads do not count.
    public var fraction: Double {
        let counted = uploads.filter { upload in
            switch upload.state {
            case .failed, .cancelled: false
            case .waiting, .sending, .retrying, .paused, .done: true
            }
        }
        let total = counted.reduce(0.0) { $0 + Double($1.totalBytes) }
        return total > 0 ? counted.reduce(0.0) { $0 + $1.fraction * Double($1.totalBytes) } / total : 0
    }

    /// Keeps the list up to date until the task is cancelled.
    public func follow() async {
        error = nil
        do {
            for try await uploads in QueueUpdates(queue: queue, limit: limit, start: 0, keepsNewest: true) {
                if uploads != self.uploads { self.uploads = uploads }
                let isPaused = try queue.isPaused
                if isPaused != self.isPaused { self.isPaused = isPaused }
            }
        } catch {
            self.error = error as? UploadQueueError
        }
    }

    /// Stops an upload until it is resumed.
    public func pause(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.pause(id) } }

    /// Lets a paused upload be sent again.
    public func resume(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.resume(id) } }

    /// Sends an upload again that failed or was cancelled.
    public func retry(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.retry(id) } }

    /// Cancels an upload.
    public func cancel(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.cancel(id) } }

    /// Stops the whole queue, also for uploads that are enqueued later.
    public func pauseAll() { perform { () throws(UploadQueueError) in try queue.pause() } }

    /// Lets the whole queue send again.
    public func resumeAll() { perform { () throws(UploadQueueError) in try queue.resume() } }

    /// Sends every failed upload again.
    public func retryAll() { perform { () throws(UploadQueueError) in try queue.retryAll() } }

    /// Cancels every upload that has not ended.
    public func cancelAll() { perform { () throws(UploadQueueError) in try queue.cancelAll() } }

    /// Removes every upload that is done, failed or cancelled.
    public func clear() { perform { () throws(UploadQueueError) in try queue.clear() } }

    private func perform(_ action: () throws(UploadQueueError) -> Void) {
        do throws(UploadQueueError) {
            try action()
            error = nil
        } catch {
            self.error = error
        }
    }
}
