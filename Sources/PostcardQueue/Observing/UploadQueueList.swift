#if Queue
public import Observation

/// The uploads of a queue as a list on a screen.
///
/// ```swift
/// struct Outbox: View {
///     @State var list: UploadQueueList
///     var body: some View {
///         List(list.uploads) { Text($0.state.name) }
///             .task { await list.follow() }
///     }
/// }
/// ```
@MainActor @Observable
public final class UploadQueueList {
    /// The uploads, in the order in which they were enqueued.
    public private(set) var uploads: [QueuedUpload] = []

    /// Why the list follows the queue no more, where that is so.
    public private(set) var error: UploadQueueError?

    /// The queue, for what the list cannot do itself.
    @ObservationIgnored public let queue: UploadQueue
    @ObservationIgnored private let limit: Int

    /// Makes a list that is empty until ``follow()`` runs.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - limit: The most uploads shown.
    public init(_ queue: UploadQueue, limit: Int = 1000) {
        self.queue = queue
        self.limit = limit
    }

    /// Keeps the list true to the queue, until the task is cancelled.
    public func follow() async {
        error = nil
        do {
            for try await uploads in queue.updates(limit: limit) where uploads != self.uploads {
                self.uploads = uploads
            }
        } catch {
            self.error = error as? UploadQueueError
        }
    }
}
#endif
