#if !Store && !Server && !S3 && !CommandLine
#error("PostcardReception needs the trait Store of this package: .package(url: …, traits: [\"Store\"])")
#endif

public import HTTPTypes
public import Logging
import NIOCore
public import PostcardForm
import PostcardFoundation
public import PostcardStore

/// Receives forms in any server. The server passes a request's head and body, and gets a stored record or a problem.
///
/// ```swift
/// let receiver = FormReceiver(store: try LocalUploadStore(directory: "received"))
/// // In the handler of your server, for all requests below /uploads:
/// let response = await receiver.respond(to: head, body, from: address)
/// ```
///
/// Limits, rules, digests, keys, screening, resumption and problems are those of `PostcardServer`'s routes. Files are
/// written while they arrive. The next bytes of a body are read after the previous bytes are written, so the memory for
/// a form does not depend on its size. A response is completely in memory, and counts for
/// ``UploadOptions/maximumHeldResponseBytes`` until it is released.
///
/// The server itself must provide TLS, limit connections and the size of heads, and read the unread bytes of a body
/// after a refusal. Use one receiver for all requests, because it counts what each client uses. The receiver ends slow
/// requests. Unlike the routes for Hummingbird, it never ends a request of another client to make room for a new one.
public struct FormReceiver: Sendable {
    /// The limits on how slow a client may be.
    public struct Timeouts: Sendable, Hashable {
        /// How long a client may send nothing while the receiver waits for bytes. Defaults to 30 seconds.
        public var idle: Duration = .seconds(30)
        /// The minimum rate at which a body must arrive, in bytes per second; 0 means no minimum. Defaults to 500.
        public var minimumBytesPerSecond = 500
        /// How long a body may arrive more slowly than the minimum rate. Defaults to 20 seconds.
        public var gracePeriod: Duration = .seconds(20)

        /// Makes timeouts with the default values.
        public init() {}
    }

    /// A response whose body is completely in memory.
    public struct Response: Sendable {
        /// The status and the header fields, including `Content-Length`.
        public let head: HTTPResponse
        /// The body of the response; empty for HEAD.
        public let body: [UInt8]
        /// Whether the body of the request was read to its end. If not, close an HTTP/1.1 connection after the
        /// response: the next bytes on the connection are not a request.
        public fileprivate(set) var isRequestRead = true
        /// Reserves the memory of the body until the response is released.
        private let hold: ShareAccount.Hold?
    }

    private typealias Work<Value> = @Sendable (IncomingRequest, ClientConnection) async throws -> Value
    /// Responds to a request for the unfinished upload with an identifier.
    private typealias Resumption = @Sendable (String, IncomingRequest, ClientConnection) async throws -> FormResponse

    /// The limits on how slow a client may be.
    public var timeouts = Timeouts()

    /// The tokens that requests need. Defaults to `nil`: requests need no token.
    public var tokens: BearerTokens?

    /// The maximum number of body bytes that are read and dropped after a refusal, so that a client that is still
    /// sending can read the refusal. Defaults to 0. A body is not read if its announced length is greater, or if its
    /// client waits for `100 Continue`.
    public var maximumDiscardedBytes: Int64 = 0

    private let options: UploadOptions
    private let shares: ShareAccount
    private let logger: Logger
    private let receive: Work<CommittedUpload>
    private let post: Work<FormResponse>
    /// Responds to requests for unfinished uploads; `nil` if uploads cannot be resumed.
    private let resume: Resumption?
    private let offer: Work<FormResponse>?

    /// Makes a receiver.
    ///
    /// - Parameters:
    ///   - store: The store that keeps the uploads.
    ///   - options: The limits, rules and paths. Unfinished uploads are kept if the store is a `ResumableUploadStore`.
    ///   - logger: Logs errors of the store, and refusals of clients that exceed their share.
    public init(
        store: some UploadStore, options: UploadOptions = UploadOptions(),
        logger: Logger = Logger(label: "postcard.reception")
    ) {
        let meter = UploadMeter()
        let shares = ShareAccount(ShareLimits(options), meter: meter, logger: logger)
        let reception = Reception(store: store, options: options, meter: meter, shares: shares, limit: nil)
        self.options = options
        self.shares = shares
        self.logger = logger
        receive = { try await reception.receive($0, on: $1, observer: nil, logger: logger).upload }
        guard let resumption = options.resumption, let uploads = store as? any ResumableUploadStore else {
            post = { try await reception.response(to: $0, on: $1, logger: logger) }
            resume = nil
            offer = nil
            return
        }
        (post, resume, offer) = Self.resuming(uploads, reception, resumption, logger)
    }

