import HTTPTypes
public import Hummingbird
public import PostcardForm

extension Request {
    /// The parts of the request's form, as they arrive.
    ///
    /// ```swift
    /// router.post("pets") { request, context in
    ///     for try await part in try request.form() {
    ///         for try await piece in part { try await bucket.append(piece) }
    ///     }
    ///     return HTTPResponse.Status.created
    /// }
    /// ```
    ///
    /// Nothing is read ahead, and only the current piece is in memory. A client that waits for `100 Continue` gets it
    /// with the first part that is requested, if the application runs on
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. The loop throws ``FormProblem`` if the form is
    /// malformed or exceeds a limit. With ``ProblemMiddleware`` a handler can let that error through, and it becomes
    /// the response.
    ///
    /// - Parameters:
    ///   - limits: The limits of the form and its parts.
    ///   - rules: Which fields and files the form may have. Defaults to `nil`: any.
    /// - Throws: ``UploadProblem`` if the head shows that the body is not a form, or is too large.
    public func form(
        limits: FormLimits = FormLimits(), rules: FormRules? = nil
    ) throws(UploadProblem) -> FormParts<FormBody> {
        let contentType = try formContentType(limits: limits)
        do {
            return try FormParts(of: FormBody(self), contentType: contentType, limits: limits, rules: rules)
        } catch {
            throw UploadProblem(error)
        }
    }

    /// Checks the head of the request and returns its Content-Type.
    func formContentType(limits: FormLimits) throws(UploadProblem) -> String {
        // The HTTP decoder has checked that it is a number. One that does not fit exceeds any limit.
        if let length = headers[.contentLength],
            Int64(length).map({ $0 > limits.maximumBodyBytes }) ?? true
        {
            throw .bodyTooLarge(announced: length, limits: limits)
        }
        guard headers[values: .contentType].count <= 1 else { throw .repeatedContentType }
        if let encoding = headers[.contentEncoding], encoding.lowercased() != "identity" { throw .encodedContent }
        return headers[.contentType] ?? ""
    }

    /// Waits for the first bytes of the body, so that a request without any costs nothing but its connection.
    ///
    /// - Returns: `nil` if the body is empty.
    func beginning(of body: inout RequestBody.AsyncIterator) async throws -> ByteBuffer? {
        if expectsContinue { try await UploadConnection.current?.askForBody() }
        while let bytes = try await body.next(isolation: #isolation) {
            if bytes.readableBytes > 0 { return bytes }
        }
        return nil
    }

    /// Whether the client waits for `100 Continue` (RFC 9110 §10.1.1).
    var expectsContinue: Bool { headers[.expect]?.lowercased() == "100-continue" }
}

/// The body of a request that is read as a form. It sends `100 Continue` to a client that waits for it, and throws an
/// ``UploadProblem`` if the body breaks off.
public struct FormBody: AsyncSequence, Sendable {
    private let body: RequestBody
    private let expectsContinue: Bool

    init(_ request: Request) {
        body = request.body
        expectsContinue = request.expectsContinue
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(body: body.makeAsyncIterator(), isAskedFor: !expectsContinue)
    }

    /// Gives the body's chunks.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var body: RequestBody.AsyncIterator
        fileprivate var isAskedFor: Bool
        private var bytes: Int64 = 0

        fileprivate init(body: RequestBody.AsyncIterator, isAskedFor: Bool) {
            self.body = body
            self.isAskedFor = isAskedFor
        }

        /// - Throws: ``UploadProblem`` if the client stops, is too slow, or sends malformed HTTP.
        public mutating func next() async throws -> ByteBuffer? {
            if !isAskedFor {
                isAskedFor = true
                try await UploadConnection.current?.askForBody()
            }
            do {
                let chunk = try await body.next(isolation: #isolation)
                bytes += Int64(chunk?.readableBytes ?? 0)
                return chunk
            } catch let interruption as RequestInterruption {
                throw interruption.problem(at: bytes) ?? interruption as any Error
            }
        }
    }
}

extension ByteBuffer: FormChunk {
    public init(keptBytes: ArraySlice<UInt8>) {
        self.init(bytes: keptBytes)
    }

    public func withBytes<Result, Failure: Error>(
        _ body: (RawSpan) throws(Failure) -> Result
    ) throws(Failure) -> Result {
        try body(readableBytesSpan)
    }

    public func piece(_ range: Range<Int>) -> ByteBuffer {
        getSlice(at: readerIndex + range.lowerBound, length: range.count) ?? ByteBuffer()
    }
}
