import NIOCore
import PostcardClient
import Synchronization

/// Some consecutive bytes of a body.
struct BodyBlock: Sendable {
    let bytes: ByteBuffer
    /// The end of the block, as an offset in the body.
    let end: Int64
    /// Whether the block is known to be the last.
    let isLast: Bool
}

/// Passes the blocks of a body from the task that reads them to the event loop that writes them. While one block is
/// being written, only the next one is read. With a ``LoopSource``, the event loop reads each block itself.
final class BodyBlocks: Sendable {
    private let state: Mutex<State>
    /// The source from which the event loop reads the blocks; `nil` if a task adds the blocks.
    private let source: LoopSource?

    private enum State {
        /// There is no block, and the connection waits for none.
        case empty
        /// The connection waits for a block. The closure is called when the block arrives.
        case awaited(@Sendable () -> Void)
        /// A block is ready. If there is a continuation, the reader is waiting for the connection to take the block.
        case full(BodyBlock, CheckedContinuation<Bool, Never>?)
        /// The body has ended, and its last block was taken.
        case ended
        /// Reading the body has failed.
        case failed(any Error)
        /// The connection needs no more blocks.
        case closed

        var isFinal: Bool {
            switch self {
            case .ended, .failed, .closed: true
            case .empty, .awaited, .full: false
            }
        }
    }

    /// Makes an empty sequence of blocks, or one with a first block.
    ///
    /// - Parameters:
    ///   - first: The first block, if it was read already.
    ///   - source: The source from which the event loop reads the other blocks. Defaults to `nil`: a task calls
    ///     ``put(_:)``.
    init(_ first: BodyBlock? = nil, source: LoopSource? = nil) {
        state = Mutex(first.map { .full($0, nil) } ?? .empty)
        self.source = source
    }

    /// Adds a block, and waits until the connection takes it.
    ///
    /// - Returns: Whether more blocks are needed.
    func put(_ block: BodyBlock) async -> Bool {
        await wait { state, continuation in
            switch state {
            case .empty:
                state = .full(block, continuation)
                return .nothing
            case .awaited(let wake):
                state = .full(block, continuation)
                return .wake(wake)
            case .full, .ended, .failed, .closed:
                return .resume(false)
            }
        }
    }

    /// Waits until the connection has taken the first block, if there is one.
    ///
    /// - Returns: Whether more blocks are needed.
    func waitUntilTaken() async -> Bool {
        await wait { state, continuation in
            switch state {
            case .full(let block, nil):
                state = .full(block, continuation)
                return .nothing
            case .empty, .awaited: return .resume(true)
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
                case .resume(let isNeeded): continuation.resume(returning: isNeeded)
                }
            }
        } onCancel: {
            close()
        }
    }

    /// The result of taking the next block.
    enum Next {
        case block(BodyBlock)
        /// The next block was not read yet.
        case later
        /// The body has ended.
        case end
        /// No more blocks follow: reading the body has failed, or the request has ended.
        case broken
    }

    /// Takes the next block. If no block is ready, returns `later`, and calls the closure once there is a block or the
    /// body has ended.
    func take(orCall wake: @escaping @Sendable () -> Void) -> Next {
        let (next, reader) = state.withLock { state -> (Next, CheckedContinuation<Bool, Never>?) in
            switch state {
            case .empty, .awaited:
                state = source == nil ? .awaited(wake) : .empty
                return (.later, nil)
            case .full(let block, let reader):
                state = block.isLast ? .ended : .empty
                return (.block(block), reader)
            case .ended: return (.end, nil)
            case .failed, .closed: return (.broken, nil)
            }
        }
        reader?.resume(returning: true)
        guard case .later = next, let source else { return next }
        let result = Result { try source.readBlock() }
        return state.withLock { state in
            // The request may have ended while the block was being read.
            guard !state.isFinal else { return .broken }
            switch result {
            case .success(let block?):
                if block.isLast { state = .ended }
                return .block(block)
            case .success(nil):
                state = .ended
                return .end
            case .failure(let error):
                state = .failed(error)
                return .broken
            }
        }
    }

    /// The error that reading the body failed with; `nil` if there is none.
    var failure: (any Error)? {
        state.withLock { if case .failed(let error) = $0 { error } else { nil } }
    }

    /// Ends the body, successfully or not. All blocks were taken by now, because ``put(_:)`` waits until its block is
    /// taken.
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
        if case .awaited(let wake) = waiting { wake() }
    }

    /// Ends the waits of the reader and of the connection, because no more blocks are needed.
    func close() {
        let waiting = state.withLock { state in
            guard !state.isFinal else { return State.closed }
            defer { state = .closed }
            return state
        }
        switch waiting {
        case .awaited(let wake): wake()
        case .full(_, let reader): reader?.resume(returning: false)
        case .empty, .ended, .failed, .closed: break
        }
    }
}

