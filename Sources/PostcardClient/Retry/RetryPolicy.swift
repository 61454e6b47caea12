import HTTPTypes

/// Whether and when a failed upload is tried again.
///
/// ```swift
/// let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
/// ```
///
/// Only what may pass is tried again: a connection that failed, broke or stood still, and the statuses named
/// here. All attempts carry one `Idempotency-Key`, by which a server can tell that they are one upload. Without
/// a server that heeds it, a retry after a lost answer may store the form twice.
public struct RetryPolicy: Sendable, Hashable {
    /// The most attempts, the first included; 1 means that nothing is tried again.
    public var maximumAttempts: Int

    /// The statuses that may pass: the server was busy, slow, or not there (RFC 9110 §15.5.9 and §15.6, RFC 6585
    /// §4, RFC 8470 §5.2).
    public var statuses: Set<Int>

    /// Whether a connection that failed, broke or timed out is tried again.
    public var retriesConnectionFailures: Bool

    /// The longest wait before the second attempt; it doubles with each one more.
    public var firstDelay: Duration

    /// The longest wait that the doubling leads to.
    public var maximumDelay: Duration

    /// The share of the wait that chance decides, from 0 to 1, so that many clients do not come back at once.
    public var jitter: Double

    /// The longest wait that a server's `Retry-After` may ask for. One that asks for more gets this one.
    public var maximumRetryAfter: Duration

    /// How long after the upload's beginning another attempt may begin at the latest; whenever it is due unless set. An
    /// attempt under way is not cut short: that is what ``UploadClient/totalTimeout`` does.
    public var deadline: Duration?

    /// Makes a policy. The defaults wait 0.25 to 0.5 seconds, then 0.5 to 1, and so on to half a minute.
    ///
    /// - Parameters:
    ///   - maximumAttempts: The most attempts, the first included.
    ///   - statuses: The statuses that may pass.
    ///   - retriesConnectionFailures: Whether a connection that failed, broke or timed out is tried again.
    ///   - firstDelay: The longest wait before the second attempt.
    ///   - maximumDelay: The longest wait that the doubling leads to.
    ///   - jitter: The share of the wait that chance decides.
    ///   - maximumRetryAfter: The longest wait that a server may ask for.
    ///   - deadline: How long after the upload's beginning another attempt may begin.
    public init(
        maximumAttempts: Int, statuses: Set<Int> = [408, 425, 429, 500, 502, 503, 504],
        retriesConnectionFailures: Bool = true, firstDelay: Duration = .milliseconds(500),
        maximumDelay: Duration = .seconds(30), jitter: Double = 0.5, maximumRetryAfter: Duration = .seconds(120),
        deadline: Duration? = nil
    ) {
        self.maximumAttempts = maximumAttempts
        self.statuses = statuses
        self.retriesConnectionFailures = retriesConnectionFailures
        self.firstDelay = firstDelay
        self.maximumDelay = maximumDelay
        self.jitter = jitter
        self.maximumRetryAfter = maximumRetryAfter
        self.deadline = deadline
    }

    /// Nothing is tried again.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// Whether another attempt can be made at all.
    var isOn: Bool { maximumAttempts > 1 }

    /// Whether a failure may pass.
    package func mayPass(_ error: UploadError) -> Bool {
        switch error.code {
        case .connectionFailed, .connectionLost, .timedOut, .connectTimedOut: retriesConnectionFailures
        case .refused: error.response.map { statuses.contains($0.status.code) } ?? false
        default: false
        }
    }

    /// How long to wait before the next attempt.
    ///
    /// - Parameters:
    ///   - attempt: The attempt that failed, from 1.
    ///   - retryAfter: What the server asked for.
    ///   - generator: Where chance comes from.
    package func delay(
        after attempt: Int, retryAfter: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        if let retryAfter { return min(retryAfter, maximumRetryAfter) }
        let doublings = min(max(attempt - 1, 0), 30)
        let longest = min(firstDelay * (1 << doublings), maximumDelay)
        let share = min(max(jitter, 0), 1)
        return longest * (1 - share * Double.random(in: 0..<1, using: &generator))
    }
}
