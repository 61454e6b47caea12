public import AsyncHTTPClient
import HTTPTypes
public import NIOCore
import NIOHTTP1
public import PostcardClient
import PostcardForm
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Carries uploads by AsyncHTTPClient: for servers and tools, and wherever a `Content-Length` or a gigabyte a
/// second matters.
///
/// ```swift
/// let client = UploadClient(transport: AsyncHTTPTransport())
/// ```
///
/// The request names the form's length where it is known, and goes out in chunks where it is not. About
/// 1 MiB of the body is in memory at the most. Connections are kept and used again; HTTP/2 is spoken
/// where a server offers it over TLS.
///
/// A request that asks for a 100 (Continue) waits for it before its body goes out, a second at the most. An answer that
/// overtakes the body ends it, one of 300 or more at once and another with its own end, and the connection is not used
/// again.
public struct AsyncHTTPTransport: UploadTransport {
    private let connections: Connections

    /// Makes a transport with an HTTP client of its own, which its copies share and which is shut down with the
    /// last of them.
    ///
    /// - Parameter connectTimeout: How long connecting may take.
    public init(connectTimeout: Duration = .seconds(30)) {
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = TimeAmount(connectTimeout)
        // A refused connection is told at once; whether to try again is the client's retry policy to say.
        configuration.connectionPool.retryConnectionEstablishment = false
        self.init(configuration: configuration)
    }

    /// Makes a transport whose connections are set up as the program says: through a proxy, with certificates of its
    /// own, or with more of them at a time.
    ///
    /// ```swift
    /// var configuration = HTTPClient.Configuration()
    /// configuration.proxy = .server(host: "proxy.example.org", port: 3128)
    /// let client = UploadClient(transport: AsyncHTTPTransport(configuration: configuration))
    /// ```
    ///
    /// - Parameters:
    ///   - configuration: The settings of the HTTP client that the transport makes. Redirects and the times without
    ///     a byte read or written are the upload client's to judge, and the initializers of connections are the
    ///     transport's own: what is set for those is passed over. A client that retries to establish connections,
    ///     as is AsyncHTTPClient's default, says only after its connect timeout that nobody listens.
    ///   - eventLoopGroup: The threads on which connections are served; those that all of the program's clients share
    ///     unless given.
    public init(
        configuration: HTTPClient.Configuration, eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup
    ) {
        // As long as libcurl waits.
        self.init(configuration: configuration, eventLoopGroup: eventLoopGroup, expectationPatience: .seconds(1))
    }

    /// - Parameter expectationPatience: How long a server has to say that it wants the body, before it gets it anyway.
    package init(
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
        eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup, expectationPatience: Duration
    ) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.timeout.read = nil
        configuration.timeout.write = nil
        let bodies = OutgoingBodies()
        configuration.addHandlers(sending: bodies, patience: TimeAmount(expectationPatience))
        connections = Connections(
            HTTPClient(eventLoopGroupProvider: .shared(eventLoopGroup), configuration: configuration), bodies)
    }

    /// The HTTP client, shut down when nobody holds it any more.
    private final class Connections: Sendable {
        let client: HTTPClient
        /// Where the connections' handlers find what to send.
        let bodies: OutgoingBodies

        /// How many requests are under way, and where the last was put.
        private let loops: Mutex<(running: Int, last: any EventLoop)>

        init(_ client: HTTPClient, _ bodies: OutgoingBodies) {
            self.client = client
            self.bodies = bodies
            loops = Mutex((0, client.eventLoopGroup.next()))
        }

        /// The event loop for a request: that of the last one, whose connection is there, unless others are under
        /// way, which then share all loops.
        func takeLoop() -> any EventLoop {
            loops.withLock { loops in
                if loops.running > 0 { loops.last = client.eventLoopGroup.next() }
                loops.running += 1
                return loops.last
            }
        }

        func giveBackLoop() {
            loops.withLock { $0.running -= 1 }
        }

        deinit {
            // The callback keeps the client until it has shut down; its failing to do so concerns nobody.
            client.shutdown { [client] _ in _ = client }
        }
    }

    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        guard let layout = request.body else {
            do {
                return try await answer(to: try HTTPClient.Request(request), of: request, reporting: report)
            } catch {
                throw UploadError.mapping(error, of: request.url)
            }
        }
        var source = try BodySource(layout)
        let first = try source.readyBlock()
        let blocks = BodyBlocks(first)
        let body = OutgoingBody(
            blocks: blocks, length: layout.contentLength, expectsContinue: request.expectsContinue, report: report)
        guard first?.isLast != true else { return try await answer(to: request, with: body) }
        // A reading that fails ends the request, and the answer ends the reading, whatever that waits for.
        async let _: Void = source.feed(blocks)
        return try await answer(to: request, with: body)
    }

    /// Sends a request whose body goes out as its blocks are put.
    private func answer(to request: UploadRequest, with body: OutgoingBody) async throws -> UploadResponse {
        var outgoing = try HTTPClient.Request(request)
        let mark = connections.bodies.add(body, marking: &outgoing.headers)
        defer {
            connections.bodies.remove(mark)
            body.blocks.close()
        }
        do {
            return try await answer(to: outgoing, of: request, reporting: body.report)
        } catch {
            // What kept the body from being read is told as it is, whatever became of the connection then.
            throw body.blocks.failure ?? UploadError.mapping(error, of: request.url)
        }
    }

    private func answer(
        to outgoing: HTTPClient.Request, of request: UploadRequest,
        reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        let loop = connections.takeLoop()
        defer { connections.giveBackLoop() }
        let answer = PendingAnswer(to: request, reporting: report)
        return try await answer.response(to: outgoing, by: connections.client, on: loop)
    }
}

extension UploadRequest {
    fileprivate var expectsContinue: Bool {
        headerFields[.expect]?.lowercased() == "100-continue"
    }
}

extension HTTPClient.Request {
    /// A request without its body.
    fileprivate init(_ request: UploadRequest) throws {
        try self.init(url: request.url, method: HTTPMethod(rawValue: request.method.rawValue))
        for field in request.headerFields { headers.add(name: field.name.rawName, value: field.value) }
    }
}
