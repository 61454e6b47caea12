package import HTTPTypes
import PostcardForm
package import PostcardFoundation

/// Whether and when a failed upload is tried again.
///
/// ```swift
/// let client = UploadClient(retryPolicy: RetryPolicy(maximumAttempts: 4))
/// ```
///
/// What is seldom changed is a property:
///
/// ```swift
/// var policy = RetryPolicy(maximumAttempts: 20, deadline: .seconds(3600))
/// policy.maximumDelay = .seconds(300)
/// ```
///
/// Only failures that may pass are tried again: a connection that failed, broke or timed out, and the statuses listed
/// here. A queue also waits for a network on which the server's certificate is trusted. A server that responds with 409
/// (Conflict) to a form that may have arrived may still be processing it (draft-ietf-httpapi-idempotency-key-header),
/// and is also asked again. All attempts have the same `Idempotency-Key`, by which a server can tell that they are one
/// upload. If the server does not honor it, a retry after a lost response may store the form twice, unless
/// ``repeatsUnclear`` is `false`.
///
/// Apart from that, uploads in this process and in a queue follow the same rules.
public struct RetryPolicy: Sendable, Hashable {
    /// The maximum number of attempts, including the first. 1 means that nothing is tried again.
    public var maximumAttempts: Int

    /// The statuses that are tried again, because the server was busy, slow or unavailable, or because the network
    /// responded in its place (RFC 9110 §15.5.9 and §15.6, RFC 6585 §4 and §6, RFC 8470 §5.2). Defaults to 408, 425,
    /// 429, and 500 to 599 except 501 and 505, which say what the server cannot do.
    public var statuses = Set(500..<600).subtracting([501, 505]).union([408, 425, 429])

    /// Whether a connection that failed, broke or timed out is tried again, also if its TLS handshake broke. In a
    /// queue, also one to a server whose certificate is not trusted, and an upload whose interceptor failed. Defaults
    /// to `true`.
    public var retriesConnectionFailures = true

    /// The maximum delay before the second attempt, which doubles with each further attempt. Defaults to 0.5 seconds.
    public var firstDelay: Duration = .milliseconds(500)

    /// The limit of the doubling. Defaults to 30 seconds.
    public var maximumDelay: Duration = .seconds(30)

    /// The random fraction of the delay, from 0 to 1, so that many clients do not come back at once. Defaults to 0.5.
    public var jitter = 0.5

    /// The limit of a server's `Retry-After`, which is used instead of a longer one. Defaults to 120 seconds.
    public var maximumRetryAfter: Duration = .seconds(120)

    /// How long after the start of the upload another attempt may start. Defaults to `nil`, no limit. A running attempt
    /// is not cancelled: ``UploadTimeouts/total`` does that. A queue counts from the first attempt since the upload was
    /// enqueued or retried by hand, across processes.
    public var deadline: Duration?

    /// How often interceptors may have one upload tried again, in addition to the attempts of the policy. Defaults
    /// to 5. Of a ``ResumptionPolicy``'s retries it is not used: that of the client is.
    public var maximumInterceptorRetries = 5

    /// How many responses in a row may say 409 (Conflict), without a `Retry-After`, to a form that may have arrived
    /// before the upload fails. Defaults to 10. After that, the conflict is likely to last.
    public var maximumConflicts = 10

    /// Whether a form is sent again that a server may have: all of it was sent, and the response was lost. Defaults to
    /// `true`, because the server can tell by the `Idempotency-Key` that it is the same form.
    ///
    /// Few servers know that field. With `false` the upload fails instead, so that the app can ask its user: in a queue
    /// with the code `unclear`, which ``PostcardClient/UploadError`` does not have: `UploadQueue.retry(_:)` sends the
    /// form again, and `UploadQueue.confirmArrival(of:)` says that the server has it. An upload that resumes is unclear
    /// only if the server has all of it and then forgets the upload. `false` in a ``ResumptionPolicy`` counts as well.
    ///
    /// In a background session, the system repeats requests by itself and does not say so: every attempt is unclear that
    /// ended without a response.
    public var repeatsUnclear = true

    /// Makes a policy with the default delays: 0.25 to 0.5 seconds, then 0.5 to 1, and so on up to half a minute.
    ///
    /// - Parameters:
    ///   - maximumAttempts: The maximum number of attempts, including the first.
    ///   - deadline: How long after the start of the upload another attempt may start. Defaults to `nil`, no limit.
    public init(maximumAttempts: Int, deadline: Duration? = nil) {
        self.maximumAttempts = maximumAttempts
        self.deadline = deadline
    }

