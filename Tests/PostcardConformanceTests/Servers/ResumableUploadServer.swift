import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload
import PostcardConformance
import PostcardTestSupport

/// The server for resumable uploads of swift-nio-extras, which supports the versions 3, 5 and 6 of the draft.
enum ResumableUploadServer {
    /// Runs it while something is done with its address. It accepts any bytes.
    static func run<Result>(while work: (ServerAddress) async throws -> Result) async throws -> Result {
        let context = HTTPResumableUploadContext(origin: "", timeout: .seconds(60))
        let listener = try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton.next())
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture {
                    let pipeline = channel.pipeline.syncOperations
                    try pipeline.configureHTTPServerPipeline(
                        withPipeliningAssistance: false, withErrorHandling: false)
                    try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
                    try pipeline.addHandler(
                        HTTPResumableUploadHandler(context: context) { upload in
                            try? upload.pipeline.syncOperations.addHandler(AcceptingHandler())
                        })
                }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        guard let port = listener.localAddress?.port, let address = ServerAddress("http://127.0.0.1:\(port)/") else {
            throw ProgramFailure("The server has no port.")
        }
        do {
            let result = try await work(address)
            try await listener.close()
            return result
        } catch {
            try? await listener.close()
            throw error
        }
    }

    private final class AcceptingHandler: ChannelInboundHandler {
        typealias InboundIn = HTTPRequestPart
        typealias OutboundOut = HTTPResponsePart

        private var isOptions = false

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): isOptions = head.method == .options
            case .body: return
            case .end:
                let response = HTTPResponse(
                    status: isOptions ? .notImplemented : .created, headerFields: [.contentLength: "0"])
                context.write(wrapOutboundOut(.head(response)), promise: nil)
                context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
            }
        }
    }
}
