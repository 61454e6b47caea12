/// Hands out leave to send bytes, in bursts of a twentieth of a second's worth.
///
/// It keeps one moment: the one at which all that was handed out has been paid for. Whoever comes before it waits,
/// in the order in which they come. Moments are counted from when the bucket was made.
struct TokenBucket: Sendable {
    /// The bytes of a burst. A twentieth of a second is short enough that a slow rate looks steady on the wire,
    /// and long enough that waiting for it costs nothing.
    let burst: Int

    /// How long a burst pays for.
    private let period: Duration
    private let bytesPerSecond: Int
    private var paidUntil = Duration.zero

    init(bytesPerSecond: Int) {
        self.bytesPerSecond = max(bytesPerSecond, 1)
        burst = max(self.bytesPerSecond / 20, 1)
        period = .seconds(1) * burst / self.bytesPerSecond
    }

    /// Takes a burst.
    ///
    /// - Parameter now: The moment.
    /// - Returns: When it may be sent, which may be past.
    mutating func take(at now: Duration) -> Duration {
        // Who comes late, because a timer was, catches up by one burst and no more: idle time is not saved.
        let start = max(paidUntil, now - period)
        paidUntil = start + period
        return start
    }

    /// Takes bytes back that were not sent.
    mutating func takeBack(_ count: Int) {
        paidUntil -= .seconds(1) * count / bytesPerSecond
    }
}
