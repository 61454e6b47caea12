#if !canImport(AsyncHTTPClient)
#error("PostcardAsyncHTTP needs the trait AsyncHTTP of this package: .package(url: …, traits: [\"AsyncHTTP\"])")
#endif

public import AsyncHTTPClient
import HTTPTypes
public import NIOCore
import NIOHTTP1
public import PostcardClient
import PostcardFoundation
import Synchronization

/// Sends uploads with AsyncHTTPClient, for servers and tools: with a `Content-Length`, at up to a gigabyte a second.
///
/// ```swift
/// let client = UploadClient(transport: AsyncHTTPTransport())
/// ```
///
/// The request has a `Content-Length` if the form's length is known; otherwise the form is sent in chunks. At most
/// about 1 MiB of the body is in memory. Connections are reused, and HTTP/2 is used if a server offers it over TLS.
///
/// The body of a request with `Expect: 100-continue` waits for the 100 (Continue), at most a second. If a response
/// arrives before the whole body was sent, sending stops: at once for a status of 300 or more, otherwise when the
/// response ends. The connection is then closed.
public struct AsyncHTTPTransport: UploadTransport {
    /// Whether a connection's event loop also reads the files to send. Defaults to `false`: other threads read them.
    ///
    /// Files in the system's cache are then sent up to a fifth faster, about as fast as with `curl`. But a slow disk
    /// delays everything else on that event loop. So use this only in programs that do nothing else, such as `postcard
    /// send`. Forms with streams, a rate limit or digests are always read by other threads.
    public var readsFilesOnEventLoops = false

    private let connections: Connections

    /// Makes a transport with its own HTTP client. Copies of the transport share the client until the last copy is
    /// released.
    ///
    /// - Parameter connectTimeout: How long connecting may take. Defaults to 30 seconds.
    public init(connectTimeout: Duration = .seconds(30)) {
        self.init(configuration: Self.configuration(connectTimeout: connectTimeout))
    }

    /// The configuration that ``init(connectTimeout:)`` uses. Change it and pass it to
    /// ``init(configuration:eventLoopGroup:)``. A refused connection fails at once, because the client's retry policy
    /// decides whether to try again. Up to 1,000 connections to a host are allowed. A new `HTTPClient.Configuration`
    /// allows only 8, and an upload that waits for a connection can time out.
    ///
    /// - Parameter connectTimeout: How long connecting may take. Defaults to 30 seconds.
    public static func configuration(connectTimeout: Duration = .seconds(30)) -> HTTPClient.Configuration {
        var configuration = HTTPClient.Configuration()
        configuration.timeout.connect = TimeAmount(connectTimeout)
        configuration.connectionPool.retryConnectionEstablishment = false
        // The caller decides how many uploads run at a time. An upload that waits for a connection can time out.
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 1000
        return configuration
    }

    /// Makes a transport with a configuration: for a proxy, other certificates or more connections.
    ///
    /// ```swift
    /// var configuration = AsyncHTTPTransport.configuration()
    /// configuration.proxy = .server(host: "proxy.example.org", port: 3128)
    /// let client = UploadClient(transport: AsyncHTTPTransport(configuration: configuration))
    /// ```
    ///
    /// - Parameters:
    ///   - configuration: The configuration of the transport's HTTP client. Its redirects, read and write timeouts, and
    ///     tracer are ignored, because the upload client has its own. The debug initializers of HTTP/1.1 connections
    ///     and HTTP/2 streams are ignored, because the transport sets them. With `retryConnectionEstablishment`, the
    ///     default of AsyncHTTPClient, a refused connection fails only after the connect timeout.
    ///   - eventLoopGroup: The event loops of the connections. Defaults to the event loops that AsyncHTTPClient shares.
    public init(
        configuration: HTTPClient.Configuration, eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup
    ) {
        // libcurl also waits one second for a 100 (Continue).
        self.init(configuration: configuration, eventLoopGroup: eventLoopGroup, expectationPatience: .seconds(1))
    }

    /// Makes a transport with a configuration.
    ///
    /// - Parameter expectationPatience: How long to wait for a 100 (Continue) before the body is sent anyway.
    package init(
        configuration: HTTPClient.Configuration = HTTPClient.Configuration(),
        eventLoopGroup: any EventLoopGroup = HTTPClient.defaultEventLoopGroup, expectationPatience: Duration
    ) {
        var configuration = configuration
        configuration.redirectConfiguration = .disallow
        configuration.timeout.read = nil
        configuration.timeout.write = nil
        // The upload client makes the trace spans. Spans of AsyncHTTPClient would be in separate traces.
        configuration.tracing.tracer = nil
        let requests = OutgoingRequests()
        configuration.addHandlers(sending: requests, patience: TimeAmount(expectationPatience))
        connections = Connections(
            HTTPClient(eventLoopGroupProvider: .shared(eventLoopGroup), configuration: configuration), requests)
    }

