import HTTPTypes
public import Hummingbird
public import PostcardForm
package import PostcardReception

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
    /// Only the current piece is read and kept in memory. A client that waits for `100 Continue` gets it when the first
    /// part is requested, if the application runs on ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. The loop
    /// throws `FormProblem` if the form is malformed or exceeds a limit. With ``ProblemMiddleware``, a handler need not
    /// catch that error, which then becomes the response.
    ///
    /// - Parameters:
    ///   - limits: The limits of the form and its parts.
    ///   - rules: The fields and files that the form may have. Defaults to `nil`: all fields and files are allowed.
    /// - Throws: `UploadProblem` if the head shows that the body is not a form, or is too large.
    public func form(
        limits: FormLimits = FormLimits(), rules: FormRules? = nil
    ) throws(UploadProblem) -> FormParts<FormBody> {
        let contentType = try head.formContentType(limits: limits)
        do {
            return try FormParts(
                of: FormBody(self, on: .current), contentType: contentType, limits: limits, rules: rules)
        } catch {
            throw UploadProblem(error)
        }
    }
}

/// The body of a request that is read as a form. A client that waits for `100 Continue` gets it when reading begins.
/// Reading throws an `UploadProblem` if the body ends early.
public struct FormBody: AsyncSequence, Sendable {
    private let body: RequestBody
    /// The connection of a client that waits for `100 Continue`; `nil` after it was sent.
    private let waiting: UploadConnection?

    init(_ request: Request, on connection: UploadConnection?) {
        body = request.body
        waiting = request.head.expectsContinue ? connection : nil
    }

    public func makeAsyncIterator() -> Iterator {
        Iterator(body: body.makeAsyncIterator(), waiting: waiting)
    }

    /// An iterator over the chunks of the body.
    public struct Iterator: AsyncIteratorProtocol {
        fileprivate var body: RequestBody.AsyncIterator
        fileprivate var waiting: UploadConnection?
        private var bytes: Int64 = 0

        fileprivate init(body: RequestBody.AsyncIterator, waiting: UploadConnection?) {
            self.body = body
            self.waiting = waiting
        }

        /// Returns the next chunk; `nil` at the end of the body.
        ///
        /// - Throws: `UploadProblem` if the client stops, is too slow, or sends malformed HTTP.
        public mutating func next() async throws -> ByteBuffer? {
            if let connection = waiting.take() { try await connection.askForBody() }
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
