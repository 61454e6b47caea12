import HummingbirdCore
import Logging
import NIOCore
import NIOHTTP2
import NIOSSL
import NIOTLS

/// Adds a ``ConnectionWatch`` to each connection of a TLS server.
struct WatchedConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    let options: ConnectionOptions

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        let value = base.setup(channel: channel, logger: logger)
        do {
            let pipeline = channel.pipeline.syncOperations
            let tls = try pipeline.handler(type: NIOSSLServerHandler.self)
            try pipeline.addHandler(ConnectionWatch(options: options), position: .after(tls))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return value
    }

    func handle(value: Base.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

/// Closes a TLS connection whose handshake does not complete, or on which no request arrives.
///
/// ``ConnectionHandler`` watches the client only after the handshake, and over HTTP/2 only during a stream. Between
/// streams, an idle client is sent a GOAWAY, but without this handler the connection would stay open if the client
/// ignored it.
final class ConnectionWatch: ChannelInboundHandler, RemovableChannelHandler {
    typealias InboundIn = ByteBuffer

    private let options: ConnectionOptions
    private var deadline: Scheduled<Void>?
    private var context: ChannelHandlerContext?
    /// How many handlers serve the connection: one for HTTP/1.1, one for each stream of HTTP/2.
    private var handlers = 0

    init(options: ConnectionOptions) {
        self.options = options
    }

    func handlerAdded(context: ChannelHandlerContext) {
        self.context = context
        // For all streams of the connection: each of them then sees its bytes reach the socket as the client reads.
        SocketProgress.limitUnsentBytes(of: context.channel)
        close(after: options.idleTimeout)
    }

    func handlerRemoved(context: ChannelHandlerContext) {
        deadline?.cancel()
        self.context = nil
    }

    func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent, handlers == 0 { waitForRequest() }
        context.fireUserInboundEventTriggered(event)
        if case TLSUserEvent.handshakeCompleted? = event as? TLSUserEvent { isolateStreams(of: context) }
    }

    /// The handlers of HTTP/2 are added as soon as the handshake has chosen it.
    private func isolateStreams(of context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        guard let connection = try? pipeline.handler(type: NIOHTTP2Handler.self) else { return }
        do {
            try pipeline.addHandler(StreamConnectionHandler(), position: .after(connection))
        } catch {
            context.fireErrorCaught(error)
        }
    }

    /// A handler starts to serve the connection or one of its streams.
    func served() {
        handlers += 1
        deadline?.cancel()
    }

    /// A handler is done.
    func left() {
        handlers -= 1
        if handlers == 0 { waitForRequest() }
    }

    /// Waits until an idle client has been sent a GOAWAY and has had time to react.
    private func waitForRequest() {
        close(after: options.idleTimeout + options.drainTimeout)
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

/// Keeps the error of one HTTP/2 stream from ending the others, and a connection from ending before its last response.
///
/// NIO resets the stream of a malformed request (RFC 9113 §8.1.1) and then reports the error on the connection, where
/// Hummingbird closes at any error. During a shutdown, Hummingbird closes as soon as the last stream has ended, which
/// NIO reports before it has written that stream's last frames.
final class StreamConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundIn = HTTP2Frame

    func errorCaught(context: ChannelHandlerContext, error: any Error) {
        if !Self.isOfStream(error) { context.fireErrorCaught(error) }
    }

    func close(context: ChannelHandlerContext, mode: CloseMode, promise: EventLoopPromise<Void>?) {
        let context = NIOLoopBound(context, eventLoop: context.eventLoop)
        context.eventLoop.execute {
            context.value.flush()
            context.value.close(mode: mode, promise: promise)
        }
    }

    /// Whether the error concerns a single stream, which NIO has already reset.
    private static func isOfStream(_ error: any Error) -> Bool {
        switch error {
        case is NIOHTTP2Errors.InvalidHTTP2HeaderFieldName, is NIOHTTP2Errors.InvalidHTTP2HeaderFieldValue,
            is NIOHTTP2Errors.ForbiddenHeaderField, is NIOHTTP2Errors.PseudoHeaderAfterRegularHeader,
            is NIOHTTP2Errors.DuplicatePseudoHeader, is NIOHTTP2Errors.UnknownPseudoHeader,
            is NIOHTTP2Errors.UnsupportedPseudoHeader, is NIOHTTP2Errors.InvalidPseudoHeaders,
            is NIOHTTP2Errors.InvalidPseudoHeaderValue, is NIOHTTP2Errors.EmptyPathHeader,
            is NIOHTTP2Errors.TrailersWithoutEndStream, is NIOHTTP2Errors.ContentLengthViolated,
            is NIOHTTP2Errors.ContentLengthHeadersMismatch, is NIOHTTP2Errors.ContentLengthHeaderNegative,
            is NIOHTTP2Errors.ContentLengthHeaderMalformedValue, is NIOHTTP2Errors.StreamError:
            true
        default: false
        }
    }
}

@available(*, unavailable)
extension StreamConnectionHandler: Sendable {}
