#if AsyncHTTP
public import AsyncHTTPClient
import HTTPTypes
import NIOCore
import NIOHTTP1
public import PostcardClient
import PostcardForm

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
/// 5 MiB of the body are in memory at the most. Connections are kept and used again; HTTP/2 is spoken
/// where a server offers it over TLS.
public struct AsyncHTTPTransport: UploadTransport {
    private let connections: Connections

    /// Makes a transport with an HTTP client of its own, which its copies share and which is shut down with the
    /// last of them.
    ///
    /// - Parameter connectTimeout: How long connecting may take.
    public init(connectTimeout: Duration = .seconds(30)) {
        var configuration = HTTPClient.Configuration(redirectConfiguration: .disallow)
        configuration.timeout.connect = TimeAmount(connectTimeout)
        // A refused connection is told at once; whether to try again is the client's retry policy to say.
        configuration.connectionPool.retryConnectionEstablishment = false
        configuration.http1_1ConnectionDebugInitializer = StatusCheck.add(to:)
        connections = Connections(HTTPClient(configuration: configuration), isOwned: true)
    }

    /// Makes a transport that uses an HTTP client which the program has.
    ///
    /// - Parameter client: The client, which the program shuts down when nobody uses it any more. One that
    ///   follows redirects never sends a form again, but answers a 303 with what it finds at the other place,
    ///   and one that retries to establish connections says only after its connect timeout that nobody listens.
    ///   Both are AsyncHTTPClient's defaults.
    public init(client: HTTPClient) {
        connections = Connections(client, isOwned: false)
    }

    /// The HTTP client, shut down when nobody holds it any more if it is the transport's own.
    private final class Connections: Sendable {
        let client: HTTPClient
        private let isOwned: Bool

        init(_ client: HTTPClient, isOwned: Bool) {
            self.client = client
            self.isOwned = isOwned
        }

        deinit {
            // The callback keeps the client until it has shut down; its failing to do so concerns nobody.
            if isOwned { client.shutdown { [client] _ in _ = client } }
        }
    }

    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        let blocks = BodyBlocks()
        do {
            guard let body = request.body else { return try await answer(to: request, nil, reporting: report) }
            return try await exchange(request, body, blocks, reporting: report)
        } catch {
            // What kept the body from being read is told as it is, whatever became of the connection then.
            throw blocks.failure ?? UploadError.mapping(error, of: request.url)
        }
    }

    /// Reads the body in one task while another hands it to the connection; the response ends both.
    private func exchange(
        _ request: UploadRequest, _ layout: FormLayout, _ blocks: BodyBlocks,
        reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        try await withThrowingTaskGroup(of: UploadResponse?.self) { group in
            defer { group.cancelAll() }
            group.addTask {
                await BodySource(layout, into: blocks).run()
                return nil
            }
            group.addTask {
                // Whoever waits for a place for the next block is let go when the response has come.
                defer { blocks.close() }
                let loops = connections.client.eventLoopGroup
                let end = BodyEnd()
                let chunks = BodyChunks(blocks: blocks, loops: loops, end: end, report: report)
                let length = layout.contentLength.map { HTTPClientRequest.Body.Length.known($0) } ?? .unknown
                let body = HTTPClientRequest.Body.stream(chunks, length: length)
                let response: UploadResponse
                do {
                    response = try await answer(to: request, body, reporting: report)
                } catch {
                    // The last chunk may have got through before whatever this is.
                    if let whole = end.take() { report(.sent(whole)) }
                    throw error
                }
                // A server that knows the length may answer the last chunk before anyone has asked for another.
                if response.status.kind == .successful, let whole = end.take() { report(.sent(whole)) }
                return response
            }
            while let result = try await group.next() {
                if let result { return result }
            }
            throw CancellationError()
        }
    }

    private func answer(
        to request: UploadRequest, _ body: HTTPClientRequest.Body?, reporting report: @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        var outgoing = HTTPClientRequest(url: request.url.absoluteString)
        outgoing.method = HTTPMethod(rawValue: request.method.rawValue)
        for field in request.headerFields { outgoing.headers.add(name: field.name.rawName, value: field.value) }
        outgoing.body = body
        let response = try await connections.client.execute(outgoing, deadline: .distantFuture)
        var received = 0
        report(.received(bytes: received))
        var body = Data()
        for try await bytes in response.body {
            received += bytes.readableBytes
            guard received <= request.maximumResponseBytes else {
                throw UploadError.responseTooLarge(from: request.url, limit: request.maximumResponseBytes)
            }
            body.append(contentsOf: bytes.readableBytesView)
            report(.received(bytes: received))
        }
        return UploadResponse(response, body: body)
    }
}

extension UploadResponse {
    fileprivate init(_ response: HTTPClientResponse, body: Data) {
        var fields = HTTPFields()
        for (name, value) in response.headers {
            if let name = HTTPField.Name(name) { fields.append(HTTPField(name: name, value: value)) }
        }
        let status = HTTPResponse.Status(
            code: min(Int(response.status.code), 999), reasonPhrase: response.status.reasonPhrase)
        self.init(status: status, headerFields: fields, body: body)
    }
}
#endif
