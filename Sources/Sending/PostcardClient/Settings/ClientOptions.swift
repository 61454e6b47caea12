public import HTTPTypes
public import Logging
public import PostcardFoundation

/// How uploads use the network.
public struct NetworkOptions: Sendable {
    /// The networks that uploads may use. Defaults to all.
    public var allowed = AllowedNetworks.all

    /// How fast forms are sent, for all uploads of this client and its copies together. Defaults to `nil`, no limit.
    public var rateLimit: RateLimit?

    /// The size in bytes above which the server is asked whether it wants a body before the body is sent. Defaults to
    /// `nil`: the server is never asked. A body of unknown length counts as larger.
    ///
    /// A refusal by the request's head alone, such as for missing authorization or a form that is too large, then costs
    /// no more than the head. The request then has `Expect: 100-continue` (RFC 9110 §10.1.1). If the server does not
    /// respond within a second, the body is sent anyway. On Apple platforms, URLSession decides how long to wait.
    public var expectContinueAbove: Int64?

    /// Whether the server is asked for its size limit before a form is prepared, if the form adapts to the limit, as
    /// with `PictureFitting.serverLimit` of `PostcardPictures`. Defaults to `false`: the limit is learned from the
    /// server's first refusal.
    ///
    /// The request is an OPTIONS request, and the limit is `max-size` in the response's `Upload-Limit`
    /// (draft-ietf-httpbis-resumable-upload). The request has the header fields of the upload, without those that
    /// interceptors would add. If the server does not respond within 10 seconds, or refuses the request, the client
    /// assumes no limit until the server refuses the form.
    public var asksForLimits = false

    /// Whether an upload continues when the user leaves the app, for as long as the system allows: about half a minute.
    /// Defaults to `false`: the system suspends the app after a few seconds, and the server loses the connection.
    ///
    /// The time includes the preparation of a form and the delays between attempts. An upload that takes longer is
    /// suspended with the app, and its connection is lost when the app runs again: set ``UploadClient/retryPolicy``
    /// too, or use a queue with a background session, such as `UploadQueue` of `PostcardQueue`. This option has no
    /// effect on systems that do not suspend apps, such as macOS and Linux.
    public var continuesInBackground = false

    /// Asks the system not to suspend the app.
    package var activity = ExpiringActivity.shared

    /// Makes options with the default values.
    public init() {}
}

/// Whether an upload follows redirects.
///
/// - A 307 or 308 sends the form again to the new URL, unless the form has a stream that can be read only once.
/// - A 303 requests the new URL with GET and without the form, because the server already has the form (RFC 9110
///   §15.4.4).
/// - A 301 or 302 fails the upload as refused: RFC 9110 §15.4.2 lets clients turn a POST into a GET, and the form would
///   be lost silently.
///
/// A request to another origin has only the header fields that describe the form and the accepted responses, and the
/// `Idempotency-Key`. Interceptors are not called for such a request. A redirect from `https` to `http` is not
/// followed.
public enum RedirectPolicy: Sendable, Hashable {
    /// No redirect is followed: each redirect fails the upload as refused. A server that responds with 303 has the form
    /// nevertheless.
    case never
    /// At most this many redirects in a row are followed.
    case follow(maximum: Int)
}

/// Which responses mean that the server has the form, and how responses are read.
public struct ResponseOptions: Sendable {
    /// The statuses of success. Defaults to 200 to 299 (RFC 9110 §15.3). Any other status is a redirect, or fails the
    /// upload with the code ``UploadError/Code/refused``.
    public var acceptedStatuses = Set(200..<300)

    /// Whether a success counts that arrives before the whole form was sent. Defaults to `false`: such a response fails
    /// the upload with ``UploadError/Code/earlyResponse``, because a server that has not received a form cannot have
    /// stored it. After an attempt whose response was lost, an early success always counts: a server that recognizes
    /// the form by its key need not read it again.
    ///
    /// Set this to `true` for a server that decides after reading only the beginning of a form.
    /// ``UploadResponse/isEarly`` then says which responses were early.
    public var acceptsEarly = false

    /// The maximum size of a response body, in bytes. Defaults to 16 MiB.
    public var maximumBytes = 16 << 20

    /// The decoder for JSON in responses. It determines the formats of dates and keys. Defaults to a `JSONDecoder`
    /// without changes.
    ///
    /// ```swift
    /// client.responses.decoder.keyDecodingStrategy = .convertFromSnakeCase
    /// ```
    ///
    /// ``UploadResponse/decode(_:decoder:)`` and endpoints without a decoder of their own use this decoder. A decoder
    /// is an object that copies of a client share, so change it before anything is sent.
    public var decoder = JSONDecoder()

    /// Compares the bytes that the server says it received with the bytes that were sent. Defaults to `nil`: nothing is
    /// compared.
    public var verification: UploadVerification?

    /// Whether digests protect the form in transit (RFC 9530). Defaults to `false`.
    ///
    /// The form is read once before it is sent. Its SHA-256 is sent with it as `Repr-Digest`. Each append of a
    /// resumable upload is also read once more, and its SHA-256 is sent as `Content-Digest`. A server that supports
    /// these digests, such as `postcard serve`, refuses bytes that changed in transit before it stores anything. A
    /// resumable upload then sends the bytes again; an ordinary upload does so if ``UploadClient/retryPolicy`` allows
    /// another attempt. ``UploadResponse/isVerified`` then says whether the server has reported the same digest.
    ///
    /// A form with a stream that can be read only once is sent without digests.
    public var sendsDigests = false

    /// Makes options with the default values.
    public init() {}
}

/// What uploads report while they run, and where they report it.
public struct ReportingOptions: Sendable {
    /// The minimum time between two reports of progress. Defaults to 50 milliseconds, which is more often than a screen
    /// can show. An attempt's first step, the end of each part and the last step are always reported.
    public var progressInterval = Duration.milliseconds(50)

    /// The logger for uploads: every request and response at level `debug`, failures and retries at `info`. All lines
    /// of an upload have the same `upload-id`. Values of form fields are never logged, and values of header fields only
    /// if they contain no secrets. Defaults to `nil`: nothing is logged.
    public var logger: Logger?

    /// The name of a header field that sends the `upload-id` of the log to the server, such as `X-Request-ID`. Defaults
    /// to `nil`.
    public var requestIDField: HTTPField.Name?

    /// Makes options with the default values.
    public init() {}
}

/// The timeouts of an upload. `nil` means no limit.
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
    /// ``UploadError/Code/deadlinePassed``. Defaults to `nil`, because sending a large form over a slow network takes
    /// long.
    public var total: Duration?

    private enum ResponseLimit: Hashable {
        case followingIdle
        case set(Duration?)
    }

    private var responseLimit = ResponseLimit.followingIdle

    /// The maximum for ``idle``: longer than any program runs, and small enough that multiplying it does not overflow.
    private static let longestIdle = Duration.seconds(Int64(1) << 40)

    /// Makes timeouts. The timeout for the response is five times `idle` until ``response`` is set.
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
