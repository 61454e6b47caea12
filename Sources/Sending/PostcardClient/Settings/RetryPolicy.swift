import HTTPTypes
import PostcardForm
import PostcardFoundation

/// Whether and when a failed upload is tried again.
///
/// ```swift
/// let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
/// ```
///
/// Further settings are properties:
///
/// ```swift
/// var policy = RetryPolicy(maximumAttempts: 20, deadline: .seconds(3600))
/// policy.maximumDelay = .seconds(300)
/// ```
///
/// Only failures that may pass are tried again: a connection that failed, broke or timed out, and the statuses in
/// ``statuses``. A 409 (Conflict) to a form that may have arrived can mean that the server is still processing the form
/// (draft-ietf-httpapi-idempotency-key-header), so the form is also sent again. All attempts have the same
/// `Idempotency-Key`, by which a server can recognize the upload. If the server does not honor the key, a retry after a
/// lost response may store the form twice, unless ``repeatsUnclear`` is `false`.
///
/// Uploads in this process and in a queue follow the same rules. A queue also waits for a network on which the server's
/// certificate is trusted.
public struct RetryPolicy: Sendable, Hashable {
    /// The maximum number of attempts, including the first. With 1, nothing is tried again.
    public var maximumAttempts: Int

    /// The statuses that are tried again, because the server was busy, slow or unavailable, or the network responded in
    /// its place (RFC 9110 §15.5.9 and §15.6, RFC 6585 §4 and §6, RFC 8470 §5.2). Defaults to 408, 425, 429, and 500 to
    /// 599 except 501 and 505, which mean that the server does not support the request.
    public var statuses = Set(500..<600).subtracting([501, 505]).union([408, 425, 429])

    /// Whether to try again after a connection failed, broke or timed out, or after a broken TLS handshake. A queue
    /// also tries again if a certificate was not trusted or an interceptor failed. Defaults to `true`.
    public var retriesConnectionFailures = true

    /// The maximum delay before the second attempt, doubled with each further attempt. Defaults to 0.5 seconds.
    public var firstDelay: Duration = .milliseconds(500)

    /// The maximum delay after repeated doubling. Defaults to 30 seconds.
    public var maximumDelay: Duration = .seconds(30)

    /// The random fraction of a delay, from 0 to 1, against many clients retrying at the same time. Defaults to 0.5.
    public var jitter = 0.5

    /// The maximum delay that a server's `Retry-After` can set. Longer delays are shortened. Defaults to 120 seconds.
    public var maximumRetryAfter: Duration = .seconds(120)

    /// How long after the start of the upload another attempt may start. Defaults to `nil`, no limit. Unlike
    /// ``UploadTimeouts/total``, this does not end a running attempt. A queue counts from the first attempt after the
    /// upload was enqueued or retried by hand, across processes.
    public var deadline: Duration?

    /// The maximum number of retries that interceptors may request for one upload, in addition to the attempts of the
    /// policy. Defaults to 5. In the retry policy of a ``ResumptionPolicy`` this value has no effect.
    public var maximumInterceptorRetries = 5

    /// The maximum number of 409 (Conflict) responses in a row to a form that may have arrived. More fail the upload,
    /// because the conflict is likely to be permanent. Responses with a `Retry-After` are not limited. Defaults to 10.
    public var maximumConflicts = 10

    /// Whether a form is sent again after its response was lost, when a server may already have the whole form.
    /// Defaults to `true`, because the server can recognize the form by its `Idempotency-Key`.
    ///
    /// Few servers support that field. With `false` the upload fails instead, so that the app can ask its user. In a
    /// queue it fails with the code `unclear`, which ``PostcardClient/UploadError`` does not have. Then
    /// `UploadQueue.retry(_:)` sends the form again, and `UploadQueue.confirmArrival(of:)` records that the server has
    /// it. A resumable upload fails in this way only if the server has the whole form and then forgets the upload.
    /// `false` in the retry policy of a ``ResumptionPolicy`` has the same effect.
    ///
    /// In a background session, the system may repeat requests without reporting it. So every attempt that ended
    /// without a response may have arrived.
    public var repeatsUnclear = true

    /// Makes a policy with the default delays: 0.25 to 0.5 seconds, 0.5 to 1 second, and so on up to half a minute.
    ///
    /// - Parameters:
    ///   - maximumAttempts: The maximum number of attempts, including the first.
    ///   - deadline: How long after the start of the upload another attempt may start. Defaults to `nil`, no limit.
    public init(maximumAttempts: Int, deadline: Duration? = nil) {
        self.maximumAttempts = maximumAttempts
        self.deadline = deadline
    }

    /// A policy that never tries again.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// A queue's default policy: up to 1,000 attempts, at most 30 minutes apart, for uploads that may wait for days.
    public static let persistent: RetryPolicy = {
        var policy = RetryPolicy(maximumAttempts: 1000)
        policy.maximumDelay = .seconds(1800)
        return policy
    }()

    /// Whether the policy allows a second attempt.
    var isOn: Bool { maximumAttempts > 1 }

    /// Whether a failure may pass by itself, so that another attempt may succeed.
    ///
    /// - Parameter isQueued: Whether the upload can wait for another network. Defaults to `false`.
    func mayPass(_ error: UploadError, isQueued: Bool = false) -> Bool {
        switch error.outlook {
        case .passes: return retriesConnectionFailures
        case .passesElsewhere: return isQueued && retriesConnectionFailures
        case .lasts: return false
        case nil: break
        }
        return switch error.code {
        case .connectionFailed, .connectionLost, .timedOut, .connectTimedOut, .interceptorFailed:
            retriesConnectionFailures
        case .refused:
            error.response.map { response in
                statuses.contains(response.status.code) || response.isDigestMismatch
                    || response.objectStoreProblem?.isTransient == true
            } ?? false
        default: false
        }
    }

    /// How long to wait before the next attempt.
    ///
    /// - Parameters:
    ///   - attempt: The number of the failed attempt, from 1.
    ///   - retryAfter: The delay that the server requested.
    func delay(
        after attempt: Int, retryAfter: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        if let retryAfter { return min(retryAfter, maximumRetryAfter) }
        let longest = Duration.growing(after: attempt, from: firstDelay, upTo: maximumDelay)
        let share = min(max(jitter, 0), 1)
        return longest * (1 - share * Double.random(in: 0..<1, using: &generator))
    }
}
