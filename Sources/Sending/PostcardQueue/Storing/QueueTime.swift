package import PostcardFoundation

/// The clocks of a queue: the calendar's, by which uploads are due, and a steady one to wait by. Tests pass their own.
package struct QueueTime: Sendable {
    package var date: @Sendable () -> Date
    package var instant: @Sendable () -> ContinuousClock.Instant
    package var sleep: @Sendable (_ end: ContinuousClock.Instant) async throws -> Void
    /// How often a queue with a background session looks for changes by other processes. Defaults to `nil`: as the system
    /// requires.
    package var pollInterval: Duration?

    /// Makes the clocks of a queue. Defaults to those of the system.
    package init(
        date: @escaping @Sendable () -> Date = { Date() },
        instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        sleep: @escaping @Sendable (_ end: ContinuousClock.Instant) async throws -> Void = {
            try await Task.sleep(until: $0, clock: .continuous)
        },
        pollInterval: Duration? = nil
    ) {
        self.pollInterval = pollInterval
        self.date = date
        self.instant = instant
        self.sleep = sleep
    }
}
