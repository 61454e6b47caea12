import NIOCore
import NIOTLS

/// Closes a TLS connection whose handshake does not complete, or that has no request.
///
/// ``ConnectionHandler`` watches the client only after the handshake, and over HTTP/2 only during a stream. Between
/// streams, an idle client gets a GOAWAY, but may ignore it and keep the connection open.
final class ConnectionWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let options: ConnectionOptions
    private let onHandshake: (ChannelHandlerContext) -> Void
    private var deadline: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// The number of handlers that serve the connection: one over HTTP/1.1, or one for each HTTP/2 stream.
    private var handlers = 0

    /// - Parameter onHandshake: Called when the handshake has chosen HTTP/1.1 or HTTP/2.
    init(options: ConnectionOptions, onHandshake: @escaping (ChannelHandlerContext) -> Void) {
        self.options = options
        self.onHandshake = onHandshake
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // The limit applies to the whole connection, so that each stream notices what the client reads.
        SocketProgress.limitUnsentBytes(of: context.channel)
        close(after: options.idleTimeout)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        self.context = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        // The first request may take as long after the handshake as it may after the start of a connection without TLS.
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent, handlers == 0 {
            close(after: options.idleTimeout)
        }
        context.fireUserInboundEventTriggered(event)
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent { onHandshake(context) }
    }

    /// Counts a handler that starts to serve the connection or one of its streams.
    func served() {
        handlers += 1
        deadline?.cancel()
    }

    /// Counts a handler that has finished.
    func left() {
        handlers -= 1
        if handlers == 0 { waitForRequest() }
    }

    /// Waits for a request. The timeout leaves an idle client enough time to receive a GOAWAY and to react.
    private func waitForRequest() {
        close(after: options.keepAliveTimeout + options.drainTimeout)
    }

    private func close(after delay: Duration) {
        deadline?.cancel()
        deadline = context?.eventLoop.assumeIsolated().scheduleTask(in: TimeAmount(delay)) { [self] in
            context?.close(promise: nil)
        }
    }
}

@available(*, unavailable)
extension ConnectionWatch: Sendable {}
