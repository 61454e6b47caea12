#if AsyncHTTP
import Synchronization

/// What became of a request's `Expect: 100-continue`: whether its body may go out (RFC 9110 §10.1.1).
final class Expectation: Sendable {
    /// How long a server has to say that it wants the body, before it gets it anyway: as long as libcurl waits.
    static let patience = Duration.seconds(1)

    private let state = Mutex(State.pending(nil))

    private enum State {
        /// The server has not answered; perhaps the body waits.
        case pending(CheckedContinuation<Void, any Error>?)
        /// The body goes out.
        case met
        /// The server wants no body; whoever has one waits until the request is over.
        case refused(CheckedContinuation<Void, any Error>?)
        /// The request is over.
        case over
    }

    /// Waits until the body may go out.
    ///
    /// - Throws: `CancellationError` once the request is over.
    func wait() async throws {
        // Cancelled as soon as there is a decision.
        async let _ = meetWhenPatienceEnds()
        try await decision()
    }

    private func meetWhenPatienceEnds() async throws {
        try await Task.sleep(for: Self.patience)
        meet()
    }

    private func decision() async throws {
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    switch state {
                    case .pending:
                        state = .pending(continuation)
                        return nil
                    case .refused:
                        state = .refused(continuation)
                        return nil
                    case .met: return .success(())
                    case .over: return .failure(CancellationError())
                    }
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            end()
        }
    }

    /// The server wants the body, or has had time enough to say so.
    func meet() {
        let waiting: CheckedContinuation<Void, any Error>? = state.withLock { state in
            guard case .pending(let waiting) = state else { return nil }
            state = .met
            return waiting
        }
        waiting?.resume()
    }

    /// The server has answered with something else.
    func refuse() {
        state.withLock { state in
            if case .pending(let waiting) = state { state = .refused(waiting) }
        }
    }

    /// The request is over: nobody need wait any more.
    func end() {
        let waiting: CheckedContinuation<Void, any Error>? = state.withLock { state in
            defer { state = .over }
            switch state {
            case .pending(let waiting), .refused(let waiting): return waiting
            case .met, .over: return nil
            }
        }
        waiting?.resume(throwing: CancellationError())
    }
}
#endif