    /// Owns the HTTP client, and shuts it down when the last copy of the transport is gone.
    private final class Connections: Sendable {
        let client: HTTPClient
        /// The requests in progress. The handler of each connection finds its own request here.
        let requests: OutgoingRequests

        /// The number of requests in progress, and the event loop of the latest request.
        private let loops: Mutex<(running: Int, last: any EventLoop)>

        init(_ client: HTTPClient, _ requests: OutgoingRequests) {
            self.client = client
            self.requests = requests
            loops = Mutex((0, client.eventLoopGroup.next()))
        }

        /// The event loop for a request. If no other request is in progress, it is the loop of the latest request,
        /// whose connection can be reused. Otherwise the requests are spread over all loops.
        func takeLoop() -> any EventLoop {
            loops.withLock { loops in
                if loops.running > 0 { loops.last = client.eventLoopGroup.next() }
                loops.running += 1
                return loops.last
            }
        }

        func returnLoop() {
            loops.withLock { $0.running -= 1 }
        }

        deinit {
            // The callback retains the client until its shutdown has ended. An error of the shutdown is ignored.
            client.shutdown { [client] _ in _ = client }
        }
    }

    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        var unsentAttempts = 0
        while true {
            let beginning = RequestBeginning()
            do {
                return try await send(request, noting: beginning, reporting: report)
            } catch let error as UploadError where error.code == .connectionLost && !beginning.isSent {
                unsentAttempts += 1
                // The server had closed an idle connection. Other idle connections may be closed too.
                guard Self.isClosure(error.underlyingError), unsentAttempts < Self.maximumUnsentAttempts,
                    request.body?.isReplayable ?? true
                else {
                    if request.body != nil { report(.sent(bytes: 0)) }
                    throw error
                }
            }
        }
    }

    /// Whether an error means that the connection was closed while waiting for a response or writing.
    private static func isClosure(_ error: (any Error)?) -> Bool {
        switch error {
        case let error as HTTPClientError: error == .remoteConnectionClosed
        case let error as ChannelError: error == .ioOnClosedChannel || error == .alreadyClosed
        default: false
        }
    }

    /// The maximum number of attempts, without delays, for a request whose connection was closed before a byte was
    /// sent.
    private static let maximumUnsentAttempts = 3

    /// Sends a request, without trying again.
    private func send(
        _ request: UploadRequest, noting beginning: RequestBeginning,
        reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        guard let body = request.body else {
            return try await response(
                to: request, as: OutgoingRequest(body: nil, report: report, beginning: beginning))
        }
        let isReadOnLoop = readsFilesOnEventLoops && body.isOnlyCopied
        let blockSize = isReadOnLoop ? BodySource.loopBlockSize : BodySource.taskBlockSize
        var source = try BodySource(body, blockSize: blockSize)
        let first = try source.readyBlock()
        let blocks = BodyBlocks(first, source: isReadOnLoop ? LoopSource(source) : nil)
        let outgoing = OutgoingRequest(
            body: OutgoingBody(
                blocks: blocks, length: body.contentLength, expectsContinue: request.expectsContinue, report: report),
            report: report, beginning: beginning)
        guard first?.isLast != true, !isReadOnLoop else { return try await response(to: request, as: outgoing) }
        // If reading the body fails, the request ends. When the response arrives, reading the body ends.
        async let _: Void = source.feed(blocks)
        return try await response(to: request, as: outgoing)
    }

    /// Sends a request while reading its body, if the request has one.
    private func response(to request: UploadRequest, as outgoing: OutgoingRequest) async throws -> UploadResponse {
        let blocks = outgoing.body?.blocks
        defer { blocks?.close() }
        do {
            var head = try HTTPClient.Request(request)
            let mark = connections.requests.add(outgoing, marking: &head.headers)
            defer { connections.requests.remove(mark) }
            return try await response(to: head, of: request, reporting: outgoing.report)
        } catch {
            // If reading the body failed, the connection's error is only a consequence. So the reading error is thrown.
            throw blocks?.failure
                ?? UploadError.mapping(error, of: request.url, afterSending: outgoing.beginning.isSent)
        }
    }

    private func response(
        to outgoing: HTTPClient.Request, of request: UploadRequest,
        reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        let loop = connections.takeLoop()
        defer { connections.returnLoop() }
        let response = PendingResponse(to: request, reporting: report)
        return try await response.value(to: outgoing, by: connections.client, on: loop)
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
