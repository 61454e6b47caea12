import PostcardForm
import Synchronization

/// A cap on how many bytes a second go out.
///
/// ```swift
/// var client = UploadClient()
/// client.rateLimit = RateLimit(bytesPerSecond: 250_000)
/// ```
///
/// The limit is shared by all uploads that have it: those of a client, its copies, and other clients that are
/// given the same one share its bytes by turns. For a limit on one upload alone, send it with a copy of the client
/// that has a limit of its own.
///
/// It counts the bytes of the form's body, which are read no faster than they may go out. They go out in bursts of
/// a twentieth of a second's worth, so that an upload that waits for its turn is never taken for one that stands
/// still, unless a thousand of them share a limit.
public final class RateLimit: Sendable {
    /// The most bytes of forms that go out in a second.
    public let bytesPerSecond: Int

    private let bucket: Mutex<TokenBucket>
    private let now: @Sendable () -> Duration
    private let sleep: @Sendable (Duration) async throws -> Void

    /// Makes a limit.
    ///
    /// - Parameters:
    ///   - bytesPerSecond: The most bytes in a second; less than one is taken for one.
    ///   - clock: What measures the time.
    public init(bytesPerSecond: Int, clock: some Clock<Duration> = ContinuousClock()) {
        self.bytesPerSecond = max(bytesPerSecond, 1)
        bucket = Mutex(TokenBucket(bytesPerSecond: bytesPerSecond))
        let start = clock.now
        now = { start.duration(to: clock.now) }
        sleep = { try await clock.sleep(until: start.advanced(by: $0), tolerance: .zero) }
    }
}

extension RateLimit: BodyPace {
    package func allowance() async throws -> Int {
        try Task.checkCancellation()
        let now = now()
        let (start, burst) = bucket.withLock { ($0.take(at: now), $0.burst) }
        do {
            if start > now { try await sleep(start) }
        } catch {
            takeBack(burst)
            throw error
        }
        return burst
    }

    package func takeBack(_ count: Int) {
        bucket.withLock { $0.takeBack(count) }
    }
}
