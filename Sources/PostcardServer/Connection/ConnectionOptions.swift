/// The timeouts and limits of a connection.
public struct ConnectionOptions: Sendable, Hashable {
    /// How long a client may send or read nothing. Defaults to 30 seconds, which is longer than a phone takes to change
    /// networks.
    ///
    /// After that, a client that stopped in the middle of a body is refused with 408. Between two requests, or if the
    /// client does not read its response, the connection is closed. A client that has just read much of its response at
    /// once may pause for up to twice as long. A stream of HTTP/2 may stall for up to twice as long while the client
    /// reads other streams of the connection.
    public var idleTimeout: Duration = .seconds(30)

    /// The minimum rate at which a body must arrive, in bytes per second. Defaults to 500, a twentieth of what the
    /// slowest phone networks carry. 0 means no minimum. A slower client is refused with 408.
    public var minimumBytesPerSecond = 500

    /// How long a body may be slower than ``minimumBytesPerSecond``. Defaults to 20 seconds.
    ///
    /// Each such period is measured on its own, without the time in which the server was not ready to read.
    public var gracePeriod: Duration = .seconds(20)

    /// How many bytes of a body are read and dropped after an early refusal. Defaults to 128 MiB.
    ///
    /// Most clients send the whole body before they read the response, and would lose the response if the connection
    /// were closed earlier.
    public var maximumDrainBytes: Int64 = 128 << 20

    /// How long a client may go on sending after an early refusal, or leave the connection open after its last
    /// response. Defaults to 10 seconds.
    public var drainTimeout: Duration = .seconds(10)

    /// How long requests in progress may take to finish once the server is shutting down. Defaults to 30 seconds.
    /// After that, they are cancelled and their connections are closed.
    public var shutdownTimeout: Duration = .seconds(30)

    /// The defaults.
    public init() {}
}

extension ConnectionOptions {
    /// The number of bytes that the slowest allowed client reads in half of the idle timeout. Responses are written in
    /// slices of this size, so that the reading of a slow client shows before the timeout.
    var sliceBytes: Int {
        let bytes = Double(minimumBytesPerSecond) * (idleTimeout / .seconds(1)) / 2
        return Int(min(max(bytes, 1024), 16_384))
    }

    /// How long a client may read nothing after reading this many bytes at once. A client that pauses to limit its
    /// rate, as curl does, gets as long as the slowest allowed client needs for these bytes, up to twice the timeout.
    func pause(afterReading bytes: UInt64) -> Duration {
        guard minimumBytesPerSecond > 0 else { return idleTimeout }
        let duration = Duration.seconds(Double(bytes) / Double(minimumBytesPerSecond))
        return max(idleTimeout, min(duration, idleTimeout * 2))
    }
}
