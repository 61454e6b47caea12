import Synchronization

/// A limit on how many bytes per second are sent.
///
/// ```swift
/// var client = UploadClient()
/// client.network.rateLimit = RateLimit(bytesPerSecond: 250_000)
/// ```
///
/// All uploads with the same limit share it: the uploads of a client, of its copies, and of other clients with this
/// `RateLimit`. To limit a single upload, send it with a copy of the client that has its own limit.
///
/// The limit counts the bytes of request bodies, which are read no faster than they may be sent. They are sent in
/// bursts, each with the bytes of a twentieth of a second. So an upload that waits for its turn does not reach the idle
/// timeout, unless about a thousand uploads share a limit.
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

    /// Returns bytes that were allowed but not sent, so that other uploads can use them.
    func giveBack(_ count: Int) {
        bucket.withLock { $0.giveBack(count) }
    }
}

/// Allows bytes to be sent in bursts. Each burst has the bytes of a twentieth of a second.
///
/// The bucket stores only one time: when all bursts allowed so far are over. The next burst must wait for that time;
/// bursts are allowed in the order of the requests. Times are counted from the creation of the bucket.
struct TokenBucket: Sendable {
    /// The number of bytes of a burst. A twentieth of a second is short enough that a slow rate looks steady on the
    /// network, and long enough that waiting for it costs nothing.
    let burst: Int

    /// The time that a burst takes at this rate.
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
    /// - Parameter now: The current moment.
    /// - Returns: When the burst may be sent; possibly in the past.
    mutating func take(at now: Duration) -> Duration {
        // After a late timer at most one burst is made up for: idle time is not saved.
        let start = max(paidUntil, now - period)
        paidUntil = start + period
        return start
    }

    /// Returns bytes that were not sent, so that the next burst may be sent earlier.
    mutating func giveBack(_ count: Int) {
        paidUntil -= .seconds(1) * count / bytesPerSecond
    }
}
