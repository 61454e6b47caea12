import NIOCore

#if os(Linux)
#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

/// What the system knows of the bytes that are on their way to a client.
enum SocketProgress {
    /// The bytes of a connection that its client has acknowledged; `nil` where the system does not say.
    static func acknowledgedBytes(of channel: any Channel) -> UInt64? {
        guard let socket = channel as? any SocketOptionProvider, channel.eventLoop.inEventLoop else { return nil }
        // The numbers of `struct tcp_info` (linux/tcp.h): `tcpi_bytes_acked` is the eight bytes from 120 on. The
        // declaration in the C library ends before.
        let numbers: EventLoopFuture<SIMD16<UInt64>> = socket.unsafeGetSocketOption(
            level: SocketOptionLevel(IPPROTO_TCP), name: SocketOptionName(TCP_INFO))
        let box = NIOLoopBound<Box>(Box(), eventLoop: channel.eventLoop)
        // On the event loop itself the answer is there at once.
        numbers.whenSuccess { box.value.bytes = $0[15] }
        return box.value.bytes
    }

    private final class Box { var bytes: UInt64? }

    /// Has the system hold few bytes for a client that does not read, whatever the connection could carry.
    static func limitUnsentBytes(of channel: any Channel) {
        let option = ChannelOptions.Types.SocketOption(
            level: SocketOptionLevel(IPPROTO_TCP), name: SocketOptionName(TCP_NOTSENT_LOWAT))
        // Only a hint: without it everything works as well.
        try? channel.syncOptions?.setOption(option, value: 64 << 10)
    }
}
#else
enum SocketProgress {
    /// Only Linux says how much was acknowledged.
    static func acknowledgedBytes(of channel: any Channel) -> UInt64? { nil }

    static func limitUnsentBytes(of channel: any Channel) {}
}
#endif
