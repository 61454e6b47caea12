/// Decides when a line about something that happens again and again is logged: at once, and then at most once a
/// minute.
package struct RepeatedLine: Sendable {
    private static let interval = Duration.seconds(60)

    private var written: ContinuousClock.Instant?
    private var unwritten = 0

    package init() {}

    /// Counts an event.
    ///
    /// - Returns: The number of events since the last line, if they are to be logged now.
    package mutating func count(at now: ContinuousClock.Instant) -> Int? {
        unwritten += 1
        if let written, written.duration(to: now) < Self.interval { return nil }
        defer { unwritten = 0 }
        written = now
        return unwritten
    }
}
