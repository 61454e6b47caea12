#if AsyncHTTP
import NIOCore
import NIOHTTP1

/// Closes a connection whose server answers with a status below 100, which is none (RFC 9110 §15).
///
/// NIO reads such a status, and AsyncHTTPClient, which takes it for an informational one, does not survive the
/// end of the response.
final class StatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private enum State {
        case valid
        case invalid
    }

    private var state = State.valid

    /// Adds the check to a connection, between what reads responses and what acts on them.
    static func add(to channel: any Channel) -> EventLoopFuture<Void> {
        channel.eventLoop.submit {
            let pipeline = channel.pipeline.syncOperations
            let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
            try pipeline.addHandler(StatusCheck(), position: .after(decoder))
        }
    }

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // What comes after an invalid head until the connection is closed belongs to no response.
        guard state == .valid else { return }
        if case .head(let head) = unwrapInboundIn(data), head.status.code < 100 {
            state = .invalid
            context.fireErrorCaught(HTTPParserError.invalidStatus)
            context.close(promise: nil)
        } else {
            context.fireChannelRead(data)
        }
    }
}
#endif
