import Synchronization

/// Holds all tasks until it is opened, except those that are cancelled.
final class Gate: Sendable {
    private let state = Mutex<(isOpen: Bool, waiting: [AsyncStream<Never>.Continuation])>((false, []))

    func open() {
        let waiting = state.withLock { state in
            state.isOpen = true
            defer { state.waiting = [] }
            return state.waiting
        }
        for waiter in waiting { waiter.finish() }
    }

    /// Returns once it is open, or when the task is cancelled.
    func wait() async {
        let (opened, waiter) = AsyncStream.makeStream(of: Never.self)
        let isOpen = state.withLock { state in
            if !state.isOpen { state.waiting.append(waiter) }
            return state.isOpen
        }
        if isOpen { waiter.finish() }
        for await _ in opened {}
    }
}
