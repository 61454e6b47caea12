public import HTTPTypes
public import Logging
public import PostcardFoundation

/// How uploads use the network.
public struct NetworkOptions: Sendable {
    /// The networks that uploads may use. Defaults to all.
    public var allowed = AllowedNetworks.all

    /// How fast forms are sent, for all uploads of this client and its copies together. Defaults to `nil`, no limit.
    public var rateLimit: RateLimit?

    /// The size of a body, in bytes, above which the server is asked whether it wants it before it is sent. Defaults to
    /// `nil`: the server is never asked. A body of unknown length counts as larger.
    ///
    /// A refusal by the request's head alone, such as for missing authorization or a form that is too large, then costs
    /// no more than the head. The question is `Expect: 100-continue` (RFC 9110 §10.1.1), and a server that says nothing
    /// gets the body after a second. On Apple platforms the wait is URLSession's own.
    public var expectContinueAbove: Int64?

    /// Whether a server is asked for its limit before a form that follows it is prepared, as with
    /// `PictureFitting.serverLimit` of `PostcardPictures`. Defaults to `false`: its first refusal says the limit.
    ///
    /// The question is OPTIONS, and the answer `max-size` in `Upload-Limit` (draft-ietf-httpbis-resumable-upload). It has
    /// the header fields of the upload, without what interceptors would add. A server that does not answer within 10
    /// seconds, or refuses, is taken to have no limit until it refuses the form.
    public var asksForLimits = false

    /// Whether an upload continues when the user leaves the app, for as long as the system allows: about half a minute.
    /// Defaults to `false`: the system suspends the app after a few seconds, and the server loses the connection.
    ///
    /// The time includes the preparation of a form and the delays between attempts. What takes longer is suspended, and
    /// its connection is lost when the app runs again: set ``UploadClient/retryPolicy`` too, or use a queue with a background
    /// session, such as `UploadQueue` of `PostcardQueue`. It has no effect where the system suspends no apps, as on macOS
    /// and Linux.
    public var continuesInBackground = false

    /// How the system is asked not to suspend the app.
    package var activity = ExpiringActivity.shared

    /// Makes the defaults.
    public init() {}
}

/// Whether an upload follows redirects.
///
/// - A 307 or 308 sends the form again to the other place, unless the form has a stream that can be read only once.
/// - A 303 requests the other place with GET, without the form, which the server has by then (RFC 9110 §15.4.4).
/// - A 301 or 302 fails the upload as refused: RFC 9110 §15.4.2 lets clients turn a POST into a GET, and the form would
///   be lost silently.
///
/// Another origin gets only the header fields that describe what is sent and what is accepted, and the
/// `Idempotency-Key`; interceptors are not called for it. A redirect from `https` to `http` is not followed.
public enum RedirectPolicy: Sendable, Hashable {
    /// No redirect is followed: each is a refusal. After a 303 the server has the form nevertheless.
    case never
    /// Up to this many redirects are followed in a row.
    case follow(maximum: Int)
}

/// Which responses mean that the server has the form, and how they are read.
public struct ResponseOptions: Sendable {
    /// The statuses of success. Defaults to 200 to 299 (RFC 9110 §15.3). Any other is a redirect, or an error with the
    /// code ``UploadError/Code/refused``.
    public var acceptedStatuses = Set(200..<300)

    /// Whether a response counts that arrives before the whole form was sent. Defaults to `false`: it fails the upload
    /// with ``UploadError/Code/earlyResponse``, because a server that has not received a form cannot have stored it.
    /// After an attempt whose response was lost it counts: a server that knows the form by its key need not read it
    /// again.
    ///
    /// Set it for a server that decides by the beginning of a form. ``UploadResponse/isEarly`` then says which
    /// responses were early.
    public var acceptsEarly = false

    /// The maximum size of a response body, in bytes. Defaults to 16 MiB.
    public var maximumBytes = 16 << 20

