public import Observation
public import PostcardFoundation

/// A model for a screen that lists a queue's uploads, with actions for buttons.
///
/// ```swift
/// struct Outbox: View {
///     @State var list: UploadQueueList
///     var body: some View {
///         List(list.uploads) { upload in
///             ProgressView(upload.parts.compactMap(\.filename).joined(separator: ", "), value: upload.fraction)
///         }
///         .task { await list.run() }
///     }
/// }
/// ```
///
/// Actions work in the background, one after the other. Each returns a task that ends with the action. An action that
/// is no longer possible, such as cancelling an upload that is done, changes nothing and sets ``error``.
@MainActor @Observable
public final class UploadQueueList {
    /// The uploads, in the order in which they were enqueued.
    public private(set) var uploads: [QueuedUpload] = []

    /// Whether the whole queue is paused.
    public private(set) var isPaused = false

    /// The error of the latest action, or else of following the queue, or else of sending; `nil` if nothing failed.
    /// Following and sending are tried again if the error may pass.
    public var error: UploadQueueError? { actionError ?? followingError ?? sendingError }

    private var actionError: UploadQueueError?
    private var followingError: UploadQueueError?
    private var sendingError: UploadQueueError?
    /// The uploads that were done before the list started to follow the queue; `nil` until then.
    private var doneBefore: Set<QueuedUpload.ID>?

    /// The queue.
    @ObservationIgnored public let queue: UploadQueue
    @ObservationIgnored private let limit: Int
    /// The task of the latest action.
    @ObservationIgnored private var latest: Task<Void, Never>?

    /// Makes a list that is empty until ``run()`` or ``follow()`` runs.
    ///
    /// - Parameters:
    ///   - queue: The queue.
    ///   - limit: The maximum number of uploads in the list, the newest ones. Defaults to 1,000.
    public init(_ queue: UploadQueue, limit: Int = 1000) {
        self.queue = queue
        self.limit = limit
    }

    /// The fraction of all uploads' bytes that were sent, from 0 to 1. Cancelled and failed uploads do not count, nor
    /// do uploads that were done before the list started to follow the queue.
    public var fraction: Double {
        let counted = uploads.filter { upload in
            switch upload.state {
            case .failed, .cancelled: false
            case .done: doneBefore?.contains(upload.id) != true
            case .importing, .waiting, .waitingForNetwork, .sending, .retrying, .paused: true
            }
        }
        let total = counted.reduce(0.0) { $0 + Double($1.totalBytes) }
        return total > 0 ? counted.reduce(0.0) { $0 + $1.fraction * Double($1.totalBytes) } / total : 0
    }

    /// Runs the queue and keeps the list up to date until the task is cancelled, for a screen: `.task { await
    /// list.run() }`. After an ``error``, running or following the queue starts again.
    public func run() async {
        await withTaskGroup { group in
            group.addTask { await self.repeating { await self.follow() } }
            group.addTask { await self.repeating { await self.send() } }
        }
    }

    /// How long to wait after an error before running or following the queue again.
    private static let pause = Duration.seconds(10)

    /// Repeats work until the task is cancelled.
    private func repeating(_ work: @MainActor @Sendable () async -> Void) async {
        while !Task.isCancelled {
            await work()
            try? await queue.time.sleep(queue.time.instant() + Self.pause)
        }
    }

    private func send() async {
        sendingError = nil
        do { try await queue.run() } catch { sendingError = error as? UploadQueueError }
    }

    /// Keeps the list up to date until the task is cancelled, or until the queue cannot be read. ``error`` is then the
    /// reason. Waits until the device is unlocked for the first time after a start. Tries again after a failure that
    /// may pass, such as a full disk.
    public func follow() async {
        followingError = nil
        while !Task.isCancelled {
            do {
                _ = try await queue.opening.storeOnceUnlocked(queue.time)
                return try await followUpdates()
            } catch let error as UploadQueueError where error.mayPass {
                followingError = error
                try? await queue.time.sleep(queue.time.instant() + .seconds(1))
            } catch {
                followingError = error as? UploadQueueError
                return
            }
        }
    }

    private func followUpdates() async throws {
        var updates = QueueUpdates(queue: queue, limit: limit, start: 0, keepsNewest: true).makeAsyncIterator()
        while let (uploads, hasNewRows) = try await updates.nextList() {
            if doneBefore == nil {
                let done = uploads.filter { upload in if case .done = upload.state { true } else { false } }
                doneBefore = Set(done.map(\.id))
            }
            if uploads != self.uploads { self.uploads = uploads }
            let isPaused = hasNewRows ? try await queue.isPaused : isPaused
            if isPaused != self.isPaused { self.isPaused = isPaused }
            if followingError != nil { followingError = nil }
        }
    }

    /// Pauses an upload.
    @discardableResult
    public func pause(_ id: QueuedUpload.ID) -> Task<Void, Never> { perform { try await $0.pause(id) } }

    /// Resumes a paused upload.
    @discardableResult
    public func resume(_ id: QueuedUpload.ID) -> Task<Void, Never> { perform { try await $0.resume(id) } }

    /// Sends a failed or cancelled upload again. If the upload waits for its next attempt, sends it now.
    @discardableResult
    public func retry(_ id: QueuedUpload.ID) -> Task<Void, Never> { perform { try await $0.retry(id) } }

    /// Sends an upload to another URL from now on.
    @discardableResult
    public func retry(_ id: QueuedUpload.ID, to url: URL) -> Task<Void, Never> {
        perform { try await $0.retry(id, to: url) }
    }

    /// Cancels an upload.
    @discardableResult
    public func cancel(_ id: QueuedUpload.ID) -> Task<Void, Never> { perform { try await $0.cancel(id) } }

    /// Pauses the whole queue, including uploads that are enqueued later.
    @discardableResult
    public func pause() -> Task<Void, Never> { perform { try await $0.pause() } }

    /// Resumes the whole queue. Uploads that were paused one by one stay paused.
    @discardableResult
    public func resume() -> Task<Void, Never> { perform { try await $0.resume() } }

    /// Sends every failed upload again.
    @discardableResult
    public func retryAll() -> Task<Void, Never> { perform { try await $0.retryAll() } }

    /// Cancels all uploads that have not ended.
    @discardableResult
    public func cancelAll() -> Task<Void, Never> { perform { try await $0.cancelAll() } }

    /// Removes an upload in any state, with its form.
    @discardableResult
    public func remove(_ id: QueuedUpload.ID) -> Task<Void, Never> { perform { try await $0.remove(id) } }

    /// Removes all uploads in the given states with their forms. Defaults to uploads that are done.
    @discardableResult
    public func clear(_ states: Set<QueuedUpload.State.Kind> = [.done]) -> Task<Void, Never> {
        perform { try await $0.clear(states) }
    }

    private func perform(
        _ action: @escaping @Sendable (UploadQueue) async throws -> Void
    ) -> Task<Void, Never> {
        let task = Task { [latest, queue] in
            await latest?.value
            do {
                try await action(queue)
                actionError = nil
            } catch {
                actionError = error as? UploadQueueError
            }
        }
        latest = task
        return task
    }
}
