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
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. The loop throws `FormProblem` if the form is
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
            return try FormParts(
                of: FormBody(self, on: .current), contentType: contentType, limits: limits, rules: rules)
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
        if let encoding = headers[.contentEncoding], !encoding.utf8.isEqualIgnoringCase("identity") {
            throw .encodedContent
        }
        return headers[.contentType] ?? ""
    }

    /// Waits for the first bytes of the body, so that a request without any costs nothing but its connection.
    ///
    /// - Returns: `nil` if the body is empty.
    func beginning(
        of body: inout RequestBody.AsyncIterator, on connection: UploadConnection?
    ) async throws -> ByteBuffer? {
        if expectsContinue { try await connection?.askForBody() }
        while let bytes = try await body.next(isolation: #isolation) {
            if bytes.readableBytes > 0 { return bytes }
        }
        return nil
    }

    /// Whether the client waits for `100 Continue` (RFC 9110 §10.1.1).
    var expectsContinue: Bool { headers[.expect]?.utf8.isEqualIgnoringCase("100-continue") == true }
}
