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
        return try await withListener(on: MultiThreadedEventLoopGroup.singleton.next()) { channel in
            let pipeline = channel.pipeline.syncOperations
            try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            try pipeline.addHandler(
                HTTPResumableUploadHandler(context: context) { upload in
                    try? upload.pipeline.syncOperations.addHandler(AcceptingHandler())
                })
        } while: { port in
            guard let address = ServerAddress("http://127.0.0.1:\(port)/") else {
                throw ProgramFailure("The server has no address.")
            }
            return try await work(address)
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
