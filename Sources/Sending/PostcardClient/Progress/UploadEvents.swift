public import PostcardFoundation
import Synchronization

/// The events of an upload, in the order in which they happen.
///
/// ```swift
/// for try await event in client.events(of: form, to: url) {
///     switch event {
///     case .sending(let progress): show(progress.fraction)
///     case .retrying(let retry): show(retry.error.message)
///     case .done(let response): show(try response.decode(Pet.self))
///     default: break
///     }
/// }
/// ```
///
/// Each iteration is a separate upload, which starts when the first event is requested. Leaving the loop early cancels
/// the upload, and so does cancelling the task that iterates. A loop that is slower than the upload misses only
/// outdated progress.
public struct UploadEvents: AsyncSequence, Sendable {
    public typealias Element = UploadEvent

    /// Performs an upload with the given idempotency key or a new one, and puts all events except `done` into a queue.
    typealias Upload = @Sendable (_ key: IdempotencyKey?, _ events: UploadEventQueue) async throws -> UploadResponse

    private let upload: Upload
    private let clock: any UploadClock
    private var key: IdempotencyKey?

    init(by clock: any UploadClock = SystemClock(), _ upload: @escaping Upload) {
        self.upload = upload
        self.clock = clock
    }

    /// The same events, with one `Idempotency-Key` for all iterations, so that a server that honors the key can
    /// recognize the upload. A key in the request's own header fields takes precedence.
    func under(_ key: IdempotencyKey) -> UploadEvents {
        var events = self
        events.key = key
        return events
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(by: clock) { [upload, key] in try await upload(key, $0) }
    }

    /// Iterates over the events of one upload.
    public struct Iterator: AsyncIteratorProtocol {
        private let run: Run

        fileprivate init(by clock: any UploadClock, _ upload: @escaping Run.Upload) {
            run = Run(by: clock, upload)
        }

        /// The next event; `nil` after `done`.
        ///
        /// - Throws: The errors of ``UploadClient/upload(_:to:method:headerFields:progress:)``.
        public mutating func next() async throws -> UploadEvent? {
            try await run.next()
        }

        /// The next event; `nil` after `done`.
        ///
        /// - Throws: The errors of ``UploadClient/upload(_:to:method:headerFields:progress:)``.
        public mutating func next(isolation actor: isolated (any Actor)?) async throws -> UploadEvent? {
            try await run.next()
        }
    }

    /// Starts an upload when the first event is requested, and cancels the upload when the iterator is deallocated.
    fileprivate final class Run {
        typealias Upload = @Sendable (UploadEventQueue) async throws -> UploadResponse

        private let upload: Upload
        private let clock: any UploadClock
        private let queue: UploadEventQueue
        private var task: Task<Void, Never>?

        init(by clock: any UploadClock, _ upload: @escaping Upload) {
            self.upload = upload
            self.clock = clock
            queue = UploadEventQueue(by: clock)
        }

        deinit {
            guard let task else { return }
            task.cancel()
            clock.note(-1)
        }

        func next() async throws -> UploadEvent? {
            // Without this check, the task of the upload would start although this task was already cancelled.
            if task == nil { try Task.checkCancellation() }
            let task = start()
            return try await withTaskCancellationHandler {
                try await queue.next()
            } onCancel: {
                // The upload then ends with an error. The loop waits for the error, so that the upload does not outlive
                // the loop.
                task.cancel()
            }
        }

        private func start() -> Task<Void, Never> {
            if let task { return task }
            // A test clock counts running tasks: the upload, and the loop while it is not waiting.
            clock.note(2)
            let started = Task { [upload, clock, queue] in
                defer { clock.note(-1) }
                do {
                    queue.put(.done(try await upload(queue)))
                    queue.finish()
                } catch {
                    queue.finish(throwing: error)
                }
            }
            task = started
            return started
        }
    }
}

/// The events of an upload that the loop has not received yet. One task at a time adds events, and one task takes them.
///
/// Progress replaces earlier progress in the queue, except milestones such as the end of a part. All other events are
/// kept, because each attempt has only a few.
final class UploadEventQueue: Sendable {
    private let clock: any UploadClock
    private let state = Mutex(State())

    /// Makes an empty queue.
    ///
    /// - Parameter clock: The clock of the upload. It does not advance while a task has events to take.
    init(by clock: any UploadClock) {
        self.clock = clock
    }

