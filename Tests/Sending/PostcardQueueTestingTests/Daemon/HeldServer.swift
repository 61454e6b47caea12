import NIOCore
import NIOHTTP1
import PostcardClient
import Synchronization

/// A server that keeps each request until the test responds to it.
final class HeldServer: Sendable {
    struct Request: Sendable {
        let head: HTTPRequestHead
        let body: [UInt8]
    }

    private struct State {
        var received = 0
        var held: [String: (request: Request, channel: any Channel)] = [:]
    }

    private let state = Mutex(State())

    /// How many whole requests have arrived.
    var received: Int { state.withLock { $0.received } }

    /// The requests that wait for their responses, by their paths.
    var held: [String: Request] { state.withLock { $0.held.mapValues(\.request) } }

    /// Adds the handlers of a connection.
    @Sendable func addHandlers(to channel: any Channel) throws {
        try channel.pipeline.syncOperations.configureHTTPServerPipeline()
        try channel.pipeline.syncOperations.addHandler(Handler(self))
    }

    /// Responds to the request to a path.
    ///
    /// - Parameter response: The response; `nil` closes the connection without one.
    func respond(to path: String, with response: UploadResponse?) async throws {
        guard let channel = state.withLock({ $0.held.removeValue(forKey: path)?.channel }) else { return }
        guard let response else { return try await channel.close() }
        var head = HTTPResponseHead(version: .http1_1, status: .init(statusCode: response.status.code))
        for field in response.headerFields { head.headers.add(name: field.name.rawName, value: field.value) }
        head.headers.add(name: "Content-Length", value: "\(response.body.count)")
        head.headers.add(name: "Connection", value: "close")
        let body = ByteBuffer(bytes: response.body)
        channel.eventLoop.execute { [head] in
            channel.write(HTTPServerResponsePart.head(head), promise: nil)
            channel.write(HTTPServerResponsePart.body(.byteBuffer(body)), promise: nil)
            // The end closes the connection.
            channel.writeAndFlush(HTTPServerResponsePart.end(nil), promise: nil)
        }
    }

    private func hold(_ request: Request, of channel: any Channel) {
        state.withLock { state in
            state.received += 1
            state.held[request.head.uri] = (request, channel)
        }
    }

    private func forget(_ channel: any Channel) {
        state.withLock { state in state.held = state.held.filter { $0.value.channel !== channel } }
    }

    private final class Handler: ChannelInboundHandler {
        typealias InboundIn = HTTPServerRequestPart

        private let server: HeldServer
        private var head: HTTPRequestHead?
        private var body: [UInt8] = []

        init(_ server: HeldServer) {
            self.server = server
        }

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            switch unwrapInboundIn(data) {
            case .head(let head): self.head = head
            case .body(let bytes): body += bytes.readableBytesView
            case .end: if let head { server.hold(Request(head: head, body: body), of: context.channel) }
            }
        }

        func channelInactive(context: ChannelHandlerContext) { server.forget(context.channel) }
    }
}