    /// Nothing is tried again.
    public static let never = RetryPolicy(maximumAttempts: 1)

    /// Up to 1,000 attempts, at most 30 minutes apart, for uploads that may wait for days. The default of a queue.
    public static let persistent: RetryPolicy = {
        var policy = RetryPolicy(maximumAttempts: 1000)
        policy.maximumDelay = .seconds(1800)
        return policy
    }()

    /// Whether another attempt can be made at all.
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
    ///   - retryAfter: The delay that the server asked for.
    ///   - generator: The source of chance.
    func delay(
        after attempt: Int, retryAfter: Duration?, using generator: inout some RandomNumberGenerator
    ) -> Duration {
        if let retryAfter { return min(retryAfter, maximumRetryAfter) }
        let longest = Duration.growing(after: attempt, from: firstDelay, upTo: maximumDelay)
        let share = min(max(jitter, 0), 1)
        return longest * (1 - share * Double.random(in: 0..<1, using: &generator))
    }
}

/// A key by which a server can tell that several requests are the same upload
/// (draft-ietf-httpapi-idempotency-key-header).
struct IdempotencyKey: Sendable {
    /// A string of a structured field (RFC 9651 §3.3.3), in quotes.
    private let fieldValue: String

    init(_ id: UUID = UUID()) {
        fieldValue = "\"\(id.uuidString)\""
    }

    /// Adds it to the header fields of a request, unless they have one.
    func add(to fields: inout HTTPFields) {
        if fields.idempotencyKey == nil { fields.idempotencyKey = fieldValue }
    }
}

extension HTTPFields {
    /// The value of `Idempotency-Key`.
    package var idempotencyKey: String? {
        get { HTTPField.Name("Idempotency-Key").flatMap { self[$0] } }
        set {
            if let name = HTTPField.Name("Idempotency-Key") { self[name] = newValue }
        }
    }
}

extension UploadResponse {
    /// Small enough for every calculation.
    private static let longestRetryAfter: Int64 = 999_999_999

    /// How long the server asks to wait (RFC 9110 §10.2.3): seconds, or a date, which is compared with the response's
    /// own `Date` if it has one, because clocks differ. Too many seconds count as many years.
    ///
    /// - Parameter now: The time by this machine's clock.
    package func retryAfter(now: Date = Date()) -> Duration? {
        guard let value = headerFields[.retryAfter] else { return nil }
        if !value.isEmpty, value.utf8.allSatisfy(\.isDigit) {
            return .seconds(min(Int64(value) ?? .max, Self.longestRetryAfter))
        }
        guard let date = Date(httpDate: value, now: now) else { return nil }
        let sent = headerFields[.date].flatMap { Date(httpDate: $0, now: now) } ?? now
        return .seconds(max(0, date.timeIntervalSince(sent)))
    }
}

extension Date {
    /// Reads an HTTP-date in any of the three formats that RFC 9110 §5.6.7 requires recipients to accept.
    ///
    /// - Parameters:
    ///   - text: The date.
    ///   - now: The time by this machine's clock, for years of two digits.
    init?(httpDate text: String, now: Date) {
        let words = text.split { " ,:-".contains($0) }
        guard words.count >= 7 else { return nil }
        let isAsctime = Int(words[1]) == nil
        // asctime: Sun Nov  6 08:49:37 1994. The others: Sun, 06 Nov 1994 08:49:37 GMT, Sunday, 06-Nov-94 …
        let (day, month, year, time) =
            isAsctime ? (words[2], words[1], words[6], words[3...5]) : (words[1], words[2], words[3], words[4...6])
        let numbers = time.compactMap { Int($0) }
        guard numbers.count == 3, let day = Int(day), let writtenYear = Int(year), (0...9999).contains(writtenYear),
            let month = Date.months.firstIndex(of: String(month)), (1...31).contains(day),
            (0...23).contains(numbers[0]), (0...59).contains(numbers[1]), (0...60).contains(numbers[2])
        else { return nil }
        var calendar = Calendar(identifier: .gregorian)
        calendar.timeZone = .gmt
        var fullYear = writtenYear
        if year.count == 2 {
            // A year that would be more than 50 years ahead belongs to the century before (RFC 9110 §5.6.7).
            let currentYear = calendar.component(.year, from: now)
            fullYear += currentYear / 100 * 100
            if fullYear > currentYear + 50 { fullYear -= 100 }
        }
        let components = DateComponents(
            year: fullYear, month: month + 1, day: day, hour: numbers[0], minute: numbers[1], second: numbers[2])
        guard let date = calendar.date(from: components) else { return nil }
        self = date
    }

    private static let months = [
        "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
    ]
}
