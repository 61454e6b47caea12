#if Server
import Synchronization

/// A request's right to be the only one at an upload, until another asks for it.
final class UploadTurn: Sendable {
    private enum Phase {
        case open
        /// Another request came. Whoever has the turn writes nothing more and gives it back.
        case ended
        /// The upload is being made a record, which nobody interrupts.
        case finishing
    }

    private let phase = Mutex(Phase.open)
    private let onEnd: @Sendable () -> Void

    init(onEnd: @escaping @Sendable () -> Void) {
        self.onEnd = onEnd
    }

    /// Asks for the turn to be given back.
    func end() {
        let ends = phase.withLock { phase in
            guard case .open = phase else { return false }
            phase = .ended
            return true
        }
        if ends { onEnd() }
    }

    var isEnded: Bool {
        phase.withLock { phase in
            if case .ended = phase { true } else { false }
        }
    }

    var isFinishing: Bool {
        phase.withLock { phase in
            if case .finishing = phase { true } else { false }
        }
    }

    /// Says that the turn is not to be ended any more.
    ///
    /// - Returns: Whether it had not been ended before.
    func beginFinishing() -> Bool {
        phase.withLock { phase in
            guard case .open = phase else { return false }
            phase = .finishing
            return true
        }
    }
}

/// Lets one request at a time at an upload. A request that comes ends those before it: a sender never sends two at
/// once, and so its earlier ones have failed without the receiver having noticed (§4.6 of the draft, "Concurrency").
final class UploadTurns: Sendable {
    private struct State {
        var holder: UploadTurn?
        var waiting: [(turn: UploadTurn, continuation: CheckedContinuation<Void, Never>)] = []
    }

    private let state = Mutex(State())

    /// Whether the upload is being made a record.
    var isFinishing: Bool { state.withLock { $0.holder }?.isFinishing ?? false }

    /// Waits for the turn, which is to be given back.
    ///
    /// - Parameter onEnd: Called once where another request wants the turn, so that nothing is waited for any more.
    func take(onEnd: @escaping @Sendable () -> Void = {}) async -> UploadTurn {
        let turn = UploadTurn(onEnd: onEnd)
        await withCheckedContinuation { continuation in
            let earlier: [UploadTurn]? = state.withLock { state in
                guard let holder = state.holder else {
                    state.holder = turn
                    return nil
                }
                let earlier = [holder] + state.waiting.map(\.turn)
                state.waiting.append((turn, continuation))
                return earlier
            }
            guard let earlier else { return continuation.resume() }
            for turn in earlier { turn.end() }
        }
        return turn
    }

    /// Gives the turn to the request that has waited longest.
    func giveBack(_ turn: UploadTurn) {
        // Whoever was about to end it comes too late, and must not end what follows on its connection.
        _ = turn.beginFinishing()
        let next: CheckedContinuation<Void, Never>? = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.holder = nil
                return nil
            }
            let next = state.waiting.removeFirst()
            state.holder = next.turn
            return next.continuation
        }
        next?.resume()
    }

    /// Does something while no other request is at the upload.
    func taking<Value>(
        onEnd: @escaping @Sendable () -> Void = {}, _ body: (UploadTurn) async throws -> Value
    ) async rethrows -> Value {
        let turn = await take(onEnd: onEnd)
        defer { giveBack(turn) }
        return try await body(turn)
    }
}
#endif
