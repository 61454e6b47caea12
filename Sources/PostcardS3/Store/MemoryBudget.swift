import Synchronization

/// The memory for bytes that wait to be sent to the object store, in blocks that all uploads share. Uploads that find
/// none free wait in the order of their requests.
final class MemoryBudget: Sendable {
    private struct State {
        var free: Int
        var waiting: [(id: Int, continuation: CheckedContinuation<Bool, Never>)] = []
        var lastID = 0
    }

    private let state: Mutex<State>

    init(blocks: Int) {
        state = Mutex(State(free: blocks))
    }

    /// A block, given back when the last reference is gone.
    final class Block: Sendable {
        private let budget: MemoryBudget

        fileprivate init(_ budget: MemoryBudget) {
            self.budget = budget
        }

        deinit {
            budget.giveBack()
        }
    }

    /// Waits for a free block.
    ///
    /// - Throws: `CancellationError` if the task is cancelled.
    func take() async throws -> Block {
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
                if let isTaken { continuation.resume(returning: isTaken) }
            }
        } onCancel: {
            let continuation = state.withLock { state in
                state.waiting.firstIndex { $0.id == id }.map { state.waiting.remove(at: $0).continuation }
            }
            continuation?.resume(returning: false)
        }
        guard isTaken else { throw CancellationError() }
        return Block(self)
    }

    private func giveBack() {
        let next: CheckedContinuation<Bool, Never>? = state.withLock { state in
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume(returning: true)
    }
}
