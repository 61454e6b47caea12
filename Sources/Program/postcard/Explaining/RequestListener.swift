import NIOCore
import NIOHTTP1
import NIOPosix
import PostcardDoctor
import PostcardForm
import PostcardWire
import SystemPackage

/// Receives requests on a port, and responds to each with its explanation. The status is 200 for a valid form, and
/// otherwise the status with which a receiver would refuse the request.
///
/// The listener reads raw bytes, because an HTTP server would refuse the requests that need an explanation.
struct RequestListener {
    let host: String
    let port: Int
    /// How long a client must be idle before its request counts as complete.
    let silence: Duration
    /// Whether to copy the bytes of the request for a second reading.
    let keepsRequest: Bool

    struct Taken: Sendable {
        let explanation: Explanation
        /// A copy of the bytes of the connection; `nil` if they are not copied.
        let copy: ConnectionCopy?
    }

    /// Listens until a valid form was received. `isListening` is called with the address once listening has begun, and
    /// `onBroken` with each request that is not valid. `respond` returns the text of a response. Throws `Errno` if the
    /// system does not allow listening on the address, and errors of `onBroken`.
    func takeValidRequest(
        isListening: (String) -> Void, respond: @escaping @Sendable (Explanation) -> String,
        onBroken: (Taken) throws -> Void
    ) async throws -> Taken {
        let group = MultiThreadedEventLoopGroup.singleton
        let (requests, taken) = AsyncStream.makeStream(of: Taken.self)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 16)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { [silence, keepsRequest] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([
                        IdleStateHandler(readTimeout: TimeAmount(silence)),
                        RequestCollector(taken: taken, keepsRequest: keepsRequest, respond: respond),
                    ])
                }
            }
        let server: any Channel
        do {
            server = try await bootstrap.bind(host: host, port: port).get()
        } catch {
            // The text of an IOError names functions of SwiftNIO.
            if let error = error as? IOError { throw Errno(rawValue: error.errnoCode) }
            throw error
        }
        isListening("http://\(Port.authority(host, server.localAddress?.port ?? port))")
        for await request in requests {
            if request.explanation.isValid {
                try? await server.close().get()
                return request
            }
            try onBroken(request)
        }
        throw CancellationError()
    }
}

/// Handles a connection, and examines its bytes until the request has ended.
private final class RequestCollector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let taken: AsyncStream<RequestListener.Taken>.Continuation
    private let keepsRequest: Bool
    private let respond: @Sendable (Explanation) -> String
    private var state = State.silent
    /// A copy of the bytes of this connection; `nil` before the first byte. Several connections may be open at a time.
    private var copy: ConnectionCopy?

    private enum State {
        case silent
        case receiving(InputExamination, RequestEnd)
        /// The request has ended according to its head, and further bytes do not belong to it.
        case ending(InputExamination)
        case done
    }

    /// How long to wait for bytes beyond the Content-Length: too short for a person to notice.
    private static let grace = TimeAmount.milliseconds(200)

    /// How long a client may take to read the response.
    private static let patience = TimeAmount.seconds(10)

    init(
        taken: AsyncStream<RequestListener.Taken>.Continuation, keepsRequest: Bool,
        respond: @escaping @Sendable (Explanation) -> String
    ) {
        self.taken = taken
        self.keepsRequest = keepsRequest
        self.respond = respond
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        let bytes = buffer.readableBytesView
        switch state {
        case .silent:
            if keepsRequest { copy = ConnectionCopy() }
            state = .receiving(InputExamination(format: .request), RequestEnd())
            channelRead(context: context, data: data)
        case .receiving(var examination, var end):
            state = .done
            let expectedContinue = end.expectsContinue
            bytes.withUnsafeBytes { raw in
                copy?.append(raw.bytes)
                // Reading a raw request never throws.
                try? examination.read(raw.bytes)
                end.read(raw.bytes)
            }
            if end.expectsContinue, !expectedContinue, !end.isComplete {
                let interim = context.channel.allocator.buffer(string: "HTTP/1.1 100 Continue\r\n\r\n")
                context.writeAndFlush(wrapOutboundOut(interim), promise: nil)
            }
            guard end.isComplete else {
                state = .receiving(examination, end)
                return
            }
            state = .ending(examination)
            let bound = NIOLoopBound((self, context), eventLoop: context.eventLoop)
            context.eventLoop.scheduleTask(in: Self.grace) { bound.value.0.finish(context: bound.value.1) }
        case .ending(var examination):
            state = .done
            bytes.withUnsafeBytes { raw in
                copy?.append(raw.bytes)
                try? examination.read(raw.bytes)
            }
            state = .ending(examination)
        case .done:
            break
        }
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        switch event {
        case IdleStateHandler.IdleStateEvent.read, ChannelEvent.inputClosed: finish(context: context)
        default: context.fireUserInboundEventTriggered(event)
        }
    }

    func channelInactive(context: ChannelHandlerContext) {
        finish(context: context)
    }

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        finish(context: context)
    }

    /// Explains the received bytes and responds. A connection without bytes is closed.
    private func finish(context: ChannelHandlerContext) {
        let examination: InputExamination
        switch state {
        case .silent:
            state = .done
            context.close(promise: nil)
            return
        case .receiving(let received, _): examination = received
        case .ending(let received): examination = received
        case .done: return
        }
        state = .done
        var ended = examination
        guard let explanation = try? ended.finish() else { return context.close(promise: nil) }
        let result = RequestListener.Taken(explanation: explanation, copy: copy)
        let text = respond(explanation)
        let status = Self.status(of: explanation)
        let response = """
            HTTP/1.1 \(status.code) \(status.reasonPhrase)\r
            Content-Type: text/plain; charset=utf-8\r
            Content-Length: \(text.utf8.count)\r
            Connection: close\r
            \r
            \(text)
            """
        let bound = NIOLoopBound((context, taken), eventLoop: context.eventLoop)
        // A client that does not read the response must not delay the result, so closing the connection ends the write.
        context.eventLoop.scheduleTask(in: Self.patience) { bound.value.0.close(promise: nil) }
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(string: response))).whenComplete { _ in
            bound.value.0.close(promise: nil)
            bound.value.1.yield(result)
        }
    }

    /// The status with which a receiver responds to the first error.
    private static func status(of explanation: Explanation) -> HTTPResponseStatus {
        guard let error = explanation.findings.first(where: { $0.severity == .error }) else { return .ok }
        return HTTPResponseStatus(statusCode: max(error.code.status.code, 400))
    }
}
