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
