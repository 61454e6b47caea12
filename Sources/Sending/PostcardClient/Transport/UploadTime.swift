import Synchronization

/// The steady clock of a client's uploads, with the timer of their timeouts.
package struct UploadTime: Sendable {
    package let clock: any UploadClock
    let timer: SharedTimer

    static let system = UploadTime(SystemClock())

    /// Makes the time that a clock shows.
    package init(_ clock: any UploadClock) {
        self.clock = clock
        timer = SharedTimer(clock)
    }

    /// The time of a transport that has its own, or else the system's.
    init(of transport: any UploadTransport) {
        self = (transport as? any TimedTransport)?.time ?? .system
    }
}

/// A transport with a time of its own, for tests.
package protocol TimedTransport: UploadTransport {
    var time: UploadTime { get }
}

/// What uploads wait by. A clock of tests passes time only while no upload has anything to do.
package protocol UploadClock: Sendable {
    var instant: ContinuousClock.Instant { get }

    /// Suspends an upload until a moment: the delay before its next attempt.
    ///
    /// - Throws: `CancellationError`.
    func sleep(until end: ContinuousClock.Instant) async throws

    /// Suspends the timer of timeouts, which counts as a thing to do, until a moment, and calls a closure then, which
    /// returns at once.
    ///
    /// - Throws: `CancellationError`.
    func wait(until end: ContinuousClock.Instant, then call: @Sendable () -> Void) async throws

    /// Notes that uploads have this many more things to do: an upload to end, progress to report, a timer to
    /// set.
    func note(_ change: Int)

    /// Cancels a task from a call of the timer, which may not call the cancellation handlers of transports itself.
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
    /// Longer than any program runs. The runtime ends a program that is to sleep for longer than it can count.
    private static let longest = Duration.seconds(Int64(1) << 32)

    /// Sleeps until a moment as far away as a `Duration` can be.
    ///
    /// - Throws: `CancellationError`.
    func sleepLong(until moment: Instant) async throws {
        try await sleep(until: min(moment, now.advanced(by: Self.longest)))
    }
}

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