    private static func resuming(
        _ uploads: some ResumableUploadStore, _ reception: Reception<some UploadStore>,
        _ options: UnfinishedUploadOptions,
        _ logger: Logger
    ) -> (post: Work<FormResponse>, resume: Resumption, offer: Work<FormResponse>) {
        let resumption = ResumableReception(uploads: uploads, reception: reception, options: options)
        return (
            { try await resumption.response(to: $0, on: $1, logger: logger) },
            { id, request, connection in
                switch request.head.method {
                case .head: try await resumption.progress(request, id: id, on: connection, logger: logger)
                case .get: try await resumption.repeatResponse(request, id: id, on: connection, logger: logger)
                case .patch: try await resumption.append(request, id: id, on: connection, logger: logger)
                case .delete: try await resumption.cancel(request, id: id, logger: logger)
                default: throw UploadProblem.methodNotAllowed(request.head.method.rawValue, allowed: resumptionMethods)
                }
            },
            { request, _ in try resumption.offer(to: request) }
        )
    }

    private static let resumptionMethods = ["DELETE", "GET", "HEAD", "PATCH"]

    /// Receives the form of a request, and stores it.
    ///
    /// ```swift
    /// do {
    ///     let upload = try await receiver.receive(head, body, from: address)
    ///     print("stored \(upload.record.files.count) files as \(upload.record.id)")
    /// } catch let problem as UploadProblem {
    ///     print(problem.status, problem.message)
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - head: The head of the request. With ``UploadOptions/acceptsAnyBody``, the end of its path names the file.
    ///   - body: The bytes of the body in pieces of any size, which are read once as the form needs them, and not after
    ///     a refusal. If the client is too slow, the task that reads the body is cancelled.
    ///   - address: The client's address as a text, such as `192.0.2.1`, for the limits of each client. Defaults to
    ///     `nil`: all clients share their limits.
    ///   - inform: Sends an interim response, such as 100 and 104. Defaults to `nil`: no interim responses.
    /// - Throws: ``UploadProblem`` if the form is refused, `CancellationError`, and errors of the body. After an error,
    ///   nothing is stored.
    public func receive<Body: AsyncSequence & Sendable>(
        _ head: HTTPRequest, _ body: Body, from address: String? = nil,
        inform: (@Sendable (HTTPResponse) async throws -> Void)? = nil
    ) async throws -> CommittedUpload where Body.Element: FormChunk {
        try await reading(head, body, from: address, inform: inform) { request, connection in
            try admit(head)
            return try await receive(request, connection)
        }
    }

    /// Responds to a request below ``UploadOptions/path``: receives a form, or resumes an unfinished one.
    ///
    /// | request | response |
    /// | --- | --- |
    /// | `POST /uploads` | 201 and the record |
    /// | `POST`, `PUT /uploads/NAME` | the same for a file, with ``UploadOptions/acceptsAnyBody`` |
    /// | `OPTIONS /uploads` | the limits of uploads that can be resumed |
    /// | `HEAD`, `GET`, `PATCH`, `DELETE /uploads/resumable/ID` | an unfinished upload |
    ///
    /// - Parameters: The same as those of ``receive(_:_:from:inform:)``.
    /// - Returns: The response, which may be a refusal (RFC 9457). The response of a cancelled task need not be sent.
    public func respond<Body: AsyncSequence & Sendable>(
        to head: HTTPRequest, _ body: Body, from address: String? = nil,
        inform: (@Sendable (HTTPResponse) async throws -> Void)? = nil
    ) async -> Response where Body.Element: FormChunk {
        await reading(head, body, from: address, inform: inform) { request, connection in
            var response: Response
            do {
                try admit(head)
                response = try await self.response(try await route(request, connection), to: head, connection)
            } catch {
                response = Response(problem(for: error, connection), to: head)
            }
            let body = connection.body
            if head.hasBody, !body.isRead {
                // A client that waits for `100 Continue` sends nothing until it gets that response.
                if !(head.expectsContinue && connection.informs && body.byteCount == 0) {
                    await body.discard(atMost: maximumDiscardedBytes)
                }
                response.isRequestRead = body.isRead
            }
            return response
        }
    }

    /// Reads the body of a response into memory. If a stored record cannot be read, only its identifier is sent.
    private func response(
        _ response: FormResponse, to head: HTTPRequest, _ connection: ClientConnection
    ) async throws -> Response {
        switch response.body {
        case .bytes(let bytes, let hold):
            return Response(response.head, bytes, hold, to: head)
        case .record(let id, let file, let openFile, let priority):
            defer { withExtendedLifetime(openFile) {} }
            do {
                let hold = try shares.take(Int(clamping: file.size), of: .responseBytes, on: connection)
                return Response(response.head, try await file.read(at: 0, count: Int(file.size)), hold, to: head)
            } catch {
                guard priority == .immediate else { throw error as? UploadProblem ?? UploadProblem.unreadable }
                logger.error("Could not read a record", metadata: ["error": "\(error)"])
                return Response(response.head, FormResponse.Body.identifier(id), nil, to: head)
            }
        }
    }

