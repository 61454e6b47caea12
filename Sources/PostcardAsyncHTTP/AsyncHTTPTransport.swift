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
///
/// A request that asks for a 100 (Continue) waits for it before its body goes out, a second at the most.
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
        let expectations = Expectations()
        configuration.addHandlers(telling: expectations)
        connections = Connections(HTTPClient(configuration: configuration), expectations)
    }

    /// Makes a transport that uses an HTTP client which the program has.
    ///
    /// - Parameter client: The client, which the program shuts down when nobody uses it any more. One that
    ///   follows redirects never sends a form again, but answers a 303 with what it finds at the other place,
    ///   and one that retries to establish connections says only after its connect timeout that nobody listens.
    ///   Both are AsyncHTTPClient's defaults. It cannot see a 100 (Continue): a body that waits for one goes out
    ///   after a second, unless the form is refused before.
    public init(client: HTTPClient) {
        connections = Connections(client, nil)
    }

    /// The HTTP client, shut down when nobody holds it any more if it is the transport's own.
    private final class Connections: Sendable {
        let client: HTTPClient
        /// What the connections' handlers tell of, where they are the transport's own.
        let expectations: Expectations?

        init(_ client: HTTPClient, _ expectations: Expectations?) {
            self.client = client
            self.expectations = expectations
        }

        deinit {
            // The callback keeps the client until it has shut down; its failing to do so concerns nobody.
            if expectations != nil { client.shutdown { [client] _ in _ = client } }
        }
    }

    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        guard let body = request.body else {
            do {
                return try await answer(to: HTTPClientRequest(request), of: request, reporting: report)
            } catch {
                throw UploadError.mapping(error, of: request.url)
            }
        }
        let blocks = BodyBlocks()
        let expectation = request.expectsContinue ? Expectation() : nil
        do {
            return try await exchange(request, body, blocks, expectation, reporting: report)
        } catch {
            // What kept the body from being read is told as it is, whatever became of the connection then.
            throw blocks.failure ?? UploadError.mapping(error, of: request.url)
        }
    }

    /// Reads the body in one task while another hands it to the connection; the response ends both.
    private func exchange(
        _ request: UploadRequest, _ layout: FormLayout, _ blocks: BodyBlocks, _ expectation: Expectation?,
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
                var outgoing = HTTPClientRequest(request)
                let mark = expectation.flatMap { connections.expectations?.add($0, marking: &outgoing.headers) }
                defer {
                    if let mark { connections.expectations?.remove(mark) }
                    expectation?.end()
                }
                let loops = connections.client.eventLoopGroup
                let end = BodyEnd()
                let chunks = BodyChunks(
                    blocks: blocks, loops: loops, end: end, expectation: expectation, report: report)
                let length = layout.contentLength.map { HTTPClientRequest.Body.Length.known($0) } ?? .unknown
                outgoing.body = .stream(chunks, length: length)
                let response: UploadResponse
                do {
                    response = try await answer(to: outgoing, of: request, reporting: report)
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
        to outgoing: HTTPClientRequest, of request: UploadRequest,
        reporting report: @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
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

extension UploadRequest {
    fileprivate var expectsContinue: Bool {
        headerFields[.expect]?.lowercased() == "100-continue"
    }
}

extension HTTPClientRequest {
    /// A request without its body.
    fileprivate init(_ request: UploadRequest) {
        self.init(url: request.url.absoluteString)
        method = HTTPMethod(rawValue: request.method.rawValue)
        for field in request.headerFields { headers.add(name: field.name.rawName, value: field.value) }
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
