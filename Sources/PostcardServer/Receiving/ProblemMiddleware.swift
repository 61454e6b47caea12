public import Hummingbird

/// Answers with `application/problem+json` where a router would answer an error with an empty or another body, such
/// as the 404 of a path that is not there, and where a handler that reads a form lets its error pass.
///
/// Add it before the routes. The routes of ``Hummingbird/Router/addUploads(to:options:)`` do not need it.
public struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    /// Makes the middleware; it has no settings.
    public init() {}

    public func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            if let problem = UploadProblem(anyOf: error) { throw problem }
            guard let error = error as? HTTPError else { throw error }
            let status = error.status
            guard status != .notFound else { throw UploadProblem.pathNotFound }
            throw UploadProblem(
                status: status, code: status.reasonPhrase.lowercased().replacing(" ", with: "-"),
                detail: error.body ?? status.reasonPhrase)
        }
    }
}
