import NIOCore
import NIOPosix
import PostcardReceivingSupport
import Testing

@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct UploadConnectionTests {
    @Test func `the clients of closed connections count as one`() async throws {
        let (channels, accepted) = AsyncStream.makeStream(of: (any Channel).self)
        let listening = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                accepted.yield(channel)
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        let port = try #require(listening.localAddress?.port)
        let socket = try RawSocket(port: port)
        let channel = try #require(await channels.first { _ in true })
        let address = try SocketAddress(ipAddress: "127.0.0.1", port: 1)
        #expect(UploadConnection(channel: channel).peer == PeerAddress(address))
        socket.abort()
        try await channel.closeFuture.get()
        // NIO removes the addresses after it has reported the end.
        try await channel.eventLoop.submit {}.get()
        #expect(channel.remoteAddress == nil)
        #expect(UploadConnection(channel: channel).peer == PeerAddress.unknown)
        try await listening.close().get()
    }
}
