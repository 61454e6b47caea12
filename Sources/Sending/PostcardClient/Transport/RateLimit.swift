import Synchronization

/// A maximum number of bytes sent per second.
///
/// ```swift
/// var client = UploadClient()
/// client.network.rateLimit = RateLimit(bytesPerSecond: 250_000)
/// ```
///
/// The uploads of a client, of its copies, and of other clients with the same `RateLimit` share the limit. To limit a
/// single upload, send it with a copy of the client that has its own limit.
///
/// The limit counts the bytes of request bodies, which are sent in bursts of a twentieth of a second. A waiting upload
/// reaches the idle timeout only if about a thousand uploads share a limit.
public final class RateLimit: Sendable {
    /// The maximum number of bytes sent per second.
    public let bytesPerSecond: Int

    private let bucket: Mutex<TokenBucket>
    private let now: @Sendable () -> Duration
    private let sleep: @Sendable (Duration) async throws -> Void

    /// Makes a limit.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: The maximum number of bytes per second; at least 1.
    ///   - clock: The clock that measures the time. Defaults to `ContinuousClock`.
    public init(bytesPerSecond: Int, clock: some Clock<Duration> = ContinuousClock()) {
        self.bytesPerSecond = max(bytesPerSecond, 1)
        bucket = Mutex(TokenBucket(bytesPerSecond: bytesPerSecond))
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: .zero) }
    }

    /// Waits until bytes may be sent.
    ///
    /// - Returns: The number of bytes that may be sent; at least one.
    /// - Throws: `CancellationError`.
    func allowance() async throws -> Int {
        try Task.checkCancellation()
        let now = now()
        let (start, burst) = bucket.withLock { ($0.take(at: now), $0.burst) }
        do {
            if start > now { try await sleep(start) }
        } catch {
            giveBack(burst)
            throw error
        }
        return burst
    }

    /// Returns allowed bytes that were not sent, so that other uploads can use them.
    func giveBack(_ count: Int) {
        bucket.withLock { $0.giveBack(count) }
    }
}

/// Allows bytes to be sent in bursts of a twentieth of a second.
///
/// The bucket stores only the time when all bursts allowed so far are over, counted from the creation of the bucket.
/// The next burst waits for that time. Bursts are allowed in the order of the requests.
struct TokenBucket: Sendable {
    /// The number of bytes of a burst. A twentieth of a second is short enough that a slow rate looks steady on the
    /// network, and long enough that waiting costs little.
    let burst: Int

    /// The duration of a burst at this rate.
    private let period: Duration
    private let bytesPerSecond: Int
    private var paidUntil = Duration.zero

    init(bytesPerSecond: Int) {
        self.bytesPerSecond = max(bytesPerSecond, 1)
        burst = max(self.bytesPerSecond / 20, 1)
        period = .seconds(1) * burst / self.bytesPerSecond
    }

    /// Reserves a burst.
    ///
    /// - Parameter now: The time since the creation of the bucket.
    /// - Returns: When the burst may be sent, which may be in the past.
    mutating func take(at now: Duration) -> Duration {
        // Idle time is not saved up. To catch up with a late timer, at most one burst is sent early.
        let start = max(paidUntil, now - period)
        paidUntil = start + period
        return start
    }

    /// Returns bytes that were not sent, so that the next burst may be sent earlier.
    mutating func giveBack(_ count: Int) {
        paidUntil -= .seconds(1) * count / bytesPerSecond
    }
}
