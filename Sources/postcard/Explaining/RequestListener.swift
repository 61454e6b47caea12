import NIOCore
import NIOPosix
import PostcardDoctor

/// Takes one request on a port, explains it, and answers 200 with the explanation.
///
/// It reads the bytes themselves: an HTTP server would refuse the very requests that are to be explained.
struct RequestListener {
    let host: String
    let port: Int
    /// A client that sends nothing for this long has sent its request.
    let silence: Duration

    /// What came of a request.
    struct Taken: Sendable {
        let examination: InputExamination
        let explanation: Explanation
    }

    /// Listens until a request has come.
    ///
    /// - Parameters:
    ///   - isListening: Is told the address.
    ///   - keep: Takes the bytes as they come.
    ///   - answer: The text that the client gets.
    func takeRequest(
        isListening: (String) -> Void, keep: @escaping @Sendable (RawSpan) -> Void,
        answer: @escaping @Sendable (Taken) -> String
    ) async throws -> Taken {
        let group = MultiThreadedEventLoopGroup.singleton
        let taken = group.any().makePromise(of: Taken.self)
        let bootstrap = ServerBootstrap(group: group)
            .serverChannelOption(.backlog, value: 16)
            .serverChannelOption(.socketOption(.so_reuseaddr), value: 1)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelInitializer { [silence] channel in
                channel.eventLoop.makeCompletedFuture {
                    try channel.pipeline.syncOperations.addHandlers([
                        IdleStateHandler(readTimeout: TimeAmount(silence)),
                        RequestCollector(taken: taken, keep: keep, answer: answer),
                    ])
                }
            }
        let server: any Channel
        do {
            server = try await bootstrap.bind(host: host, port: port).get()
        } catch {
            taken.fail(error)
            throw error
        }
        isListening("http://\(Self.authority(host, server.localAddress?.port ?? port))")
        let result = try await taken.futureResult.get()
        try? await server.close().get()
        return result
    }

    private static func authority(_ host: String, _ port: Int) -> String {
        host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    }
}

/// One connection: its bytes go to an examination until the request has ended.
private final class RequestCollector: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let taken: EventLoopPromise<RequestListener.Taken>
    private let keep: @Sendable (RawSpan) -> Void
    private let answer: @Sendable (RequestListener.Taken) -> String
    private var state = State.silent

    private enum State {
        case silent
        case receiving(InputExamination, RequestEnd)
        /// The request has ended as its head says; what comes now is more than that.
        case ending(InputExamination)
        case done
    }

    /// Long enough for what a client sends beyond its Content-Length, and too short to be noticed.
    private static let grace = TimeAmount.milliseconds(200)

    init(
        taken: EventLoopPromise<RequestListener.Taken>, keep: @escaping @Sendable (RawSpan) -> Void,
        answer: @escaping @Sendable (RequestListener.Taken) -> String
    ) {
        self.taken = taken
        self.keep = keep
        self.answer = answer
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        let buffer = unwrapInboundIn(data)
        let bytes = buffer.readableBytesView
        switch state {
        case .silent:
            state = .receiving(InputExamination(format: .request), RequestEnd())
            channelRead(context: context, data: data)
        case .receiving(var examination, var end):
            state = .done
            let expectedContinue = end.expectsContinue
            bytes.withUnsafeBytes { raw in
                keep(raw.bytes)
                // A raw request is never one that cannot be taken from its input.
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
                keep(raw.bytes)
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

    /// Explains what has come and answers it; who sent nothing is not the one that is waited for.
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
        let result = RequestListener.Taken(examination: ended, explanation: explanation)
        let text = answer(result)
        let response = """
            HTTP/1.1 200 OK\r
            Content-Type: text/plain; charset=utf-8\r
            Content-Length: \(text.utf8.count)\r
            Connection: close\r
            \r
            \(text)
            """
        let bound = NIOLoopBound((context, taken), eventLoop: context.eventLoop)
        context.writeAndFlush(wrapOutboundOut(context.channel.allocator.buffer(string: response))).whenComplete { _ in
            bound.value.0.close(promise: nil)
            bound.value.1.succeed(result)
        }
    }
}
