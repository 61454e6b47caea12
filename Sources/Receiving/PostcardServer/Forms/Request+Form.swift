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
    /// Nothing is read ahead, and only the current piece is in memory. A client that waits for `100 Continue` gets it
    /// with the first part that is requested, if the application runs on
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``. The loop throws `FormProblem` if the form is
    /// malformed or exceeds a limit. With ``ProblemMiddleware`` a handler can let that error through, and it becomes
    /// the response.
    ///
    /// - Parameters:
    ///   - limits: The limits of the form and its parts.
    ///   - rules: Which fields and files the form may have. Defaults to `nil`: any.
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
