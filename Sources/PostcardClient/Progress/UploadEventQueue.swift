import Synchronization

/// The steps of an upload that wait for somebody to take them: one at a time puts them in, one takes them out.
///
/// Progress takes the place of progress that nobody has taken yet. All other steps are kept; there are a few for each
/// attempt.
final class UploadEventQueue: Sendable {
    private let state = Mutex(State())

    private struct State {
        var events: [UploadEvent] = []
        var end: End?
        var waiting: CheckedContinuation<UploadEvent?, any Error>?
    }

    private enum End {
        case whole
        case failed(any Error)
    }

    /// Adds a step.
    func put(_ event: UploadEvent) {
        let waiting = state.withLock { state in
            if let waiting = state.waiting.take() { return waiting as CheckedContinuation<UploadEvent?, any Error>? }
            if case .sending = event, case .sending = state.events.last {
                state.events[state.events.count - 1] = event
            } else {
                state.events.append(event)
            }
            return nil
        }
        waiting?.resume(returning: event)
    }

    /// Says that there are no more steps.
    ///
    /// - Parameter error: Why, where that is not because all went well.
    func end(_ error: (any Error)?) {
        let waiting = state.withLock { state in
            let waiting = state.waiting.take()
            // An error is thrown once: by the one who waits, or by the next who asks.
            state.end = waiting == nil ? error.map { .failed($0) } ?? .whole : .whole
            return waiting
        }
        guard let waiting else { return }
        if let error { waiting.resume(throwing: error) } else { waiting.resume(returning: nil) }
    }

    /// Takes the next step, waiting for it; `nil` behind the last one.
    ///
    /// - Throws: What the upload ended with, once; behind that there are no more steps.
    func next() async throws -> UploadEvent? {
        try await withCheckedThrowingContinuation { continuation in
            let result = state.withLock { state -> Result<UploadEvent?, any Error>? in
                if !state.events.isEmpty { return .success(state.events.removeFirst()) }
                switch state.end {
                case .failed(let error):
                    state.end = .whole
                    return .failure(error)
                case .whole: return .success(nil)
                case nil:
                    state.waiting = continuation
                    return nil
                }
            }
            if let result { continuation.resume(with: result) }
        }
    }
}
