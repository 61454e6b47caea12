#if os(Linux)
import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOPosix
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import Synchronization
import Testing

/// Idle connections that the server closes.
@Suite(.serialized, .timeLimit(.minutes(5))) struct ReusedConnectionTests {
    /// A server that accepts every form, and the connections to it.
    private final class Server: Sendable {
        let connections = Mutex<[any Channel]>([])
        let methods = Mutex<[HTTPMethod]>([])

        func start() async throws -> any Channel {
            try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
                .childChannelInitializer { channel in
                    self.connections.withLock { $0.append(channel) }
                    return channel.eventLoop.makeCompletedFuture {
                        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                        try channel.pipeline.syncOperations.addHandler(Receiver(self))
                    }
                }
                .bind(host: "127.0.0.1", port: 0).get()
        }
    }

    private final class Receiver: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        private let server: Server

        init(_ server: Server) {
            self.server = server
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): server.methods.withLock { $0.append(head.method) }
            case .body: break
            case .end:
                let head = HTTPResponseHead(version: .http1_1, status: .created, headers: ["Content-Length": "0"])
                context.write(wrapOutboundOut(.head(head)), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }

    /// The event loop of the clients, which no other test needs. It is not shut down: clients end later than the tests.
    private static let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)

    @Test(arguments: ["a small form", "a large form"])
    func `a form whose idle connection was just closed is sent at once on another`(kind: String) async throws {
        let server = Server()
        let listener = try await server.start()
        let url = try #require(URL(string: "http://127.0.0.1:\(listener.localAddress?.port ?? 0)/uploads"))
        let group = Self.group
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        let client = UploadClient(transport: AsyncHTTPTransport(configuration: configuration, eventLoopGroup: group))
        var form = MultipartForm()
        form.append(String(repeating: "a", count: kind == "a small form" ? 10 : 3_000_000), named: "text")
        let sent = form
        try await client.upload(sent, to: url)
        // The client's event loop is busy while the server closes the connection: it sends the next form before it
        // notices.
        let unblock = DispatchSemaphore(value: 0)
        await withCheckedContinuation { continuation in
            group.next().execute {
                continuation.resume()
                unblock.wait()
            }
        }
        let first = try #require(server.connections.withLock { $0.first })
        try await first.close()
        let upload = Task { try await client.upload(sent, to: url) }
        for _ in 0..<1_000 { await Task.yield() }
        unblock.signal()
        let response = try await upload.value
        #expect(response.status == .created && response.attempts == 1)
        #expect(server.methods.withLock { $0 } == [.POST, .POST])
        #expect(server.connections.withLock { $0.count } == 2)
        try await listener.close()
    }
}
#endif
