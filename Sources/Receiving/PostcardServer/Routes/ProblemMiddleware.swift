import HTTPTypes
public import Hummingbird
import PostcardFoundation
package import PostcardReception

/// Turns errors into `application/problem+json` responses: errors of the router, such as the 404 of an unknown path,
/// and errors that a form's handler does not catch.
///
/// Add the middleware before the routes. The routes of `Router.addUploads(to:options:stored:)` do not need it.
public struct ProblemMiddleware<Context: RequestContext>: RouterMiddleware {
    /// Makes the middleware.
    public init() {}

    /// Handles a request, and throws known errors of the handler as problems.
    public func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch {
            if let problem = UploadProblem(anyOf: error) { throw problem }
            guard let error = error as? HTTPError else { throw error }
            throw error.status == .notFound ? UploadProblem.pathNotFound : UploadProblem(error)
        }
    }
}

extension UploadProblem {
    /// Makes the problem for an error of the router or of a handler. The code is derived from the status.
    init(_ error: HTTPError) {
        let reason = error.status.reasonPhrase
        self.init(
            status: error.status, code: UploadProblem.Code(rawValue: reason.lowercased().replacing(" ", with: "-")),
            message: error.body ?? reason)
    }
}

extension UploadProblem: HTTPResponseError {
    public func response(from request: Request, context: some RequestContext) throws -> Response {
        // A response to HEAD has no body. The client would mistake a body for the next response.
        request.method == .head ? response.createHeadResponse() : response
    }

    /// The complete response: `application/problem+json`, with the header fields that its status needs.
    package var response: Response {
        Response(status: head.status, headers: head.headerFields, body: ResponseBody(byteBuffer: body))
    }
}
