import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOHTTP2

extension HTTPClient.Configuration {
    /// Adds the transport's handlers to every connection, next to the HTTP codec.
    ///
    /// AsyncHTTPClient's own streamed bodies cannot keep two promises: it drops the 100 (Continue), and it ends a
    /// request with an early success only after the whole body. It also flushes the head, the body and the end one by
    /// one. The debug initializers are the only way to add handlers, so `Package.swift` pins the minor version.
    mutating func addHandlers(sending requests: OutgoingRequests, patience: TimeAmount) {
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                let handlers: [any ChannelHandler] = [StatusCheck(), BodyHandler(requests, patience: patience)]
                try pipeline.addHandlers(handlers, position: .after(decoder))
            }
        }
        http2StreamChannelDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let codec = try pipeline.handler(type: HTTP2FramePayloadToHTTP1ClientCodec.self)
                try pipeline.addHandler(BodyHandler(requests, patience: patience), position: .after(codec))
            }
        }
    }
}

/// Closes a connection whose server responds with a status below 100, which is invalid (RFC 9110 §15).
///
/// NIO accepts such a status. AsyncHTTPClient treats it as informational, and crashes at the end of the response.
final class StatusCheck: ChannelInboundHandler {
    typealias InboundIn = HTTPClientResponsePart
    typealias InboundOut = HTTPClientResponsePart

    private enum State {
        case valid
        case invalid
    }

    private var state = State.valid

    func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        // Bytes after an invalid head belong to no response.
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
