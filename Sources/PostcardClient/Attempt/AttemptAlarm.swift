import Synchronization

/// Looks after attempts when their time may have come: one timer for all of them, because a timer for each would cost
/// more than a small form.
final class AttemptAlarm: Sendable {
    static let shared = AttemptAlarm()

    /// Looks after an attempt, and says when to look again; `nil` for never.
    typealias Look = @Sendable (_ now: ContinuousClock.Instant) -> ContinuousClock.Instant?

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var entries: [Int: (time: ContinuousClock.Instant, look: Look)] = [:]
        /// Who rings next, perhaps for attempts that are over by then.
        var timer: (time: ContinuousClock.Instant, task: Task<Void, Never>)?
    }

    /// - Returns: What ``remove(_:)`` takes.
    func add(at time: ContinuousClock.Instant, _ look: @escaping Look) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            state.entries[state.lastNumber] = (time, look)
            setTimer(&state)
            return state.lastNumber
        }
    }

    func remove(_ number: Int) {
        state.withLock { $0.entries[number] = nil }
    }

    /// Has the timer ring no later than the first attempt needs.
    private func setTimer(_ state: inout State) {
        guard let time = state.entries.values.lazy.map(\.time).min() else { return }
        if let timer = state.timer {
            if timer.time <= time { return }
            timer.task.cancel()
        }
        let task = Task.detached {
            do {
                try await ContinuousClock().sleepLong(until: time)
                self.ring()
            } catch {
                // Another rings earlier.
            }
        }
        state.timer = (time, task)
    }

    private func ring() {
        let now = ContinuousClock.now
        let due = state.withLock { state in
            state.timer = nil
            return state.entries.filter { $0.value.time <= now }
        }
        let next = due.mapValues { $0.look(now) }
        state.withLock { state in
            for (number, time) in next where state.entries[number] != nil {
                if let time { state.entries[number]?.time = time } else { state.entries[number] = nil }
            }
            setTimer(&state)
        }
    }
}
