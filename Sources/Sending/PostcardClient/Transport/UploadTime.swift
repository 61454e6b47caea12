import Synchronization

/// The clock of a client's uploads, and the timer for their timeouts.
package struct UploadTime: Sendable {
    package let clock: any UploadClock
    let timer: SharedTimer

    static let system = UploadTime(SystemClock())

    /// Makes the time of uploads from a clock.
    package init(_ clock: any UploadClock) {
        self.clock = clock
        timer = SharedTimer(clock)
    }

    /// Uses the clock of a transport, or the system's clock if the transport has none.
    init(of transport: any UploadTransport) {
        self = (transport as? any TimedTransport)?.time ?? .system
    }
}

/// A transport with its own clock, for tests.
package protocol TimedTransport: UploadTransport {
    var time: UploadTime { get }
}

/// The clock for delays and timeouts of uploads. A test clock advances only while no upload has any work to do.
package protocol UploadClock: Sendable {
    var instant: ContinuousClock.Instant { get }

    /// Suspends an upload until a given time, for the delay before its next attempt.
    ///
    /// - Throws: `CancellationError`.
    func sleep(until end: ContinuousClock.Instant) async throws

    /// Suspends the timer of timeouts until a given time, and then calls a closure, which must return at once. A test
    /// clock counts the call as work.
    ///
    /// - Throws: `CancellationError`.
    func wait(until end: ContinuousClock.Instant, then call: @Sendable () -> Void) async throws

    /// Changes the number of pieces of work that uploads have left, such as progress to report or a timer to set. A
    /// test clock advances only when no work is left.
    func note(_ change: Int)

    /// Calls a closure that cancels a task. Cancelling a task runs the cancellation handlers of transports, which the
    /// timer must not run itself.
    func cancel(_ cancel: @escaping @Sendable () -> Void)
}

/// The clock of the system.
struct SystemClock: UploadClock {
    var instant: ContinuousClock.Instant { .now }

    func sleep(until end: ContinuousClock.Instant) async throws {
        try await ContinuousClock().sleepLong(until: end)
    }

    func wait(until end: ContinuousClock.Instant, then call: @Sendable () -> Void) async throws {
        try await ContinuousClock().sleepLong(until: end)
        call()
    }

    func note(_ change: Int) {}

    func cancel(_ cancel: @escaping @Sendable () -> Void) { Task { cancel() } }
}

extension ContinuousClock {
    /// The longest time to sleep, longer than any program runs. The Swift runtime traps if a sleep is too long.
    private static let longest = Duration.seconds(Int64(1) << 32)

    /// Sleeps until a given time, which may be as far away as the longest `Duration`.
    ///
    /// - Throws: `CancellationError`.
    func sleepLong(until moment: Instant) async throws {
        try await sleep(until: min(moment, now.advanced(by: Self.longest)))
    }
}

/// One timer for all requests on a clock, because a timer per request would cost more than sending a small form.
///
/// Callbacks must return at once and must not call the app's closures. The calls of one callback never overlap.
final class SharedTimer: Sendable {
    private let clock: any UploadClock

    init(_ clock: any UploadClock = SystemClock()) {
        self.clock = clock
    }

    /// Does the work that is due at a given time, and returns the time of the next call, or `nil` for none.
    typealias Callback = @Sendable (_ now: ContinuousClock.Instant) -> ContinuousClock.Instant?

    private let state = Mutex(State())

    private struct State {
        var lastNumber = 0
        var entries: [Int: Entry] = [:]
        /// The task that sleeps until the first callback is due. If that callback was removed, the task wakes too
        /// early. While callbacks run, the task may sleep for too long; the timer corrects this when they have
        /// returned.
        var sleep: (number: Int, time: ContinuousClock.Instant, task: Task<Void, Never>)?
    }

    private struct Entry {
        /// The time when the callback is due; `nil` while it runs.
        var time: ContinuousClock.Instant?
        let callback: Callback
    }

    /// Schedules a callback. Returns the number to pass to ``remove(_:)``.
    func add(at time: ContinuousClock.Instant, _ callback: @escaping Callback) -> Int {
        state.withLock { state in
            state.lastNumber += 1
            let number = state.lastNumber
            state.entries[number] = Entry(time: time, callback: callback)
            wake(at: time, &state)
            return number
        }
    }

    /// Removes a callback, without waiting for a call in progress.
    func remove(_ number: Int) {
        state.withLock { $0.entries[number] = nil }
    }

    /// Makes sure that the timer wakes at a given time or earlier.
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
                // The sleep was cancelled, because another task now sleeps until an earlier time.
            }
        }
        state.sleep = (number, time, task)
    }

    /// Calls the callbacks that are due after a sleep has ended.
    private func fire(_ sleep: Int) {
        let now = clock.instant
        let due = state.withLock { state -> [Int: Callback] in
            // The sleep may have been replaced just when it ended.
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
