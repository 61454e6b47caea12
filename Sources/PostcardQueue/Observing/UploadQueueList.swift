public import Observation

/// A model for a screen that lists a queue's uploads, with actions for buttons.
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
/// An action that is no longer possible, such as cancelling an upload that is done, changes nothing and sets ``error``.
@MainActor @Observable
public final class UploadQueueList {
    /// The uploads, in the order in which they were enqueued.
    public private(set) var uploads: [QueuedUpload] = []

    /// Whether the whole queue is paused.
    public private(set) var isPaused = false

    /// Why the latest action failed, or why the list stopped following the queue. `nil` if nothing failed.
    public private(set) var error: UploadQueueError?

    /// The queue.
    @ObservationIgnored public let queue: UploadQueue
    @ObservationIgnored private let limit: Int

    /// Makes a list that is empty until ``follow()`` runs.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - limit: The maximum number of uploads in the list. The newest ones are listed. Defaults to 1,000.
    public init(_ queue: UploadQueue, limit: Int = 1000) {
        self.queue = queue
        self.limit = limit
    }

    /// The fraction of all uploads' bytes that was sent, from 0 to 1. Cancelled and failed uploads do not count.
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

    /// Keeps the list up to date until the task is cancelled or the queue cannot be read, which sets ``error``.
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

    /// Pauses an upload.
    public func pause(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.pause(id) } }

    /// Resumes a paused upload.
    public func resume(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.resume(id) } }

    /// Sends an upload again that failed or was cancelled, or sends it now if it waits for its next attempt.
    public func retry(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.retry(id) } }

    /// Cancels an upload.
    public func cancel(_ id: QueuedUpload.ID) { perform { () throws(UploadQueueError) in try queue.cancel(id) } }

    /// Pauses the whole queue, including uploads that are enqueued later.
    public func pause() { perform { () throws(UploadQueueError) in try queue.pause() } }

    /// Resumes the whole queue. Uploads that were paused one by one stay paused.
    public func resume() { perform { () throws(UploadQueueError) in try queue.resume() } }

    /// Sends every failed upload again.
    public func retryAll() { perform { () throws(UploadQueueError) in try queue.retryAll() } }

    /// Cancels all uploads that have not ended.
    public func cancelAll() { perform { () throws(UploadQueueError) in try queue.cancelAll() } }

    /// Removes all uploads that are done, failed or cancelled.
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
