extension ContinuousClock {
    /// Longer than any program runs. The runtime ends a program that is to sleep for longer than it can count.
    private static let longest = Duration.seconds(Int64(1) << 32)

    /// Sleeps until a moment, be it as far away as a `Duration` reaches.
    ///
    /// - Throws: `CancellationError`.
    func sleepLong(until moment: Instant) async throws {
        try await sleep(until: min(moment, now.advanced(by: Self.longest)))
    }
}
