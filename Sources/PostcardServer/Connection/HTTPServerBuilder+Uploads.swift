public import HummingbirdCore
import HummingbirdHTTP2
public import NIOSSL

extension HTTPServerBuilder {
    /// HTTP/1.1 with the connection handling that uploads need.
    ///
    /// ```swift
    /// let application = Application(router: router, server: .uploads())
    /// ```
    ///
    /// A client that waits for `100 Continue` receives it when its body is about to be read, or the refusal instead. A
    /// refusal reaches the client even while it is still sending. A silent or slow client is refused or disconnected.
    /// This applies to every route of the application.
    ///
    /// ``http1(configuration:)`` can receive forms too, but clients then learn less about what is wrong with them.
    ///
    /// - Parameter options: The timeouts and limits of each connection.
    public static func uploads(options: ConnectionOptions = ConnectionOptions()) -> HTTPServerBuilder {
        uploads(options: options, onEarlyRefusal: { _ in })
    }

    package static func uploads(
        options: ConnectionOptions, onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            ShutdownConnection(
                base: HTTP1Channel(
                    responder: onUploadConnection(responder), configuration: configuration(options, onEarlyRefusal)),
                timeout: options.shutdownTimeout)
        }
    }

    /// HTTP/2 or HTTP/1.1 over TLS, as the client prefers, with the same connection handling.
    ///
    /// - Parameters:
    ///   - tls: The certificate, its private key, and the other settings of TLS.
    ///   - options: The timeouts and limits of each connection.
    /// - Throws: `NIOSSLError` if the certificate or its key cannot be used.
    public static func uploads(
        tls: TLSConfiguration, options: ConnectionOptions = ConnectionOptions()
    ) throws -> HTTPServerBuilder {
        try uploads(tls: tls, options: options, onEarlyRefusal: { _ in })
    }

    package static func uploads(
        tls: TLSConfiguration, options: ConnectionOptions, onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) throws -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            // Streams in progress are not cut off after a GOAWAY: ConnectionHandler ends slow ones, as over HTTP/1.1.
            let streams = HTTP2ChannelConfiguration(
                idleTimeout: options.idleTimeout, gracefulCloseTimeout: nil,
                streamConfiguration: configuration(options, onEarlyRefusal))
            return ShutdownConnection(
                base: WatchedConnection(
                    base: try HTTP2UpgradeChannel(
                        tlsConfiguration: tls, configuration: streams, responder: onUploadConnection(responder)),
                    options: options),
                timeout: options.shutdownTimeout)
        }
    }

    private static func configuration(
        _ options: ConnectionOptions, _ onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) -> HTTP1Channel.Configuration {
        HTTP1Channel.Configuration(
            additionalChannelHandlers: [ConnectionHandler(options: options, onEarlyRefusal: onEarlyRefusal)])
    }

    private static func onUploadConnection(
        _ responder: @escaping HTTPChannelHandler.Responder
    ) -> HTTPChannelHandler.Responder {
        { request, writer, channel in
            var writer: ResponseWriter? = writer
            let connection = UploadConnection(channel: channel)
            // Also if the response fails or its task is cancelled.
            defer { connection.files.remove() }
            try await UploadConnection.$current.withValue(connection) {
                guard let writer = writer.take() else { return }
                try await responder(request, writer, channel)
            }
        }
    }
}
