public import HTTPTypes
public import Logging

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
    /// It ends responses that ``idle`` does not, because they arrive byte by byte.
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

/// Which responses mean that the server has the form.
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

    /// Compares what the server says it received with what was sent. Defaults to `nil`: nothing is compared.
    public var verification: UploadVerification?

    /// Makes the defaults.
    public init() {}
}

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

    /// Makes the defaults.
    public init() {}
}

/// The kinds of network that an upload may use.
///
/// ```swift
/// client.network.allowed = .unmetered
/// ```
///
/// Only Apple platforms distinguish networks. Elsewhere every upload may use the network that there is.
public struct AllowedNetworks: Sendable, Hashable {
    /// Whether the upload may use a cellular network. Defaults to `true`.
    public var cellular: Bool

    /// Whether the upload may use a network that the system considers expensive, such as cellular or a personal
    /// hotspot. Defaults to `true`.
    public var expensive: Bool

    /// Whether the upload may use a network in Low Data Mode. Defaults to `true`.
    public var constrained: Bool

    /// Allows every network, except those switched off.
    public init(cellular: Bool = true, expensive: Bool = true, constrained: Bool = true) {
        self.cellular = cellular
        self.expensive = expensive
        self.constrained = constrained
    }

    /// Every network.
    public static let all = AllowedNetworks()

    /// Networks that are neither expensive nor in Low Data Mode: usually Wi-Fi.
    public static let unmetered = AllowedNetworks(expensive: false, constrained: false)
}

/// What uploads report while they run, and to whom.
public struct ReportingOptions: Sendable {
    /// The minimum time between two reports of progress. Defaults to 50 milliseconds, which is more often than a screen
    /// can show. An attempt's first step, the end of each part and the last step are always reported.
    public var progressInterval = Duration.milliseconds(50)

    /// Where uploads are logged: every request and response at level `debug`, failures and retries at `info`. All lines
    /// of an upload have the same `upload-id`. Values of fields are never logged, and of header fields only those that
    /// contain no secrets. Defaults to `nil`: nothing is logged.
    public var logger: Logger?

    /// The name of a header field that sends the `upload-id` of the log to the server, such as `X-Request-ID`. Defaults
    /// to `nil`.
    public var requestIDField: HTTPField.Name?

    /// Makes the defaults.
    public init() {}
}
