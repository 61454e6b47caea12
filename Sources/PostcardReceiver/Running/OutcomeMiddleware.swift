import Hummingbird
import PostcardServer

/// Reports what became of each form, also if the response to it failed.
struct OutcomeMiddleware<Context: RequestContext>: RouterMiddleware {
    let observe: @Sendable (UploadReport.Outcome) -> Void

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        defer { if let outcome = UploadConnection.current?.report.outcome { observe(outcome) } }
        return try await next(request, context)
    }
}
