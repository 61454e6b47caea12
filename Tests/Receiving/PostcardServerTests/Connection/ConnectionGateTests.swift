import Foundation
import Logging
import NIOCore
import NIOPosix
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10))) struct ConnectionGateTests {
    /// The test makes NIO's errors itself: libdispatch may end a process that really has no descriptors.
    @Test func `a receiver that is out of descriptors waits, says so, and goes on when there are some again`()
        async throws
    {
        let lines = CapturedLog.Lines()
        let (accepted, accept) = AsyncStream.makeStream(of: Void.self)
        let server = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton)
            .childChannelInitializer { channel in
                accept.yield()
                return channel.eventLoop.makeSucceededVoidFuture()
            }
            .bind(host: "127.0.0.1", port: 0).get()
        try await ConnectionGate.install(
            on: server, shares: ShareAccount(ShareLimits(UploadOptions(), connections: 100)),
            options: ConnectionOptions(), logger: Logger(label: "test") { _ in CapturedLog(lines: lines) })
        let isReading = try await server.eventLoop.submit {
            for _ in 0..<50 {
                server.pipeline.syncOperations.fireErrorCaught(IOError(errnoCode: EMFILE, reason: "accept"))
            }
            return try server.syncOptions?.getOption(.autoRead)
        }.get()
        #expect(isReading == false)
        // A line a second.
        #expect(lines.all.first?["failures"] == "1" && lines.all.count < 50)
        let port = try #require(server.localAddress?.port)
        try await onThread {
            let socket = try RawSocket(port: port)
            withExtendedLifetime(socket) {}
        }
        // After a tenth of a second.
        for await _ in accepted { break }
        try await server.close().get()
    }
}
