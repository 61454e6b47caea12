/// The timeouts and limits of a connection.
public struct ConnectionOptions: Sendable, Hashable {
    /// How long a client may send or read nothing. Defaults to 30 seconds: a phone changes networks faster.
    ///
    /// After this time, a client that stopped in the middle of a body is refused with 408. The connection is closed if
    /// it has no request yet, if the head of a request is incomplete, or if the client does not read its response. A
    /// client that has just read much of its response may pause for up to twice as long. An HTTP/2 stream may also
    /// stall for up to twice as long while the client reads other streams of the connection.
    public var idleTimeout: Duration = .seconds(30)

    /// How long a connection is kept open between a response and the next request. Defaults to 75 seconds.
    ///
    /// Choose a longer time than a reverse proxy keeps its connections to the server, such as 60 seconds in nginx.
    /// Otherwise the proxy may send a request on a connection that the server is closing, and respond with 502.
    public var keepAliveTimeout: Duration = .seconds(75)

    /// The minimum rate at which a body must arrive, in bytes per second. A slower client is refused with 408. 0 means
    /// no minimum. Defaults to 500, a twentieth of the rate of the slowest phone networks.
    public var minimumBytesPerSecond = 500

    /// How long a body may be slower than ``minimumBytesPerSecond``. Defaults to 20 seconds.
    ///
    /// Each such period is measured separately, without the time in which the server was not ready to read.
    public var gracePeriod: Duration = .seconds(20)

    /// How long a client may continue to send after an early refusal, or keep the connection open after its last
    /// response. Defaults to 10 seconds.
    ///
    /// Most clients and proxies send the whole body before they read the response, and would lose the response if the
    /// connection were closed earlier. The remaining bytes of the body are therefore read and dropped. If the body has
    /// a `Content-Length`, every 100 MB received extend the timeout by a second, to at most six times its value.
    public var drainTimeout: Duration = .seconds(10)

    /// The proxies that may report the client of a request. Defaults to none.
    ///
    /// The client of a request from a trusted proxy is the last address in `Forwarded` (RFC 7239) or `X-Forwarded-For`
    /// that is not a trusted proxy's. The log shows this client, and the request counts for its limits, see
    /// `UploadOptions.clientShare`. The number of connections from a proxy is not limited. In requests from any other
    /// address the two fields are ignored, because clients can write anything into them.
    ///
    /// If a request has both fields, they only count if both name the same client: a proxy adds to one field, and
    /// forwards the other field as the client wrote it. Configure the proxy to remove the field that it does not set.
    ///
    /// Every address in these ranges can pretend to be any client. Only list proxies, and no network with clients.
    public var trustedProxies: [TrustedProxy] = []

    /// Whether connections begin with a PROXY header of version 2, which names the client. Defaults to `false`.
    ///
    /// Proxies that forward connections instead of requests send this header, such as HAProxy with `send-proxy-v2`.
    /// Connections without a valid header, or from other addresses than the ``trustedProxies``, are closed. An empty
    /// list trusts all connections: use it only if no client can reach the port.
    ///
    /// The connection counts for the limits of the client in the header. If that client is itself one of the
    /// ``trustedProxies``, the client of each request is also searched for in the request's header fields.
    public var usesProxyProtocol = false

    /// How long requests in progress may continue after the server has begun to shut down. Defaults to 30 seconds.
    /// After this time, they are cancelled and their connections are closed.
    public var shutdownTimeout: Duration = .seconds(30)

    /// Makes options with the default values.
    public init() {}
}

extension ConnectionOptions {
    /// Whether the other end of a connection is a proxy, which has many clients.
    func isProxy(_ peer: ConnectionPeer) -> Bool {
        trustedProxies.isEmpty ? usesProxyProtocol : trustedProxies.contains { $0.contains(peer) }
    }

    /// The size of the slices in which responses are written, in bytes: as much as the slowest allowed client reads in
    /// half of the idle timeout, so that the progress of a slow client is noticed in time.
    var sliceBytes: Int {
        let bytes = Double(minimumBytesPerSecond) * (idleTimeout / .seconds(1)) / 2
        return Int(min(max(bytes, 1024), 16_384))
    }

    /// How long a client may read nothing after it has read this many bytes at once: as long as the slowest allowed
    /// client takes for these bytes, from one to two idle timeouts. Clients such as curl pause to limit their rate.
    func pause(afterReading bytes: UInt64) -> Duration {
        guard minimumBytesPerSecond > 0 else { return idleTimeout }
        let duration = Duration.seconds(Double(bytes) / Double(minimumBytesPerSecond))
        return max(idleTimeout, min(duration, idleTimeout * 2))
    }
}
