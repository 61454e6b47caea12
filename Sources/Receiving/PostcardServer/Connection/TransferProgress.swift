import NIOCore
import PostcardCLibrary
import PostcardReception

/// Tracks whether a client reads its responses: which parts are not in the socket yet, and for how long.
struct ResponseProgress {
    private let options: ConnectionOptions
    /// The number of parts of responses that are not in the socket yet.
    private(set) var unsentParts = 0
    /// The time since which no bytes of unsent parts have reached the socket.
    private var stalledSince = NIODeadline.distantPast
    /// The number of bytes of the connection that the client has acknowledged; `nil` if the system does not report it.
    private var acknowledgedBytes: UInt64?
    /// The time since which the number of acknowledged bytes has not changed.
    private var unacknowledgedSince = NIODeadline.distantPast
    /// How long the client may read nothing.
    private var pause: Duration

    init(options: ConnectionOptions) {
        self.options = options
        pause = options.idleTimeout
    }

    /// Records that a part of a response was written, with the number of bytes that the client has acknowledged so far.
    mutating func partWritten(at now: NIODeadline, acknowledged: @autoclosure () -> UInt64?) {
        if unsentParts == 0 {
            stalledSince = now
            unacknowledgedSince = stalledSince
            acknowledgedBytes = acknowledgedBytes ?? acknowledged()
        }
        unsentParts += 1
    }

    /// Records that a part of a response is in the socket.
    mutating func partSent(at now: NIODeadline) {
        unsentParts -= 1
        stalledSince = now
    }

    /// Checks whether the client reads. Returns the time until the next check; `nil` if the client has paused for too
    /// long. The allowed pause is shorter if the connection closes after the response.
    mutating func check(
        at now: NIODeadline, acknowledged: UInt64?, isStream: Bool, isClosing: Bool
    ) -> Duration? {
        // The system accepts many bytes at once, and then none until the client has read most of them.
        if let bytes = acknowledged, bytes != acknowledgedBytes {
            pause = options.pause(afterReading: bytes - min(acknowledgedBytes ?? 0, bytes))
            acknowledgedBytes = bytes
            unacknowledgedSince = now
        }
        let allowed = isClosing ? min(options.idleTimeout, options.drainTimeout) : pause
        let stall = ResponseStall(
            response: stalledSince.duration(to: now), connection: unacknowledgedSince.duration(to: now),
            isStream: isStream)
        let rest = stall.rest(of: allowed)
        // Frequent checks find out when the client last read something.
        return rest > .zero ? min(rest, allowed / 4) : nil
    }
}

/// How long a client has read nothing while part of its response waits for space in the socket.
struct ResponseStall {
    /// How long no part of the response has reached the socket.
    let response: Duration
    /// How long the client has acknowledged no bytes of the connection.
    let connection: Duration
    /// Whether the response is an HTTP/2 stream. The acknowledged bytes may then belong to other streams.
    let isStream: Bool

    /// The remaining time for which the client may read nothing: zero or less if it has paused for too long. A client
    /// with a single response on its connection may read nothing for `pause`.
    ///
    /// On a connection with a single response, acknowledged bytes are progress of that response. For a stream this is
    /// uncertain. Its next part may be queued behind the bytes that the client reads. Or the client may read other
    /// streams and open no window for this stream (RFC 9113 §5.2). NIO reports neither case. Acknowledged bytes
    /// therefore count for a stream too, but its own parts may stall for at most two pauses. A client that keeps one
    /// stream moving can thus keep each other stream for at most two minutes, with the default
    /// ``ConnectionOptions/idleTimeout``. The queue drains sooner, because the responses to one address usually have at
    /// most 1 MiB in the queue.
    func rest(of pause: Duration) -> Duration {
        let rest = pause - min(response, connection)
        return isStream ? min(rest, pause * 2 - response) : rest
    }
}

#if os(Linux)
/// What the operating system knows about the bytes of a connection that are in flight.
enum SocketProgress {
    /// The number of bytes that the client of a connection has acknowledged; `nil` if the system does not report it.
    static func acknowledgedBytes(of channel: any Channel) -> UInt64? {
        guard let socket = channel as? any SocketOptionProvider, channel.eventLoop.inEventLoop else { return nil }
        // The number is `tcpi_bytes_acked` of `struct tcp_info` (linux/tcp.h), which the C library's struct lacks.
        let numbers: EventLoopFuture<SIMD16<UInt64>> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(IPPROTO_TCP), name: SocketOptionName(TCP_INFO))
        let box = NIOLoopBound<Box>(Box(), eventLoop: channel.eventLoop)
        // On the event loop, the future is already complete.
        numbers.whenSuccess { box.value.bytes = $0[15] }
        return box.value.bytes
    }

    private final class Box { var bytes: UInt64? }

    /// Limits the number of unsent bytes that the system buffers, regardless of the connection's window.
    static func limitUnsentBytes(of channel: any Channel) {
        let option = ChannelOptions.Types.SocketOption(
            level: SocketOptionLevel(IPPROTO_TCP), name: SocketOptionName(TCP_NOTSENT_LOWAT))
        // The option is only an optimization, so errors are ignored.
        try? channel.syncOptions?.setOption(option, value: 64 << 10)
    }
}
#else
enum SocketProgress {
    /// `nil`, because only Linux reports acknowledged bytes.
    static func acknowledgedBytes(of channel: any Channel) -> UInt64? { nil }

    static func limitUnsentBytes(of channel: any Channel) {}
}
#endif