    private struct State {
        var events: [UploadEvent] = []
        /// Whether the last event may be replaced by the next progress.
        var isLastReplaceable = false
        var end: End?
        var waiting: CheckedContinuation<UploadEvent?, any Error>?
    }

    private enum End {
        case finished
        case failed(any Error)
    }

    /// Adds an event.
    ///
    /// - Parameter isReplaceable: Whether later progress may replace the event.
    func put(_ event: UploadEvent, isReplaceable: Bool = false) {
        let waiting = state.withLock { state -> CheckedContinuation<UploadEvent?, any Error>? in
            if let waiting = state.waiting.take() { return waiting }
            if case .sending = event, state.isLastReplaceable, !state.events.isEmpty {
                state.events[state.events.count - 1] = event
            } else {
                state.events.append(event)
            }
            state.isLastReplaceable = isReplaceable
            return nil
        }
        guard let waiting else { return }
        clock.note(1)
        waiting.resume(returning: event)
    }

    /// Ends the queue: no more events are added.
    ///
    /// - Parameter error: The error that the upload failed with; `nil` if it succeeded.
    func finish(throwing error: (any Error)? = nil) {
        let waiting = state.withLock { state in
            let waiting = state.waiting.take()
            // An error is thrown once: to the task that waits for an event, or to the next task that requests one.
            state.end = waiting == nil ? error.map { .failed($0) } ?? .finished : .finished
            return waiting
        }
        guard let waiting else { return }
        clock.note(1)
        if let error { waiting.resume(throwing: error) } else { waiting.resume(returning: nil) }
    }

    /// Waits for the next event and takes it. Returns `nil` after the last event.
    ///
    /// - Throws: The error that the upload failed with, once; after the error there are no more events.
    func next() async throws -> UploadEvent? {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<UploadEvent?, any Error>? in
                if !state.events.isEmpty { return .success(state.events.removeFirst()) }
                switch state.end {
                case .failed(let error):
                    state.end = .finished
                    return .failure(error)
                case .finished: return .success(nil)
                case nil:
                    state.waiting = continuation
                    return nil
                }
            }
            if let result { continuation.resume(with: result) } else { clock.note(-1) }
        }
    }

    /// Calls a closure with all progress until the upload has ended, on the caller's actor and without holding a lock.
    func deliver(to progress: (UploadProgress) -> Void) async {
        while let event = try? await next() {
            if case .sending(let step) = event { progress(step) }
        }
    }
}

/// An event of an upload, from ``UploadClient/events(of:to:method:headerFields:)``.
///
/// A successful upload begins with `preparing` and ends with `done`, with any number of other events between them. A
/// failed upload ends with an error, which the loop throws.
public enum UploadEvent: Sendable {
    /// The form's files are being checked, and its photos are made to fit. Nothing was sent yet. This is always the
    /// first event. It is reported again if the server refuses the form as too large and the photos are made to fit its
    /// limit.
    case preparing
    /// There is no network; the upload continues when there is one.
    case waitingForNetwork
    /// The form is being sent. This event is reported at most once per ``ReportingOptions/progressInterval``, but
    /// always at the first step of an attempt, at the end of each part, and when everything was sent.
    case sending(UploadProgress)
    /// The whole form was sent, and the server has not responded yet.
    case awaitingResponse(UploadProgress)
    /// An attempt failed; the next one starts after a delay.
    case retrying(UploadRetry)
    /// The server has accepted the form. This is always the last event.
    case done(UploadResponse)

    /// The progress of the upload, for the events `sending` and `awaitingResponse`; `nil` for others.
    public var progress: UploadProgress? {
        switch self {
        case .sending(let progress), .awaitingResponse(let progress): progress
        case .preparing, .waitingForNetwork, .retrying, .done: nil
        }
    }
}

/// The reason and the time for sending a failed upload again.
public struct UploadRetry: Sendable {
    /// The error that the last attempt failed with.
    public let error: UploadError

    /// The number of the next attempt, from 2.
    public let nextAttempt: Int

    /// The delay before the next attempt.
    public let delay: Duration

    /// When the next attempt starts, by this machine's clock.
    public let date: Date

    init(after error: UploadError, nextAttempt: Int, delay: Duration) {
        self.error = error
        self.nextAttempt = nextAttempt
        self.delay = delay
        date = Date().addingTimeInterval(delay / .seconds(1))
    }
}
