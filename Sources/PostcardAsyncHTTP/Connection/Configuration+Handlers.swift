import AsyncHTTPClient
import NIOCore
import NIOHTTP1
import NIOHTTP2

extension HTTPClient.Configuration {
    /// Adds the transport's handlers to every connection, next to what reads and writes the bytes.
    mutating func addHandlers(sending bodies: OutgoingBodies, patience: TimeAmount) {
        http1_1ConnectionDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let decoder = try pipeline.handler(type: ByteToMessageHandler<HTTPResponseDecoder>.self)
                let handlers: [any ChannelHandler] = [StatusCheck(), BodyHandler(bodies, patience: patience)]
                try pipeline.addHandlers(handlers, position: .after(decoder))
            }
        }
        http2StreamChannelDebugInitializer = { channel in
            channel.eventLoop.submit {
                let pipeline = channel.pipeline.syncOperations
                let codec = try pipeline.handler(type: HTTP2FramePayloadToHTTP1ClientCodec.self)
                try pipeline.addHandler(BodyHandler(bodies, patience: patience), position: .after(codec))
            }
        }
    }
}
