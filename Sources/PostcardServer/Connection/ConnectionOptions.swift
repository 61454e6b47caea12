#if Server
/// How a connection is kept, and how it ends.
public struct ConnectionOptions: Sendable, Hashable {
    /// How long a client may be silent: within a body it is then refused with 408; between two requests, and where
    /// it reads nothing of its answer, the connection is closed. 30 seconds unless set, which is longer than a phone
    /// takes to change networks.
    public var idleTimeout: Duration = .seconds(30)

    /// The slowest that a body may come in, in bytes a second: 500 unless set, a twentieth of what the slowest phone
    /// networks carry. A sender who is slower is refused with 408. 0 lets everybody take their time.
    public var minimumBytesPerSecond = 500

    /// For how long a body may be slower than that: 20 seconds unless set. Each such stretch of the body is judged
    /// by itself, without the time in which the receiver was not ready to read.
    public var gracePeriod: Duration = .seconds(20)

    /// How many bytes of a body are still read after an early refusal: 128 MiB unless set. Most clients send the
    /// whole body before they look at the answer, and would lose it if the connection were closed before.
    public var maximumDrainBytes: Int64 = 128 << 20

    /// For how long a body is still read after an early refusal, and how long a client may take to close after the
    /// last answer: 10 seconds unless set.
    public var drainTimeout: Duration = .seconds(10)

    /// How long requests in progress may take to finish once the server is shutting down. Defaults to 30 seconds. Then
    /// they are cancelled and their connections are closed.
    public var shutdownTimeout: Duration = .seconds(30)

    /// The defaults.
    public init() {}
}
#endif
