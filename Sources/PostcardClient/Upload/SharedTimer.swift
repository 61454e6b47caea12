import Synchronization

/// One timer for all requests: a timer for each would cost more than sending a small form.
///
/// Its callbacks run one after the other and must return at once. They call no closures of the program.
final class SharedTimer: Sendable {
    static let shared = SharedTimer()

    /// Does what is due, and returns when to be called next; `nil` means never.
    typealias Callback = @Sendable (_ now: ContinuousClock.Instant) -> ContinuousClock.Instant?

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var entries: [Int: (time: ContinuousClock.Instant, callback: Callback)] = [:]
        /// The task that sleeps until the earliest time, or an earlier one whose entry was removed.
        var sleep: (time: ContinuousClock.Instant, task: Task<Void, Never>)?
    }

    /// Schedules a callback.
    ///
    /// - Returns: The number to pass to ``remove(_:)``.
    func add(at time: ContinuousClock.Instant, _ callback: @escaping Callback) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.entries[state.lastNumber] = (time, callback)
            sleepUntilEarliest(&state)
            return state.lastNumber
        }
    }

    /// Removes a callback. A call in progress is not waited for.
    func remove(_ number: Int) {
        state.withLock { $0.entries[number] = nil }
    }

    private func sleepUntilEarliest(_ state: inout State) {
        guard let time = state.entries.values.lazy.map(\.time).min() else { return }
        if let sleep = state.sleep {
            if sleep.time <= time { return }
            sleep.task.cancel()
        }
        let task = Task.detached {
            do {
                try await ContinuousClock().sleepLong(until: time)
                self.fire()
            } catch {
                // Replaced by a task that wakes earlier.
            }
        }
        state.sleep = (time, task)
    }

    private func fire() {
        let now = ContinuousClock.now
        let due = state.withLock { state in
            state.sleep = nil
            return state.entries.filter { $0.value.time <= now }
        }
        let next = due.mapValues { $0.callback(now) }
        state.withLock { state in
            for (number, time) in next where state.entries[number] != nil {
                if let time { state.entries[number]?.time = time } else { state.entries[number] = nil }
            }
            sleepUntilEarliest(&state)
        }
    }
}

extension ContinuousClock {
    /// Longer than any program runs. The runtime ends a program that is to sleep for longer than it can count.
    private static let longest = Duration.seconds(Int64(1) << 32)

    /// Sleeps until a moment as far away as a `Duration` can be.
    ///
    /// - Throws: `CancellationError`.
    func sleepLong(until moment: Instant) async throws {
        try await sleep(until: min(moment, now.advanced(by: Self.longest)))
    }
}
