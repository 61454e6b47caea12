import AsyncHTTPClient
import Crypto
package import HTTPTypes
import Logging
package import NIOCore
package import NIOHTTP1
import PostcardForm
import PostcardFoundation
import PostcardWire
import Tracing

package struct S3Request: Sendable {
    package var method: HTTPMethod
    /// The complete key; empty for a request to the bucket itself.
    package var key: String
    package var query: [(name: String, value: String)]
    package var headers: [(name: String, value: String)]
    package var body: ByteBuffer
    /// The SHA-256 of the body; `nil` if it must be computed.
    var payloadHash: String?
    /// The time of the signature. The store refuses the request 15 minutes after this time, so a delayed request
    /// cannot take effect later. Defaults to the time at which the request is sent.
    var signed: Date?
    /// The maximum time for the request and its retries. Defaults to the timeouts of the bucket.
    var limit: Duration?
    /// Whether the body of a response with the status 200 may be an error. It may always be one for a POST.
    var mayHideError = false

    package init(
        method: HTTPMethod, key: String = "", query: [(name: String, value: String)] = [],
        headers: [(name: String, value: String)] = [], body: ByteBuffer = ByteBuffer()
    ) {
        self.method = method
        self.key = key
        self.query = query
        self.headers = headers
        self.body = body
    }
}

package struct S3Response: Sendable {
    package let status: HTTPResponse.Status
    package let headers: HTTPHeaders
    package let body: ByteBuffer

    package init(status: HTTPResponse.Status, headers: HTTPHeaders, body: ByteBuffer) {
        self.status = status
        self.headers = HTTPHeaders(headers.map { ($0.name, $0.value.streamSafe) })
        self.body = body
    }
}

/// Sends signed requests to a bucket, and retries those that may succeed later.
final class S3Connection: Sendable {
    let bucket: S3Bucket
    private let region: String
    private let scheme: String
    private let host: String
    private let basePath: String
    private let client: HTTPClient
    private let credentials: CurrentCredentials
    private let logger: Logger

    /// The maximum size of a response, in bytes: enough for a record whose characters are all written as `\u0001`.
    private static let maximumBodyBytes = 64 << 20

    init(_ bucket: S3Bucket, logger: Logger) throws {
        self.bucket = bucket
        self.logger = logger
        // The environment is only read if the bucket lacks a setting.
        lazy var environment: [String: String] =
            if case .automatic(let environment) = bucket.credentials.kind {
                environment
            } else { ProcessInfo.processInfo.environment }
        let region =
            bucket.region ?? CredentialChain(environment: environment, fetch: { _ in [] }).region ?? "us-east-1"
        self.region = region
        let endpoint = bucket.endpoint ?? environment["AWS_ENDPOINT_URL_S3"] ?? environment["AWS_ENDPOINT_URL"]
        if let endpoint {
            guard let url = URL(string: endpoint), let scheme = url.scheme, let host = url.host(),
                ["http", "https"].contains(scheme), url.hasValidPort
            else {
                throw S3Error(
                    .unusableAddress, "\(endpoint) is not the address of an object store.",
                    advice: "Write it as https://HOST:PORT.")
            }
            self.scheme = scheme
            self.host = Port.authority(host, url.portOrDefault, of: scheme)
            let path = url.path.hasSuffix("/") ? String(url.path.dropLast()) : url.path
            basePath = "\(path)/\(bucket.name)"
        } else {
            scheme = "https"
            // A bucket name with dots does not match the certificate.
            let hasDots = bucket.name.contains(".")
            host = (hasDots ? "" : "\(bucket.name).") + "s3.\(region).amazonaws.com"
            basePath = hasDots ? "/\(bucket.name)" : ""
        }
        var configuration = HTTPClient.Configuration()
        configuration.redirectConfiguration = .disallow
        configuration.timeout.connect = .seconds(5)
        configuration.connectionPool.concurrentHTTP1ConnectionsPerHostSoftLimit = 64
        configuration.connectionPool.idleTimeout = .seconds(20)
        // The requests get spans in this module, without the keys of objects.
        configuration.tracing.tracer = nil
        let client = HTTPClient(
            eventLoopGroupProvider: .shared(HTTPClient.defaultEventLoopGroup), configuration: configuration)
        self.client = client
        credentials = CurrentCredentials(bucket.credentials) { request in
            try await Self.fetch(request, with: client)
        }
    }

    deinit {
        client.shutdown { _ in }
    }

    var endpoint: String { "\(scheme)://\(host)" }

    // MARK: - Requests

