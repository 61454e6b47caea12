import Crypto
import Foundation
import HTTPTypes
import NIOCore
import NIOHTTP1
import NIOHTTPTypes
import NIOHTTPTypesHTTP1
import NIOPosix
import NIOResumableUpload
import PostcardTestSupport
import Synchronization

/// Another project's server for resumable uploads: that of swift-nio-extras, which supports the versions 3, 5 and 6.
struct ReferenceServer: Sendable {
    /// Where it listens.
    let url: URL
    private let forms: Forms

    /// What came with one upload.
    struct Form: Sendable, Equatable {
        let method: String
        let contentType: String?
        let count: Int
        let sha256: [UInt8]
    }

    private final class Forms: Sendable {
        let all = Mutex<[Form]>([])
    }

    /// The uploads that came whole.
    var received: [Form] { forms.all.withLock { $0 } }

    /// Runs a server while something is done with it.
    static func run<Result: Sendable>(
        while work: @escaping @Sendable (ReferenceServer) async throws -> Result
    ) async throws -> Result {
        let forms = Forms()
        // Its addresses are relative, so that they lead through the proxy again.
        let context = HTTPResumableUploadContext(origin: "", timeout: .seconds(60))
        return try await withListener(on: MultiThreadedEventLoopGroup.singleton.next()) { channel in
            let pipeline = channel.pipeline.syncOperations
            try pipeline.configureHTTPServerPipeline(withPipeliningAssistance: false, withErrorHandling: false)
            try pipeline.addHandler(HTTP1ToHTTPServerCodec(secure: false))
            try pipeline.addHandler(
                HTTPResumableUploadHandler(context: context) { upload in
                    try? upload.pipeline.syncOperations.addHandler(Receiving(forms))
                })
        } while: { port in
            guard let url = URL(string: "http://127.0.0.1:\(port)") else {
                throw ProgramFailure("The server has no address.")
            }
            return try await work(ReferenceServer(url: url, forms: forms))
        }
    }

    /// Takes one upload, in however many requests it came.
    private final class Receiving: ChannelInboundHandler {
        typealias InboundIn = HTTPRequestPart
        typealias OutboundOut = HTTPResponsePart

        private let forms: Forms
        private var head: HTTPRequest?
        private var hash = SHA256()
        private var count = 0

        init(_ forms: Forms) {
            self.forms = forms
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head):
                self.head = head
            case .body(let bytes):
                bytes.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
                count += bytes.readableBytes
            case .end:
                guard let head else { return }
                if head.method == .options { return respond(.notImplemented, "", context) }
                let form = Form(
                    method: head.method.rawValue, contentType: head.headerFields[.contentType], count: count,
                    sha256: Array(hash.finalize()))
                forms.all.withLock { $0.append(form) }
                respond(.created, "{\"count\":\(count)}", context)
            }
        }

        private func respond(_ status: HTTPResponse.Status, _ body: String, _ context: ChannelHandlerContext) {
            let fields: HTTPFields = [.contentType: "application/json", .contentLength: "\(body.utf8.count)"]
            context.write(wrapOutboundOut(.head(HTTPResponse(status: status, headerFields: fields))), promise: nil)
            context.write(wrapOutboundOut(.body(ByteBuffer(string: body))), promise: nil)
            context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: nil)
        }
    }
}
