import NIOCore
import Synchronization

/// The memory for bytes that wait to be sent to the object store. Uploads share its blocks, and wait for them in order.
///
/// Blocks are reused and not freed, because glibc would keep much more memory than is in use.
///
/// A slow client takes long to fill a block. If other uploads wait, the uploads that have had a block for longest are
/// asked to give it back, and then store the gathered bytes.
final class MemoryBudget: Sendable {
    private struct Gathering {
        let since: ContinuousClock.Instant
        let reclaim: @Sendable () -> Void
    }

    private struct State {
        var free: Int
        /// The memory of blocks that were given back.
        var spare: [ByteBuffer] = []
        var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var lastID = 0
        /// The blocks that clients are still filling.
        var gathering: [Int: Gathering] = [:]
        var isReclaiming = false
    }

    private let state: Mutex<State>
    private let blockBytes: Int
    /// How long a client may take to fill a block while other uploads wait for a block.
    private let patience: Duration

    private let surroundings: Surroundings

    init(blocks: Int, patience: Duration = .seconds(2), surroundings: Surroundings = .real) {
        state = Mutex(State(free: blocks))
        blockBytes = surroundings.partBytes
        self.patience = patience
        self.surroundings = surroundings
    }

    /// A block of memory, which is given back when the last reference to this object is released.
    final class Block: Sendable {
        private let id: Int
        private let budget: MemoryBudget
        private let memory: Mutex<ByteBuffer>

        fileprivate init(_ id: Int, of budget: MemoryBudget, _ memory: ByteBuffer) {
            self.id = id
            self.budget = budget
            self.memory = Mutex(memory)
        }

        /// The bytes that were written to the block. Keep the block while you use them. Otherwise the block goes to
        /// another upload, whose first write must copy the memory because your bytes still refer to it.
        var bytes: ByteBuffer { memory.withLock { $0 } }

        var count: Int { memory.withLock { $0.readableBytes } }

        func write(_ bytes: ByteBuffer) {
            memory.withLock { memory in
                memory.reserveCapacity(budget.blockBytes)
                memory.writeImmutableBuffer(bytes)
            }
        }

        /// Keeps the block from being reclaimed: its bytes are being sent, and no longer wait for a slow client.
        func isSending() { budget.forget(id) }

        deinit {
            budget.giveBack(id, bytes)
        }
    }

    /// Waits until a block is free, and reserves its memory while the closure runs. Throws `CancellationError` if the
    /// task is cancelled while it waits, and the errors of the closure.
    func withBlock<Value>(_ work: () async throws -> Value) async throws -> Value {
        let block = try await take {}
        block.isSending()
        defer { withExtendedLifetime(block) {} }
        return try await work()
    }

    /// Waits for a free block. `reclaim` is called if the bytes of the block are not being sent after `patience` while
    /// other uploads wait for a block, and must free the block. Throws `CancellationError` if the task is cancelled.
    func take(reclaim: @escaping @Sendable () -> Void) async throws -> Block {
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        let isTaken = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let isTaken: Bool? = state.withLock { state in
                    if Task.isCancelled { return false }
                    guard state.free > 0 else {
                        state.waiting.append((id, continuation))
                        return nil
                    }
                    state.free -= 1
                    return true
                }
                if let isTaken { continuation.resume(returning: isTaken) } else { beginReclaiming() }
            }
        } onCancel: {
            let continuation = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0).continuation }
            }
            continuation?.resume(returning: false)
        }
        guard isTaken else { throw CancellationError() }
        let memory = state.withLock { state in
            state.gathering[id] = Gathering(since: surroundings.now(), reclaim: reclaim)
            return state.spare.popLast()
        }
        return Block(id, of: self, memory ?? ByteBuffer())
    }

    private func forget(_ id: Int) {
        // The entry is released outside the lock.
        let gathering = state.withLock { $0.gathering.removeValue(forKey: id) }
        withExtendedLifetime(gathering) {}
    }

    private func giveBack(_ id: Int, _ memory: ByteBuffer) {
        forget(id)
        var memory = memory
        // The memory is not cleared, because a request that has just ended may still use its bytes.
        memory.moveReaderIndex(to: 0)
        memory.moveWriterIndex(to: 0)
        let next: CheckedContinuation<Bool, Never>? = state.withLock { [memory] state in
            if memory.capacity > 0 { state.spare.append(memory) }
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }

    private func beginReclaiming() {
        let isFirst = state.withLock { state in
            defer { state.isReclaiming = true }
            return !state.isReclaiming
        }
        guard isFirst else { return }
        Task(executorPreference: surroundings.executor) { [self] in await reclaim() }
    }

    /// Reclaims a block for each waiting upload, until no upload waits.
    private func reclaim() async {
        while true {
            do {
                try await surroundings.sleep(patience / 2)
            } catch {
                // Without pauses, the loop would keep a processor busy.
                return state.withLock { $0.isReclaiming = false }
            }
            let now = surroundings.now()
            let asked = state.withLock { state -> [@Sendable () -> Void]? in
                guard !state.waiting.isEmpty else {
                    state.isReclaiming = false
                    return nil
                }
                let slow = state.gathering.values.filter { $0.since.duration(to: now) >= patience }
                return slow.sorted { $0.since < $1.since }.prefix(state.waiting.count).map(\.reclaim)
            }
            guard let asked else { return }
            // The closures are called outside the lock, because they give blocks back.
            for reclaim in asked { reclaim() }
        }
    }
}

/// Bytes that are gathered for one request. A few bytes have their own memory. More bytes use a block of the budget.
struct GatheredBytes: Sendable {
    private var few = ByteBuffer()
    private var block: MemoryBudget.Block?

    /// The result of adding bytes.
    enum Addition: Sendable {
        case added
        case needsBlock
        case isFull
    }

    var count: Int { few.readableBytes + (block?.count ?? 0) }

    /// Adds as many of the bytes as fit. At most `maximum` bytes are gathered, and more than `free` need a block of
    /// the budget.
    mutating func add(_ bytes: inout ByteBuffer, upTo maximum: Int, free: Int) -> Addition {
        let count = min(maximum - self.count, bytes.readableBytes)
        guard count > 0 else { return .isFull }
        guard block != nil || self.count + count <= free else { return .needsBlock }
        guard var piece = bytes.readSlice(length: count) else { return .added }
        if let block { block.write(piece) } else { few.writeBuffer(&piece) }
        return .added
    }

    /// The number of further bytes that fit in the block; `nil` without a block.
    func room(upTo maximum: Int) -> Int? { block.map { maximum - $0.count } }

    /// Moves the bytes to a block, in which more bytes fit.
    mutating func hold(_ block: MemoryBudget.Block) {
        block.write(few)
        few = ByteBuffer()
        self.block = block
    }

    /// Notes that the bytes are being sent to the store.
    func isSending() { block?.isSending() }

    /// Removes the bytes. Returns the bytes, and their block, which must be kept until the bytes are sent.
    mutating func take() -> (bytes: ByteBuffer, block: MemoryBudget.Block?) {
        defer { self = GatheredBytes() }
        isSending()
        return (block?.bytes ?? few, block)
    }
}
