import NIOCore
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

/// Passes the blocks of a body from the task that reads them to the event loop that writes them, one at a time:
/// while one is being written the next is being read, and no more.
final class BodyBlocks: Sendable {
    private let state: Mutex<State>

    /// What is between the two.
    private enum State {
        /// Nothing is here, and nobody waits.
        case empty
        /// The connection wants to be called when there is something.
        case wanted(@Sendable () -> Void)
        /// A block is here; perhaps the reader waits for its place.
        case full(BodyBlock, CheckedContinuation<Bool, Never>?)
        /// The body is over, and its last block taken.
        case ended
        /// The body cannot be read to its end.
        case failed(any Error)
        /// Nobody wants more blocks.
        case closed

        var isFinal: Bool {
            switch self {
            case .ended, .failed, .closed: true
            case .empty, .wanted, .full: false
            }
        }
    }

    /// - Parameter first: The block that is here from the beginning, if any.
    init(_ first: BodyBlock? = nil) {
        state = Mutex(first.map { .full($0, nil) } ?? .empty)
    }

    /// Hands over a block, and waits until it has been taken.
    ///
    /// - Returns: Whether more blocks are wanted.
    func put(_ block: BodyBlock) async -> Bool {
        await wait { state, continuation in
            switch state {
            case .empty:
                state = .full(block, continuation)
                return .nothing
            case .wanted(let wake):
                state = .full(block, continuation)
                return .wake(wake)
            case .full, .ended, .failed, .closed:
                return .resume(false)
            }
        }
    }

    /// Waits until the block that is here from the beginning, if any, has been taken.
    ///
    /// - Returns: Whether more blocks are wanted.
    func waitForPlace() async -> Bool {
        await wait { state, continuation in
            switch state {
            case .full(let block, nil):
                state = .full(block, continuation)
                return .nothing
            case .empty, .wanted: return .resume(true)
            case .full, .ended, .failed, .closed: return .resume(false)
            }
        }
    }

    private enum WaitAction {
        case nothing
        case wake(@Sendable () -> Void)
        case resume(Bool)
    }

    private func wait(
        _ begin: (inout State, CheckedContinuation<Bool, Never>) -> WaitAction
    ) async -> Bool {
        await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                switch state.withLock({ begin(&$0, continuation) }) {
                case .nothing: break
                case .wake(let wake): wake()
                case .resume(let isWanted): continuation.resume(returning: isWanted)
                }
            }
        } onCancel: {
            close()
        }
    }

    /// What there is for the connection.
    enum Next {
        case block(BodyBlock)
        /// Nothing yet.
        case later
        /// The body is over.
        case end
        /// The body will not come to its end.
        case broken
    }

    /// Takes the next block, or asks to be called when there is something.
    func take(orCall wake: @escaping @Sendable () -> Void) -> Next {
        let (next, reader) = state.withLock { state -> (Next, CheckedContinuation<Bool, Never>?) in
            switch state {
            case .empty, .wanted:
                state = .wanted(wake)
                return (.later, nil)
            case .full(let block, let reader):
                state = block.isLast ? .ended : .empty
                return (.block(block), reader)
            case .ended: return (.end, nil)
            case .failed, .closed: return (.broken, nil)
            }
        }
        reader?.resume(returning: true)
        return next
    }

    /// What kept the body from being read.
    var failure: (any Error)? {
        state.withLock { if case .failed(let error) = $0 { error } else { nil } }
    }

    /// Ends the body, well or not. Every block has been taken by then, because ``put(_:)`` waits for it.
    func finish(_ result: Result<Void, any Error>) {
        let waiting = state.withLock { state in
            guard !state.isFinal else { return State.closed }
            let waiting = state
            switch result {
            case .success: state = .ended
            case .failure(let error): state = .failed(error)
            }
            return waiting
        }
        if case .wanted(let wake) = waiting { wake() }
    }

    /// Lets both sides go: nobody wants more blocks.
    func close() {
        let waiting = state.withLock { state in
            guard !state.isFinal else { return State.closed }
            defer { state = .closed }
            return state
        }
        switch waiting {
        case .wanted(let wake): wake()
        case .full(_, let reader): reader?.resume(returning: false)
        case .empty, .ended, .failed, .closed: break
        }
    }
}
