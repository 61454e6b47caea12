import HTTPTypes
public import Hummingbird
public import PostcardForm

extension Request {
    /// The parts of the request's form, as they come in.
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
    /// Nothing is read ahead, and nothing is held but the piece at hand. A client that waits for `100 Continue` is
    /// asked for its body by the first part that is asked for, where the application runs on
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. The loop throws ``FormProblem`` where the form is broken
    /// or goes over a limit; with ``ProblemMiddleware`` a handler can let it pass, and it becomes the answer.
    ///
    /// - Parameters:
    ///   - limits: How much of everything to take.
    ///   - rules: Which fields and files may come; whatever is well formed unless given.
    /// - Throws: ``UploadProblem`` where the head alone shows that this is no form, or one that is too large.
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

    /// Judges the request by its head alone, and gives its Content-Type.
    func formContentType(limits: FormLimits) throws(UploadProblem) -> String {
        // A length that no number holds is the decoder's to have judged: it is more than any limit.
        if let length = headers[.contentLength],
            Int64(length).map({ $0 > limits.maximumBodyBytes }) ?? true
        {
            throw .bodyTooLarge(announced: length, limits: limits)
        }
        guard headers[values: .contentType].count <= 1 else { throw .repeatedContentType }
        if let encoding = headers[.contentEncoding], encoding.lowercased() != "identity" { throw .encodedContent }
        return headers[.contentType] ?? ""
    }

    /// Waits for the first bytes of the body, because a request of which only the head is there is to cost nothing but
    /// its connection.
    ///
    /// - Returns: `nil` where the body is empty.
    func beginning(of body: inout RequestBody.AsyncIterator) async throws -> ByteBuffer? {
        if expectsContinue { try await UploadConnection.current?.askForBody() }
        while let bytes = try await body.next(isolation: #isolation) {
            if bytes.readableBytes > 0 { return bytes }
        }
        return nil
    }

    /// Whether the client waits to be asked for its body (RFC 9110 §10.1.1).
    var expectsContinue: Bool { headers[.expect]?.lowercased() == "100-continue" }
}

/// The body of a request that is read as a form: it asks a client that waits for that, and says as an
/// ``UploadProblem`` why it broke off.
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

        /// - Throws: ``UploadProblem`` where the client stops, is too slow, or sends what is no HTTP.
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
