import Synchronization

/// One timer for all requests on a clock: a timer for each would cost more than sending a small form.
///
/// Its callbacks must return at once, and the calls of one never overlap. They call no closures of the program.
final class SharedTimer: Sendable {
    private let clock: any UploadClock

    init(_ clock: any UploadClock = SystemClock()) {
        self.clock = clock
    }

    /// Does what is due, and returns when to be called next; `nil` means never.
    typealias Callback = @Sendable (_ now: ContinuousClock.Instant) -> ContinuousClock.Instant?

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var entries: [Int: Entry] = [:]
        /// The task that sleeps until the earliest time, or an earlier one whose entry was removed. While callbacks run
        /// it may sleep for longer; what is due before that is looked for when they have returned.
        var sleep: (number: Int, time: ContinuousClock.Instant, task: Task<Void, Never>)?
    }

    private struct Entry {
        /// When the callback is due; `nil` while it runs.
        var time: ContinuousClock.Instant?
        let callback: Callback
    }

    /// Schedules a callback.
    ///
    /// - Returns: The number to pass to ``remove(_:)``.
    func add(at time: ContinuousClock.Instant, _ callback: @escaping Callback) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            let number = state.lastNumber
            state.entries[number] = Entry(time: time, callback: callback)
            wake(at: time, &state)
            return number
        }
    }

    /// Removes a callback. A call in progress is not waited for.
    func remove(_ number: Int) {
        state.withLock { $0.entries[number] = nil }
    }

    /// Makes sure that the timer wakes at a time or before it.
    private func wake(at time: ContinuousClock.Instant, _ state: inout State) {
        if let sleep = state.sleep {
            if sleep.time <= time { return }
            sleep.task.cancel()
        }
        state.lastNumber += 1
        let number = state.lastNumber
        clock.note(1)
        let task = Task.detached { [clock] in
            defer { clock.note(-1) }
            do {
                try await clock.wait(until: time) { self.fire(number) }
            } catch {
                // Replaced by a task that wakes earlier.
            }
        }
        state.sleep = (number, time, task)
    }

    /// Calls what is due.
    ///
    /// - Parameter sleep: The number of the sleep that is over.
    private func fire(_ sleep: Int) {
        let now = clock.instant
        let due = state.withLock { state -> [Int: Callback] in
            // It may have been replaced just when it woke.
            guard state.sleep?.number == sleep else { return [:] }
            state.sleep = nil
            let due = state.entries.compactMapValues { entry in
                entry.time.map { $0 <= now } ?? false ? entry.callback : nil
            }
            for number in due.keys { state.entries[number]?.time = nil }
            return due
        }
        let next = due.mapValues { $0(now) }
        state.withLock { state in
            for (number, time) in next where state.entries[number] != nil {
                if let time { state.entries[number]?.time = time } else { state.entries[number] = nil }
            }
            if let time = state.entries.values.lazy.compactMap(\.time).min() { wake(at: time, &state) }
        }
    }
}
