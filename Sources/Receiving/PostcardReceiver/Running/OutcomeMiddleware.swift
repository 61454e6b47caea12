import Hummingbird
import PostcardReception
import PostcardServer

/// Reports what became of each form as soon as it is known, also if the response to it fails.
struct OutcomeMiddleware<Context: RequestContext>: RouterMiddleware {
    let observe: @Sendable (UploadReport.Outcome) -> Void

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        UploadConnection.current?.report.onOutcome(observe)
        return try await next(request, context)
    }
}