/// The source of a body that the event loop of the connection reads, one block at a time.
final class LoopSource: @unchecked Sendable {
    // Once AsyncHTTPClient has the request, only the event loop uses the source.
    private var source: BodySource

    init(_ source: consuming BodySource) {
        self.source = source
    }

    fileprivate func readBlock() throws -> BodyBlock? { try source.readBlock() }
}

/// Reads a request's body block by block, as fast as the connection takes the blocks.
struct BodySource {
    /// The size of the blocks that a task reads: large enough for few reads, and small enough for little memory.
    static let taskBlockSize = 256 << 10
    /// The size of the blocks that an event loop reads. Such a block is still in the processor's cache when it is
    /// written. Larger blocks took up to 1.7 times as long.
    static let loopBlockSize = 64 << 10

    private let blockSize: Int
    private let body: UploadBody
    private let reader: UploadBodyReader
    /// Blocks whose memory is reused once they were written, because allocating memory costs more than filling it.
    private var ring: [ByteBuffer] = []
    private var next = 0

    /// Makes a source that reads a body in blocks.
    ///
    /// - Parameter blockSize: The maximum number of bytes of a block.
    /// - Throws: `FormError` if the first bytes cannot be read.
    init(_ body: UploadBody, blockSize: Int) throws {
        self.body = body
        self.blockSize = blockSize
        reader = try body.reader()
    }

    /// Reads the first block. Returns `nil` if its bytes are not available yet.
    mutating func readyBlock() throws -> BodyBlock? {
        reader.needsPreparation ? nil : try readBlock()
    }

    /// Reads until the body ends or the blocks are closed.
    ///
    /// - Throws: The error that reading the body failed with. The blocks end with the same error.
    mutating func feed(_ blocks: BodyBlocks) async throws {
        do {
            guard await blocks.waitUntilTaken() else { return }
            while try await reader.prepare() {
                guard let block = try readBlock() else { continue }
                guard await blocks.put(block) else { return }
            }
            blocks.finish(.success(()))
        } catch {
            blocks.finish(.failure(error))
            throw error
        }
    }

    fileprivate mutating func readBlock() throws -> BodyBlock? {
        // One block is being filled, one waits for the connection, and the handler writes the others.
        if ring.count < 2 + OutgoingBody.maximumBytesInFlight / blockSize {
            ring.append(ByteBufferAllocator().buffer(capacity: capacity))
            next = ring.count - 1
        } else {
            next = (next + 1) % ring.count
            ring[next].clear(minimumCapacity: capacity)
        }
        _ = try ring[next].writeWithUnsafeMutableBytes(minimumWritableBytes: 0) { [reader] in try reader.read(into: $0)
        }
        guard ring[next].readableBytes > 0 else { return nil }
        return BodyBlock(bytes: ring[next], end: reader.position, isLast: reader.isAtEnd)
    }

    /// The size of the next block. It is at most the rest of the body, so that a small form takes little memory.
    private var capacity: Int {
        guard let length = body.contentLength else { return blockSize }
        return Int(min(Int64(blockSize), max(length - reader.position, 1)))
    }
}
