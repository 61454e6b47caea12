import HTTPTypes
public import HummingbirdCore
import NIOCore
package import PostcardReception

extension HTTPServerBuilder {
    /// A server for HTTP/1.1 with the connection handling that uploads need.
    ///
    /// ```swift
    /// let application = Application(router: router, server: .uploads())
    /// ```
    ///
    /// A client that waits for `100 Continue` gets it when its body is about to be read, or a refusal instead. Refusals
    /// reach a client even while it is still sending. Silent or slow clients are refused or disconnected. Requests
    /// whose header fields would be slow to compare are refused. This applies to every route of the application.
    ///
    /// Hummingbird's `http1(configuration:)` can receive forms too, but does not check the heads of requests, and gives
    /// clients less information about the problems of their forms.
    ///
    /// - Parameter options: The timeouts and limits of each connection.
    public static func uploads(options: ConnectionOptions = ConnectionOptions()) -> HTTPServerBuilder {
        uploads(options: options, onEarlyRefusal: { _ in })
    }

    /// - Parameter shares: Limits the requests of each client. Defaults to `nil`: no limits.
    package static func uploads(
        options: ConnectionOptions, shares: ShareAccount? = nil, onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) -> HTTPServerBuilder {
        HTTPServerBuilder { responder in
            ShutdownConnection(
                base: ProxiedConnection(
                    base: HTTP1Channel(
                        responder: onUploadConnection(responder, options, shares, onEarlyRefusal),
                        configuration: configuration(options, onEarlyRefusal)),
                    options: options, shares: shares),
                timeout: options.shutdownTimeout)
        }
    }

    static func configuration(
        _ options: ConnectionOptions, _ onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) -> HTTP1Channel.Configuration {
        HTTP1Channel.Configuration(
            additionalChannelHandlers: [ConnectionHandler(options: options, onEarlyRefusal: onEarlyRefusal)])
    }

    static func onUploadConnection(
        _ responder: @escaping HTTPChannelHandler.Responder, _ options: ConnectionOptions, _ shares: ShareAccount?,
        _ onEarlyRefusal: @escaping EarlyRefusal.Observer
    ) -> HTTPChannelHandler.Responder {
        { request, writer, channel in
            var writer: ResponseWriter? = writer
            let named = options.usesProxyProtocol ? await ProxyHeaderHandler.client(of: channel) : nil
            let client = RequestClient(
                of: request.headers, from: named.map(ConnectionPeer.address) ?? ConnectionPeer(channel),
                // If a proxy's PROXY header names no client, the client itself wrote the header fields.
                trusting: options.usesProxyProtocol && named == nil ? [] : options.trustedProxies)
            let connection = UploadConnection(channel: channel, client: client)
            let hold: ShareAccount.Hold?
            do throws(UploadProblem) {
                // Over HTTP/1, the request guard has already checked the head.
                if connection.isStream, let problem = RequestFieldCheck.problem(of: request.head) {
                    onEarlyRefusal(EarlyRefusal(problem: problem, bytes: [], client: connection.clientAddress))
                    throw problem
                }
                hold = try shares?.take(of: .requests, for: connection.peer, on: channel)
            } catch {
                let response = error.response
                let body = request.method == .head ? ResponseBody() : response.body
                let cut = connection.cutLater()
                defer { cut?.cancel() }
                guard let writer = writer.take() else { return }
                try await writer.write(response: response.head, body: body)
                if connection.isStream { try await connection.endStream() }
                return
            }
            // The files are removed even if the response fails or its task is cancelled.
            defer { connection.files.remove() }
            try await UploadConnection.$current.withValue(connection) {
                guard let writer = writer.take() else { return }
                try await responder(request, writer, channel)
            }
            // A stream uses memory until its client opens a window for the response.
            if connection.isStream { try await connection.endStream() }
            withExtendedLifetime(hold) {}
        }
    }
}
