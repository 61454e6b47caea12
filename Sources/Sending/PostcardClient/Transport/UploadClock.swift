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
