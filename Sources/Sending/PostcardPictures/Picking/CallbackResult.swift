import PostcardFoundation
import Synchronization

/// Waits for a call that reports to a callback. The task that waits is resumed once, by the callback or by its own
/// cancellation, whichever is first, even if a cancelled call never reports.
///
/// The call runs within an activity: an app that is suspended in the middle of a copy may be ended, and what the user
/// has picked is gone.
final class CallbackResult<Value: Sendable>: Sendable {
    private let state = Mutex(State.idle)
    private let discard: @Sendable (Value) -> Void
    private let activity: ExpiringActivity

    private enum State {
        case idle
        case waiting(CheckedContinuation<Value, any Error>, cancel: (@Sendable () -> Void)?)
        case over(isCancelled: Bool)
    }

    /// - Parameters:
    ///   - activity: How the system is asked not to suspend the app meanwhile.
    ///   - discard: Receives a value that no one waits for any more.
    init(
        within activity: ExpiringActivity = .shared,
        discarding discard: @escaping @Sendable (Value) -> Void = { _ in }
    ) {
        self.activity = activity
        self.discard = discard
    }

    /// Starts the call and waits for its result. To be called once.
    ///
    /// - Parameter start: Starts the call, and returns what cancels it. The call reports to ``finish(_:)``.
    /// - Throws: What the call reports; `CancellationError` if the task is cancelled first; ``PictureError`` with code
    ///   ``PictureError/Code/suspended`` if the system suspends the app first.
    func value(startedBy start: () throws -> @Sendable () -> Void) async throws -> Value {
        guard let grant = await activity.beginConcurrently() else { throw PictureError.suspended }
        let forget = grant.onExpiry { self.abandon(throwing: PictureError.suspended) }
        defer {
            forget()
            grant.end()
        }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                guard wait(continuation) else { return continuation.resume(throwing: CancellationError()) }
                do {
                    add(try start())
                } catch {
                    finish(.failure(error))
                }
            }
        } onCancel: {
            abandon(throwing: CancellationError())
        }
    }

    /// Reports the call's result. Any but the first is discarded.
    func finish(_ result: Result<Value, any Error>) {
        if let continuation = end(isCancelled: false)?.continuation { return continuation.resume(with: result) }
        if case .success(let value) = result { discard(value) }
    }

    /// Stops waiting and cancels the call. Does nothing if its result is known.
    func abandon(throwing error: any Error) {
        let ended = end(isCancelled: true)
        ended?.continuation.resume(throwing: error)
        ended?.cancel?()
    }

    private func wait(_ continuation: CheckedContinuation<Value, any Error>) -> Bool {
        state.withLock { state in
            guard case .idle = state else { return false }
            state = .waiting(continuation, cancel: nil)
            return true
        }
    }

    private func add(_ cancel: @escaping @Sendable () -> Void) {
        let isCancelled = state.withLock { state in
            switch state {
            case .idle: return false
            case .waiting(let continuation, _):
                state = .waiting(continuation, cancel: cancel)
                return false
            case .over(let isCancelled): return isCancelled
            }
        }
        // It was cancelled while it was being started.
        if isCancelled { cancel() }
    }

    private func end(
        isCancelled: Bool
    ) -> (continuation: CheckedContinuation<Value, any Error>, cancel: (@Sendable () -> Void)?)? {
        state.withLock { state in
            switch state {
            case .idle:
                state = .over(isCancelled: isCancelled)
                return nil
            case .waiting(let continuation, let cancel):
                state = .over(isCancelled: isCancelled)
                return (continuation, cancel)
            case .over: return nil
            }
        }
    }
}
