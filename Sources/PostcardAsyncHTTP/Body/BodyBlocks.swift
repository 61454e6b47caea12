#if AsyncHTTP
import NIOCore
import PostcardForm
import PostcardClient
import Synchronization

/// A block of the body.
struct BodyBlock: Sendable {
    let bytes: ByteBuffer
    /// How far the body is with it.
    let end: BodyProgress
    /// Whether it is known to be the last.
    let isLast: Bool
}

/// Passes the blocks of a body from the task that reads them to the one that hands them to the connection, one
/// at a time: while one is on its way the next is being read, and no more.
final class BodyBlocks: Sendable {
    private let state = Mutex(State.empty)

    /// What is between the two tasks.
    private enum State {
        /// Nothing is here, and nobody waits.
        case empty
        /// The connection waits for a block.
        case wanted(CheckedContinuation<BodyBlock?, any Error>)
        /// A block is here; perhaps the reader waits for its place.
        case full(BodyBlock, CheckedContinuation<Bool, Never>?)
        /// The body is over, and its last block taken.
        case ended
        /// The body cannot be read to its end.
        case failed(any Error)
        /// Nobody wants more blocks.
        case closed

        /// What it is once a block has been taken.
        static func following(_ block: BodyBlock) -> State {
            block.isLast ? .ended : .empty
        }

        var isFinal: Bool {
            switch self {
            case .ended, .failed, .closed: true
            case .empty, .wanted, .full: false
            }
        }
    }

    /// Hands over a block, and waits until there is place for another.
    ///
    /// - Returns: Whether more blocks are wanted.
    func put(_ block: BodyBlock) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let action = state.withLock { state in
                    switch state {
                    case .empty:
                        state = .full(block, continuation)
                        return PutAction.wait
                    case .wanted(let taker):
                        state = .following(block)
                        return .deliver(taker)
                    case .full, .ended, .failed, .closed:
                        return .refuse
                    }
                }
                switch action {
                case .wait: break
                case .deliver(let taker):
                    taker.resume(returning: block)
                    continuation.resume(returning: true)
                case .refuse: continuation.resume(returning: false)
                }
            }
        } onCancel: {
            close()
        }
    }

    private enum PutAction {
        case wait
        case deliver(CheckedContinuation<BodyBlock?, any Error>)
        case refuse
    }

    /// Takes the next block; `nil` at the end of the body.
    ///
    /// - Throws: What kept the body from being read; `CancellationError` once it is closed.
    func take() async throws -> BodyBlock? {
        try await withCheckedThrowingContinuation { continuation in
            let action = state.withLock { state in
                switch state {
                case .empty:
                    state = .wanted(continuation)
                    return TakeAction.wait
                case .full(let block, let reader):
                    state = .following(block)
                    return .deliver(block, reader)
                case .ended: return .end
                case .failed(let error): return .fail(error)
                case .wanted, .closed: return .fail(CancellationError())
                }
            }
            switch action {
            case .wait: break
            case .deliver(let block, let reader):
                continuation.resume(returning: block)
                reader?.resume(returning: true)
            case .end: continuation.resume(returning: nil)
            case .fail(let error): continuation.resume(throwing: error)
            }
        }
    }

    private enum TakeAction {
        case wait
        case deliver(BodyBlock, CheckedContinuation<Bool, Never>?)
        case end
        case fail(any Error)
    }

    /// What kept the body from being read.
    var failure: (any Error)? {
        state.withLock { if case .failed(let error) = $0 { error } else { nil } }
    }

    /// Ends the body, well or not. Every block has been taken by then, because ``put(_:)`` waits for it.
    func finish(_ result: Result<Void, any Error>) {
        let taker: CheckedContinuation<BodyBlock?, any Error>? = state.withLock { state in
            guard !state.isFinal else { return nil }
            let waiting = state
            switch result {
            case .success: state = .ended
            case .failure(let error): state = .failed(error)
            }
            if case .wanted(let taker) = waiting { return taker }
            return nil
        }
        taker?.resume(with: result.map { nil })
    }

    /// Lets both tasks go: nobody wants more blocks.
    func close() {
        let waiting = state.withLock { state in
            guard !state.isFinal else { return State.closed }
            defer { state = .closed }
            return state
        }
        switch waiting {
        case .wanted(let taker): taker.resume(throwing: CancellationError())
        case .full(_, let reader): reader?.resume(returning: false)
        case .empty, .ended, .failed, .closed: break
        }
    }
}
#endif