    /// The decoder of JSON in responses, with the formats of dates and keys. Defaults to a `JSONDecoder` without changes.
    ///
    /// ```swift
    /// client.responses.decoder.keyDecodingStrategy = .convertFromSnakeCase
    /// ```
    ///
    /// ``UploadResponse/decode(_:decoder:)`` and endpoints without a decoder of their own use it. It is an object: copies
    /// of a client share it, so change it before anything is sent.
    public var decoder = JSONDecoder()

    /// Compares what the server says it received with what was sent. Defaults to `nil`: nothing is compared.
    public var verification: UploadVerification?

    /// Whether digests protect the form in transit (RFC 9530). Defaults to `false`.
    ///
    /// The form is read once before it is sent. Its SHA-256 is sent with it as `Repr-Digest`, and that of each append of
    /// a resumable upload, which is read once more too, as `Content-Digest`. A server that knows them, as
    /// `postcard serve` does, refuses bytes that changed in transit before it stores anything. A resumable upload sends
    /// them again; an ordinary one does if ``UploadClient/retryPolicy`` allows another attempt. ``UploadResponse/isVerified`` then says
    /// whether the server has reported the same digest.
    ///
    /// A form with a stream that can be read only once is sent without digests.
    public var sendsDigests = false

    /// Makes the defaults.
    public init() {}
}

/// What uploads report while they run, and to whom.
public struct ReportingOptions: Sendable {
    /// The minimum time between two reports of progress. Defaults to 50 milliseconds, which is more often than a screen
    /// can show. An attempt's first step, the end of each part and the last step are always reported.
    public var progressInterval = Duration.milliseconds(50)

    /// The logger for uploads: every request and response at level `debug`, failures and retries at `info`. All lines
    /// of an upload have the same `upload-id`. Values of fields are never logged, and of header fields only those that
    /// contain no secrets. Defaults to `nil`: nothing is logged.
    public var logger: Logger?

    /// The name of a header field that sends the `upload-id` of the log to the server, such as `X-Request-ID`. Defaults
    /// to `nil`.
    public var requestIDField: HTTPField.Name?

    /// Makes the defaults.
    public init() {}
}

/// How long an upload may wait for what. `nil` means no limit.
public struct UploadTimeouts: Sendable, Hashable {
    /// How long an attempt may be idle, with no bytes moving in either direction, before it fails with
    /// ``UploadError/Code/timedOut``. Defaults to 60 seconds.
    public var idle: Duration?

    /// How long connecting may take, including the wait for a free connection, before an attempt fails with
    /// ``UploadError/Code/connectTimedOut``. Defaults to `nil`: the transport's own limit and ``idle`` apply.
    public var connect: Duration?

    /// How long a whole response may take, from the end of the form to the end of the response, before an attempt fails
    /// with ``UploadError/Code/timedOut``. Defaults to five times ``idle``, which is five minutes.
    ///
    /// This timeout ends responses that ``idle`` does not, because they arrive byte by byte.
    public var response: Duration? {
        get {
            switch responseLimit {
            case .followingIdle: idle.map { min($0, Self.longestIdle) * 5 }
            case .set(let duration): duration
            }
        }
        set { responseLimit = .set(newValue) }
    }

    /// How long an upload may take with all attempts and the delays between them before it fails with
    /// ``UploadError/Code/deadlinePassed``. Defaults to `nil`, because a large form over a slow network takes long.
    public var total: Duration?

    private enum ResponseLimit: Hashable {
        case followingIdle
        case set(Duration?)
    }

    private var responseLimit = ResponseLimit.followingIdle

    /// Longer than any program runs, and short enough to be multiplied.
    private static let longestIdle = Duration.seconds(Int64(1) << 40)

    /// Makes timeouts. The timeout of the response is five times `idle` until ``response`` is set.
    ///
    /// - Parameters:
    ///   - idle: How long an attempt may be idle. Defaults to 60 seconds.
    ///   - connect: How long connecting may take. Defaults to `nil`: the transport's own limit and `idle` apply.
    ///   - total: How long the whole upload may take. Defaults to `nil`: no limit.
    public init(idle: Duration? = .seconds(60), connect: Duration? = nil, total: Duration? = nil) {
        self.idle = idle
        self.connect = connect
        self.total = total
    }
}
