public import HTTPTypes
public import Logging
public import PostcardFoundation

/// The networks that uploads use, and how they use them.
public struct NetworkOptions: Sendable {
    /// The networks that uploads may use. Defaults to all.
    public var allowed = AllowedNetworks.all

    /// The maximum speed of all uploads of this client and its copies together. Defaults to `nil`, no limit.
    public var rateLimit: RateLimit?

    /// The largest body, in bytes, that the client sends without first asking the server whether it wants the body.
    /// Defaults to `nil`: the client never asks. A body of unknown length counts as larger.
    ///
    /// If the server refuses the request because of its head, such as for missing authorization, the body is not sent.
    /// The head has `Expect: 100-continue` (RFC 9110 §10.1.1). If the server does not respond within a second, the body
    /// is sent anyway. On Apple platforms, URLSession decides how long to wait.
    public var expectContinueAbove: Int64?

    /// Whether the client asks the server for its size limit before it prepares a form that adapts to the limit, as
    /// with `PictureFitting.serverLimit` of `PostcardPictures`. Defaults to `false`: the first refusal shows the limit.
    ///
    /// The client sends an OPTIONS request with the header fields of the upload, without those that interceptors would
    /// add. The limit is `max-size` in the response's `Upload-Limit` (draft-ietf-httpbis-resumable-upload). If the
    /// server refuses the request or does not respond within 10 seconds, the client assumes no limit until the server
    /// refuses the form.
    public var asksForLimits = false

    /// Whether an upload continues for about half a minute after the user leaves the app, which is as long as the
    /// system allows. Defaults to `false`: the system suspends the app after a few seconds, and the connection is lost.
    ///
    /// This half minute includes the preparation of a form and the delays between attempts. A longer upload is
    /// suspended with the app, and its connection is lost when the app runs again. So set ``UploadClient/retryPolicy``
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
/// - A 303 requests the new URL with GET and without the form, which the server already has (RFC 9110 §15.4.4).
/// - A 301 or 302 fails the upload as refused: a client may turn a POST into a GET and silently lose the form (RFC 9110
///   §15.4.2).
///
/// A request to another origin has only the header fields that describe the form and the accepted responses, and the
/// `Idempotency-Key`. Interceptors are not called for such a request. A redirect from `https` to `http` is not
/// followed.
public enum RedirectPolicy: Sendable, Hashable {
    /// No redirect is followed: every redirect fails the upload as refused. This includes a 303, which means that the
    /// server has the form.
    case never
    /// At most this many redirects in a row are followed.
    case follow(maximum: Int)
}

/// The responses that count as success, and how responses are read.
public struct ResponseOptions: Sendable {
    /// The statuses of success. Defaults to 200 to 299 (RFC 9110 §15.3). Any other status is a redirect, or fails the
    /// upload with the code ``UploadError/Code/refused``.
    public var acceptedStatuses = Set(200..<300)

    /// Whether a success that arrives before the whole form was sent counts. Defaults to `false`: such a response fails
    /// the upload with ``UploadError/Code/earlyResponse``, because the server cannot have stored the whole form. After
    /// an attempt whose response was lost, an early success always counts: the server may recognize the form by its
    /// key.
    ///
    /// Set this to `true` for a server that decides after reading only the beginning of a form.
    /// ``UploadResponse/isEarly`` then shows which responses were early.
    public var acceptsEarly = false

    /// The maximum size of a response body, in bytes. Defaults to 16 MiB.
    public var maximumBytes = 16 << 20

    /// The decoder for JSON in responses, with the formats of dates and keys. Defaults to an unchanged `JSONDecoder`.
    ///
    /// ```swift
    /// client.responses.decoder.keyDecodingStrategy = .convertFromSnakeCase
    /// ```
    ///
    /// ``UploadResponse/decode(_:decoder:)`` and endpoints without their own decoder use this decoder. All copies of a
    /// client share the decoder, so change it before anything is sent.
    public var decoder = JSONDecoder()

    /// Compares the bytes that the server reports as received with the bytes sent. Defaults to `nil`, no comparison.
    public var verification: UploadVerification?

    /// Whether digests protect the form in transit (RFC 9530). Defaults to `false`.
    ///
    /// The form is read once before it is sent, and its SHA-256 is sent with it as `Repr-Digest`. Each append of a
    /// resumable upload is also read once before, and its SHA-256 is sent as `Content-Digest`. A server that supports
    /// these digests, such as `postcard serve`, refuses changed bytes before it stores anything. A resumable upload
    /// then sends the bytes again, and an ordinary upload if ``UploadClient/retryPolicy`` allows another attempt.
    /// ``UploadResponse/isVerified`` shows whether the server has reported the same digest.
    ///
    /// A form with a stream that can be read only once is sent without digests.
    public var sendsDigests = false

    /// Makes options with the default values.
    public init() {}
}

/// The reports of uploads: progress and the log.
public struct ReportingOptions: Sendable {
    /// The minimum time between two reports of progress. Defaults to 50 milliseconds, which is more often than a screen
    /// can show. An attempt's first step, the end of each part and the last step are always reported.
    public var progressInterval = Duration.milliseconds(50)

    /// The logger for uploads. It gets every request and response at level `debug`, and failures and retries at `info`.
    /// All lines of an upload have the same `upload-id`. Values of form fields are never logged, and values of header
    /// fields only if they contain no secrets. Defaults to `nil`, no log.
    public var logger: Logger?

    /// The name of a header field that sends the log's `upload-id` to the server, such as `X-Request-ID`. Defaults to
    /// `nil`.
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

    /// How long a response may take, from the end of the form to the end of the response, before an attempt fails with
    /// ``UploadError/Code/timedOut``. Defaults to five times ``idle``, which is five minutes. This timeout also ends
    /// responses that arrive byte by byte, which ``idle`` does not end.
    public var response: Duration? {
        get {
            switch responseLimit {
            case .followingIdle: idle.map { min($0, Self.longestIdle) * 5 }
            case .set(let duration): duration
            }
        }
        set { responseLimit = .set(newValue) }
    }

    /// How long an upload may take with all its attempts and delays before it fails with
    /// ``UploadError/Code/deadlinePassed``. Defaults to `nil`, because sending a large form over a slow network takes
    /// long.
    public var total: Duration?

    private enum ResponseLimit: Hashable {
        case followingIdle
        case set(Duration?)
    }

    private var responseLimit = ResponseLimit.followingIdle

    /// The maximum of ``idle``, longer than any program runs. It is small enough that multiplying it does not overflow.
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
