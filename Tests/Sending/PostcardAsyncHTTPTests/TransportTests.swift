import AsyncHTTPClient
import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import Testing

@Suite struct TransportTests {
    /// A proxy that requires authentication.
    private final class Proxy: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart
        typealias OutboundOut = HTTPServerResponsePart

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            guard case .end = unwrapInboundIn(data) else { return }
            let fields: HTTPHeaders = ["Content-Length": "0", "Proxy-Authenticate": "Basic realm=\"proxy\""]
            let head = HTTPResponseHead(version: .http1_1, status: .proxyAuthenticationRequired, headers: fields)
            context.write(wrapOutboundOut(.head(head)), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }

    @Test func `connections are set up as the program says`() async throws {
        let proxy = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.configureHTTPServerPipeline()
                    try channel.pipeline.syncOperations.addHandler(Proxy())
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        var configuration = HTTPClient.Configuration()
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.proxy = .server(host: "127.0.0.1", port: try #require(proxy.localAddress?.port))
        let client = UploadClient(transport: AsyncHTTPTransport(configuration: configuration))
        // Without the proxy the error would be that there is no such host.
        let url = try #require(URL(string: "http://no-such-host.invalid/uploads"))
        for _ in 0..<2 {
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: url)
            }
            #expect(error.code == .connectionFailed)
            #expect(error.underlyingError as? HTTPClientError == .proxyAuthenticationRequired)
        }
        try await proxy.close()
    }
}
