#if Server
public import HummingbirdCore

extension HTTPServerBuilder {
    /// HTTP/1.1 with the manners that uploads need.
    ///
    /// ```swift
    /// let application = Application(router: router, server: .uploads())
    /// ```
    ///
    /// A client that waits for `100 Continue` gets it when its body is about to be read, or the refusal instead. A
    /// refusal reaches the client even while it is still sending. A silent client is refused or disconnected. It does
    /// this for every route of the application.
    ///
    /// With ``http1(configuration:)`` forms are received as well, and clients see less of what is wrong with them.
    public static func uploads(options: ConnectionOptions = ConnectionOptions()) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            HTTP1Channel(
                responder: { request, writer, channel in
                    var writer: ResponseWriter? = writer
                    try await UploadConnection.$current.withValue(UploadConnection(channel: channel)) {
                        guard let writer = writer.take() else { return }
                        try await responder(request, writer, channel)
                    }
                },
                configuration: HTTP1Channel.Configuration(
                    additionalChannelHandlers: [ConnectionHandler(options: options)]))
        }
    }
}
#endif
