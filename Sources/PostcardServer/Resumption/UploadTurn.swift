import NIOCore
import Synchronization

/// A request's right to be the only one at an upload, until another asks for it.
final class UploadTurn: Sendable {
    private enum Phase {
        case open
        /// Another request came. Whoever has the turn takes what is still there and gives it back.
        case ended
        /// The upload is being made a record, which nobody interrupts.
        case finishing
        case givenBack
    }

    /// The connection or stream whose bytes are taken.
    private let channel: (any Channel)?
    private let phase = Mutex(Phase.open)

    /// For how long nothing may come on the connection of a request that was ended, and how long it may last in any
    /// case.
    private static let (quiet, patience) = (Duration.milliseconds(200), Duration.seconds(10))

    init(on channel: (any Channel)?) {
        self.channel = channel
    }

    /// Asks for the turn to be given back, once nothing more comes on its connection: what had left the sender when
    /// it gave up need not be sent again.
    func end() {
        let ends = phase.withLock { phase in
            guard case .open = phase else { return false }
            phase = .ended
            return true
        }
        guard ends, let channel else { return }
        let interval = TimeAmount(Self.quiet)
        let end = ContinuousClock.now + Self.patience
        channel.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { [self] task in
            guard isEnded else { return task.cancel() }
            let handler = try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
            if let handler, !handler.isQuiet(for: Self.quiet), .now < end { return }
            channel.close(promise: nil)
            task.cancel()
        }
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

    /// Says that the request is over: what follows on its connection is another's, unless the turn was ended, of which
    /// nobody wants to hear.
    fileprivate func giveBack() {
        let wasEnded = phase.withLock { phase in
            defer { phase = .givenBack }
            if case .ended = phase { return true }
            return false
        }
        if wasEnded { channel?.close(promise: nil) }
    }
}

/// Lets one request at a time at an upload. A request that comes ends those before it: a sender never sends two at
/// once, and so its earlier ones have failed without the receiver having noticed (§4.6 of the draft, "Concurrency").
final class UploadTurns: Sendable {
    private struct State {
        var holder: UploadTurn?
        var waiting: [(turn: UploadTurn, continuation: CheckedContinuation<Void, Never>)] = []
        /// Whether the request that creates the upload has not given its turn back yet.
        var isAwaited: Bool
        var isIdle: Bool { holder == nil && !isAwaited }
    }

    private let state: Mutex<State>

    /// - Parameter isAwaited: Whether a request is about to take the first turn.
    init(isAwaited: Bool) {
        state = Mutex(State(isAwaited: isAwaited))
    }

    /// Whether no request is at the upload.
    var isIdle: Bool { state.withLock { $0.isIdle } }

    /// The turn, where no request is at the upload.
    func takeIfIdle() -> UploadTurn? {
        state.withLock { state in
            guard state.isIdle else { return nil }
            let turn = UploadTurn(on: nil)
            state.holder = turn
            return turn
        }
    }

    /// Whether the upload is being made a record.
    var isFinishing: Bool { state.withLock { $0.holder }?.isFinishing ?? false }

    /// Waits for the turn, which is to be given back.
    ///
    /// - Parameter channel: What is closed where another request wants the turn, so that nothing is waited for any more.
    func take(on channel: (any Channel)? = nil) async -> UploadTurn {
        let turn = UploadTurn(on: channel)
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
        turn.giveBack()
        let next: CheckedContinuation<Void, Never>? = state.withLock { state in
            state.isAwaited = false
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
        on channel: (any Channel)? = nil, _ body: (UploadTurn) async throws -> Value
    ) async rethrows -> Value {
        let turn = await take(on: channel)
        defer { giveBack(turn) }
        return try await body(turn)
    }
}