    /// Sends a request, and repeats it until it succeeds, is refused for good, or its time is over. Throws ``S3Error``.
    /// If the error is transient, the store may have carried out the request.
    @concurrent
    func response(to request: S3Request) async throws -> S3Response {
        var request = request
        request.payloadHash = request.payloadHash ?? RequestSigner.hash(request.body)
        let surroundings = bucket.surroundings
        var random = surroundings.generator
        let start = surroundings.now()
        let retryTimeout = request.limit.map { min($0, bucket.retryTimeout) } ?? bucket.retryTimeout
        var failures = 0
        var newCredentials: S3Credentials?
        while true {
            let now = bucket.clock()
            let used = if let newCredentials { newCredentials } else { try await credentials.value(now: now) }
            do {
                let left = request.limit.map { max($0 - start.duration(to: surroundings.now()), .milliseconds(1)) }
                return try await attempt(
                    request, with: used, within: min(left ?? bucket.requestTimeout, bucket.requestTimeout))
            } catch let error as S3Error where newCredentials == nil && Self.isOfCredentials(error, request) {
                newCredentials = await credentials.value(insteadOf: used)
                guard newCredentials != nil else { throw error }
                logger.notice("The object store refused the credentials; there are new ones")
            } catch let error as S3Error where error.isTransient {
                failures += 1
                let pause = Duration.growing(after: failures, from: .milliseconds(50), upTo: .seconds(5), by: 3)
                let delay = pause * Double.random(in: 0.5...1.5, using: &random)
                guard start.duration(to: surroundings.now()) + delay < retryTimeout else { throw error }
                logger.debug("Making a request again", metadata: ["error": "\(error)"])
                try await surroundings.sleep(delay)
            }
        }
    }

    /// Whether other credentials may help. A refused HEAD has no error code, so any refusal may concern credentials.
    private static func isOfCredentials(_ error: S3Error, _ request: S3Request) -> Bool {
        error.isOfCredentials || request.method == .HEAD && [400, 401, 403].contains(error.status)
    }

    private func attempt(
        _ request: S3Request, with credentials: S3Credentials, within timeout: Duration
    ) async throws -> S3Response {
        let date = request.signed ?? bucket.clock()
        let response =
            if let exchange = bucket.surroundings.exchange {
                try await exchange(request, date, timeout)
            } else {
                try await send(request, signedAt: date, with: credentials, within: timeout)
            }
        return try checked(response, to: request)
    }

    private func send(
        _ request: S3Request, signedAt date: Date, with credentials: S3Credentials, within timeout: Duration
    ) async throws -> S3Response {
        let signer = RequestSigner(credentials: credentials, region: region)
        var signable = SignableRequest(
            method: request.method.rawValue, host: host, path: "\(basePath)/\(request.key)", query: request.query,
            headers: request.headers)
        if !request.query.isEmpty { signable.query.sort { $0.name < $1.name } }
        signer.sign(&signable, payloadHash: request.payloadHash ?? RequestSigner.emptyHash, at: date)
        let query = signable.query.isEmpty ? "" : "?\(signable.encodedQuery)"
        var outgoing = HTTPClientRequest(url: "\(endpoint)\(signable.encodedPath)\(query)")
        outgoing.method = request.method
        outgoing.headers = HTTPHeaders(signable.headers.map { ($0.name, $0.value) })
        if request.method == .PUT || request.method == .POST { outgoing.body = .bytes(request.body) }
        let span = StoreSpan(
            request.method, to: bucket, at: host, bytes: request.body.readableBytes, adding: &outgoing.headers)
        do {
            // The client's deadline only covers the head of the response, but a body may stall too.
            let response = try await within(timeout, or: HTTPClientError.deadlineExceeded) {
                [client, outgoing] in
                let response = try await client.execute(outgoing, timeout: TimeAmount(timeout))
                let body = try await response.body.collect(upTo: Self.maximumBodyBytes)
                return S3Response(
                    status: HTTPResponse.Status(clamping: response.status.code), headers: response.headers,
                    body: body)
            }
            span.end(status: response.status.code)
            return response
        } catch {
            span.end(error)
            try Task.checkCancellation()
            throw S3Error.unreachable(endpoint, error)
        }
    }

    /// Throws the error that a response describes. A response with the status 200 may be an error too: if completing a
    /// multipart upload takes long, a store sends the status before it knows the outcome.
    private func checked(_ response: S3Response, to request: S3Request) throws -> S3Response {
        let address = bucket.address(of: request.key)
        // The content of an uploaded file may look like an error.
        let canHideError = request.method == .POST || request.mayHideError
        guard response.status.kind != .successful || canHideError else { return response }
        let document = XMLNode.root(of: response.body.readableBytesView)
        if let document, document.name == "Error" {
            throw S3Error.refused(
                document.text(of: "Code") ?? "", document.text(of: "Message") ?? "",
                status: response.status.code < 300 ? 500 : response.status, at: address)
        }
        guard response.status.kind != .successful else {
            guard document != nil else {
                throw S3Error.unexpected("The response for \(address) has no content.", status: response.status)
            }
            return response
        }
        // The response to HEAD has no body with a code.
        let code =
            switch response.status {
            case 403: "AccessDenied"
            case 404: request.key.isEmpty ? "NoSuchBucket" : "NoSuchKey"
            case 412: "PreconditionFailed"
            case 501: "NotImplemented"
            case 503: "ServiceUnavailable"
            default: "HTTP\(response.status)"
            }
        throw S3Error.refused(code, "", status: response.status, at: address)
    }

