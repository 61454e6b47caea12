#if TLS || CommandLine
public import HummingbirdCore
import HummingbirdHTTP2
import Logging
import NIOCore
import NIOHTTP2
import NIOHTTPTypesHTTP2
public import NIOSSL
package import PostcardReception

extension HTTPServerBuilder {
    /// A server with TLS, and HTTP/2 or HTTP/1.1 as the client prefers. Connections are handled as without TLS.
    ///
    /// - Parameters:
    ///   - tls: The certificate, its private key, and all other settings of TLS.
    ///   - options: The timeouts and limits of each connection.
    /// - Throws: Nothing. The application throws an error of NIOSSL at its start if the certificate cannot be used.
    public static func uploads(
        tls: TLSConfiguration, options: ConnectionOptions = ConnectionOptions()
    ) throws -> HTTPServerBuilder {
        try uploads(tls: tls, options: options, onEarlyRefusal: { _ in })
    }

    /// - Parameter shares: Limits the requests of each client. Defaults to `nil`: no limits.
    package static func uploads(
        tls: TLSConfiguration, options: ConnectionOptions, shares: ShareAccount? = nil,
        onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) throws -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            // After a GOAWAY, NIO sets no time limit for streams in progress. `ConnectionHandler` ends slow streams.
            let streams = HTTP2ChannelConfiguration(
                idleTimeout: options.keepAliveTimeout, gracefulCloseTimeout: nil,
                streamConfiguration: configuration(options, onEarlyRefusal))
            return ShutdownConnection(
                base: ProxiedConnection(
                    base: WatchedConnection(
                        base: try HTTP2UpgradeChannel(
                            tlsConfiguration: tls, configuration: streams,
                            responder: onUploadConnection(responder, options, shares, onEarlyRefusal)),
                        options: options),
                    options: options, shares: shares),
                timeout: options.shutdownTimeout)
        }
    }
}

extension UploadConnection {
    /// Waits until the response is in the client's socket. Then ends the stream, even if the client is still sending: a
    /// client need not send the rest of a refused form (RFC 9113 §8.1).
    func endStream() async throws {
        try await flushed()
        try await channel.eventLoop.submit { [channel] in
            guard channel.isActive else { return }
            let codec = try channel.pipeline.syncOperations.context(
                handlerType: HTTP2FramePayloadToHTTPServerCodec.self)
            codec.writeAndFlush(NIOAny(HTTP2Frame.FramePayload.rstStream(.noError)), promise: nil)
        }.get()
    }
}

/// Adds a ``ConnectionWatch`` to each connection of a TLS server.
struct WatchedConnection<Base: ServerChildChannel>: ServerChildChannel {
    let base: Base
    let options: ConnectionOptions

    func setup(channel: any Channel, logger: Logger) -> EventLoopFuture<Base.Value> {
        let value = base.setup(channel: channel, logger: logger)
        do {
            let pipeline = channel.pipeline.syncOperations
            let tls = try pipeline.handler(type: NIOSSLServerHandler.self)
            try pipeline.addHandler(
                ConnectionWatch(options: options, onHandshake: StreamConnectionHandler.add), position: .after(tls))
        } catch {
            return channel.eventLoop.makeFailedFuture(error)
        }
        return value
    }

    func handle(value: Base.Value, logger: Logger) async {
        await base.handle(value: value, logger: logger)
    }
}

/// Keeps a connection open after the error of a single HTTP/2 stream, and until its last response is written.
///
/// NIO resets the stream of a malformed request (RFC 9113 §8.1.1), and then reports the error on the connection.
/// Hummingbird would close the connection because of this error. During a shutdown, Hummingbird would close it as soon
/// as NIO reports the end of the last stream. At that time, the last frames of the stream are not written yet.
final class StreamConnectionHandler: ChannelDuplexHandler, RemovableChannelHandler {
    typealias InboundIn = HTTP2Frame
    typealias OutboundIn = HTTP2Frame

    /// Adds the handler after NIO's handler to a connection whose handshake has chosen HTTP/2.
    static func add(to context: ChannelHandlerContext) {
        let pipeline = context.pipeline.syncOperations
        guard let connection = try? pipeline.handler(type: NIOHTTP2Handler.self) else { return }
        do {
            try pipeline.addHandler(StreamConnectionHandler(), position: .after(connection))
        } catch {
            context.fireErrorCaught(error)
        }
    }

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
#else
extension UploadConnection {
    /// Does nothing, because streams need TLS.
    func endStream() async throws {}
}
#endif
