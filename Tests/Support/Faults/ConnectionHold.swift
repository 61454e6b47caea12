package import NIOCore

/// Keeps what arrives on a connection until a handler is ready: a client that closes at once sends the end of it before
/// a handler listens, and NIO reads up to there unasked.
package final class ConnectionHold: ChannelInboundHandler, RemovableChannelHandler {
    package typealias InboundIn = ByteBuffer
    package typealias InboundOut = ByteBuffer

    private var bytes = ByteBuffer()
    private var hasEnded = false

    /// Has a connection that was just accepted wait.
    package static func add(to channel: any Channel) -> EventLoopFuture<any Channel> {
        channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(ConnectionHold())
            return channel
        }
    }

    /// Lets a connection go on to the handlers that it has by now.
    ///
    /// Removes this handler before reading starts. If reading started first, this handler would take in a whole form
    /// although the server has asked only for the head.
    package static func end(on channel: any Channel) async throws {
        try await channel.eventLoop.flatSubmit {
            let pipeline = channel.pipeline
            do {
                return pipeline.syncOperations.removeHandler(try pipeline.syncOperations.handler(type: Self.self))
                    .flatMap { channel.setOption(.autoRead, value: true) }
            } catch {
                return channel.eventLoop.makeFailedFuture(error)
            }
        }.get()
    }

    package func channelRead(context: ChannelHandlerContext, data: NIOAny) {
        var more = unwrapInboundIn(data)
        bytes.writeBuffer(&more)
    }

    package func channelReadComplete(context: ChannelHandlerContext) {}

    package func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case ChannelEvent.inputClosed = event {
            hasEnded = true
        } else {
            context.fireUserInboundEventTriggered(event)
        }
    }

    package func handlerRemoved(context: ChannelHandlerContext) {
        if bytes.readableBytes > 0 {
            context.fireChannelRead(wrapInboundOut(bytes))
            context.fireChannelReadComplete()
        }
        if hasEnded { context.fireUserInboundEventTriggered(ChannelEvent.inputClosed) }
    }
}
