/// How a connection is kept, and how it ends.
public struct ConnectionOptions: Sendable, Hashable {
    /// How long a client may be silent: within a body it is then refused with 408; between two requests, and where
    /// it reads nothing of its answer, the connection is closed. 30 seconds unless set, which is longer than a phone
    /// takes to change networks. A client that has just read much of its answer at once may pause for up to twice as
    /// long. For a stream of HTTP/2, what is read of the others on its connection delays that, by as long again at most.
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

extension ConnectionOptions {
    /// What the slowest client that is allowed reads in half of the time in which it has to read something.
    var sliceBytes: Int {
        let bytes = Double(minimumBytesPerSecond) * (idleTimeout / .seconds(1)) / 2
        return Int(min(max(bytes, 1024), 16_384))
    }

    /// How long a client may read nothing after it has read this many bytes at once. One that pauses to keep to a rate, as
    /// curl does, has the time in which the slowest client reads as much, up to twice the usual one.
    func pause(afterReading bytes: UInt64) -> Duration {
        guard minimumBytesPerSecond > 0 else { return idleTimeout }
        let duration = Duration.seconds(Double(bytes) / Double(minimumBytesPerSecond))
        return max(idleTimeout, min(duration, idleTimeout * 2))
    }
}

/// A client's pause in reading an answer of which some is not in the socket yet.
struct AnswerStall {
    /// How long no part of the answer has got into the socket.
    let answer: Duration
    /// How long the client has acknowledged no byte of the connection.
    let connection: Duration
    /// Whether the answer is one stream of HTTP/2, and the connection's bytes may be those of others.
    let isStream: Bool

    /// How much longer the client may read nothing; zero or less where it has paused for too long.
    ///
    /// Bytes of the connection that the client acknowledges are progress of its only answer. For a stream that is not
    /// certain. Its next part may be queued behind the bytes that the client reads, or the client may read other streams
    /// and open no window for this one (RFC 9113 §5.2), and NIO does not say which. So they count for a stream too, but
    /// the stream's own parts may not stall for longer than two pauses: a client that keeps one stream moving keeps each
    /// of the others for two minutes at most, with the default ``ConnectionOptions/idleTimeout``. The queue takes less
    /// time: as a rule the answers to one address have at most 1 MiB in it.
    ///
    /// - Parameter pause: How long the client of a whole connection may read nothing.
    func rest(of pause: Duration) -> Duration {
        let rest = pause - min(answer, connection)
        return isStream ? min(rest, pause * 2 - answer) : rest
    }
}