    // MARK: - For clients

    func signedForm(_ policy: PostPolicy, at date: Date) async throws -> PresignedForm {
        let signer = RequestSigner(credentials: try await credentials.value(now: date), region: region)
        var policy = policy
        policy.expires = signer.end(of: policy.expires)
        let path = SignableRequest.encode(basePath, keeping: UInt8(ascii: "/"))
        let fields = try policy.formFields(signedBy: signer, bucket: bucket.name, at: date)
        return PresignedForm(
            url: try url("\(endpoint)\(path.isEmpty ? "/" : path)"),
            fields: Dictionary(fields, uniquingKeysWith: { first, _ in first }))
    }

    func signedPut(
        _ key: String, headers: [(String, String)], lifetime: Int, at date: Date
    ) async throws -> PresignedForm {
        let signer = RequestSigner(credentials: try await credentials.value(now: date), region: region)
        let lifetime = max(Int(signer.end(of: date.addingTimeInterval(Double(lifetime))).timeIntervalSince(date)), 1)
        var request = SignableRequest(
            method: "PUT", host: host, path: "\(basePath)/\(key)", headers: headers.map { (name: $0.0, value: $0.1) })
        signer.presign(&request, lifetime: lifetime, at: date)
        return PresignedForm(
            putting: try url("\(endpoint)\(request.encodedPath)?\(request.encodedQuery)"),
            headerFields: Dictionary(headers, uniquingKeysWith: { first, _ in first }), key: key)
    }

    private func url(_ text: String) throws -> URL {
        guard let url = URL(string: text) else { throw S3Error.unusableAddress(text, "It is not a URL.") }
        return url
    }

    private static func fetch(_ request: MetadataRequest, with client: HTTPClient) async throws -> [UInt8] {
        guard let url = URL(string: request.url), url.hasValidPort else {
            throw S3Error.unusableCredentials("\(request.url) is not the address of a service.")
        }
        var outgoing = HTTPClientRequest(url: request.url)
        outgoing.method = HTTPMethod(rawValue: request.method)
        outgoing.headers = HTTPHeaders(request.headers.map { ($0.name, $0.value) })
        do {
            // The client's deadline only covers the head of the response, and all requests wait for the credentials.
            return try await within(.seconds(2), or: HTTPClientError.deadlineExceeded) { [outgoing] in
                let response = try await client.execute(outgoing, timeout: .seconds(2))
                guard response.status == .ok else {
                    throw S3Error.unusableCredentials("\(request.url) answered \(response.status.code).")
                }
                return Array(try await response.body.collect(upTo: 1 << 16).readableBytesView)
            }
        } catch let error as S3Error {
            throw error
        } catch {
            throw S3Error.unusableCredentials("\(request.url) does not answer: \(error)")
        }
    }
}

/// The span of a request to the store, in the trace of the request that causes it. Does nothing without a tracer.
struct StoreSpan {
    private let span: any Span

    /// Starts a span, and adds the unsigned header fields by which a store continues the trace.
    init(_ method: HTTPMethod, to bucket: S3Bucket, at host: String, bytes: Int, adding headers: inout HTTPHeaders) {
        let span = startSpan("S3 \(method.rawValue)", ofKind: .client)
        self.span = span
        if span.isRecording {
            span.updateAttributes { attributes in
                attributes["http.request.method"] = method.rawValue
                attributes["http.request.body.size"] = bytes
                attributes["server.address"] = host
                // The key is left out: anyone who knows the key of an unfinished upload can append to it.
                attributes["aws.s3.bucket"] = bucket.name
            }
        }
        InstrumentationSystem.instrument.inject(span.context, into: &headers, using: HeaderInjector())
    }

    func end(status: Int) {
        if span.isRecording { span.attributes["http.response.status_code"] = status }
        if status >= 400 { span.setStatus(SpanStatus(code: .error)) }
        span.end()
    }

    func end(_ error: any Error) {
        span.recordError(error)
        span.setStatus(SpanStatus(code: .error))
        span.end()
    }
}

private struct HeaderInjector: Injector {
    func inject(_ value: String, forKey key: String, into headers: inout HTTPHeaders) {
        headers.replaceOrAdd(name: key, value: value)
    }
}
