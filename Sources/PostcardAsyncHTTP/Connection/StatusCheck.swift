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