    /// Checks parts of the head that the server may not have checked.
    private func admit(_ head: HTTPRequest) throws(UploadProblem) {
        try tokens?.check(head.headerFields[.authorization])
        guard let length = head.headerFields[.contentLength] else { return }
        guard !length.isEmpty, length.utf8.allSatisfy(\.isDigit) else { throw .malformedRequest }
    }

    private func problem(for error: any Error, _ connection: ClientConnection) -> UploadProblem {
        if let problem = UploadProblem(anyOf: error) { return problem }
        if connection.body.isBroken { return .endedEarly(at: connection.body.byteCount) }
        logger.error("Could not receive a form", metadata: ["error": "\(error)"])
        return .store(error)
    }

    private func route(_ request: IncomingRequest, _ connection: ClientConnection) async throws -> FormResponse {
        guard let rest = Self.segments(of: request.head.path ?? "", below: options.path) else {
            throw UploadProblem.pathNotFound
        }
        if let resume, rest.count == 2, rest[0].elementsEqual(ResumptionPath.name.utf8) {
            return try await resume(String(Substring(rest[1])), request, connection)
        }
        guard rest.isEmpty || (rest.count == 1 && options.acceptsAnyBody) else { throw UploadProblem.pathNotFound }
        switch request.head.method {
        case .post: return try await post(request, connection)
        case .put where options.acceptsAnyBody: return try await post(request, connection)
        case .options where rest.isEmpty:
            if let offer { return try await offer(request, connection) }
        default: break
        }
        let allowed =
            (offer == nil || !rest.isEmpty ? [] : ["OPTIONS"]) + ["POST"] + (options.acceptsAnyBody ? ["PUT"] : [])
        throw UploadProblem.methodNotAllowed(request.head.method.rawValue, allowed: allowed)
    }

    /// The segments of a path after those of a base path; `nil` if the path is not below the base path.
    private static func segments(of path: String, below base: String) -> [Substring.UTF8View]? {
        let slash = UInt8(ascii: "/")
        let path = path.utf8.prefix { $0 != UInt8(ascii: "?") && $0 != UInt8(ascii: "#") }.split(separator: slash)
        let base = base.utf8.split(separator: slash)
        guard path.count >= base.count, zip(path, base).allSatisfy({ $0.elementsEqual($1) }) else { return nil }
        return Array(path.dropFirst(base.count))
    }

    /// Reads a body while a closure needs it, and stops reading when the closure returns.
    @concurrent private func reading<Body: AsyncSequence & Sendable, Value: Sendable, Failure: Error>(
        _ head: HTTPRequest, _ body: Body, from address: String?,
        inform: (@Sendable (HTTPResponse) async throws -> Void)?,
        _ work: @Sendable (IncomingRequest, ClientConnection) async throws(Failure) -> Value
    ) async throws(Failure) -> Value where Body.Element: FormChunk {
        let handover = BodyHandover(announced: head.announcedLength, limits: timeouts)
        let connection = ClientConnection(from: address, handover, inform: inform)
        let result = await withTaskGroup(of: Void.self, returning: Result<Value, Failure>.self) { group in
            group.addTask { await handover.pump(body) }
            group.addTask { await handover.watch() }
            defer { group.cancelAll() }
            let result: Result<Value, Failure>
            do throws(Failure) {
                result = .success(try await work(IncomingRequest(head, handover), connection))
            } catch {
                result = .failure(error)
            }
            await connection.settle()
            return result
        }
        return try result.get()
    }
}

extension HTTPRequest {
    /// The Content-Length of the head. A number that exceeds `Int64` counts as the largest.
    fileprivate var announcedLength: Int64? { headerFields[.contentLength].map { Int64($0) ?? .max } }

    /// Whether a body follows the head (RFC 9112 §6.3).
    fileprivate var hasBody: Bool { announcedLength ?? 0 > 0 || headerFields.contains(.transferEncoding) }
}

extension FormReceiver.Response {
    fileprivate init(_ problem: UploadProblem, to head: HTTPRequest) {
        self.init(problem.head, problem.body, nil, to: head)
    }

    fileprivate init(_ response: HTTPResponse, _ bytes: ByteBuffer, _ hold: ShareAccount.Hold?, to head: HTTPRequest) {
        var response = response
        if response.status != .noContent { response.headerFields[.contentLength] = String(bytes.readableBytes) }
        self.head = response
        self.hold = hold
        body = head.method == .head ? [] : Array(bytes.readableBytesView)
    }
}

extension FormResponse {
    fileprivate var head: HTTPResponse { HTTPResponse(status: status, headerFields: headers) }
}
