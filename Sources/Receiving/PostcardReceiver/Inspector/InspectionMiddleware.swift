import HTTPTypes
import Hummingbird
import PostcardFoundation
import PostcardReception
import PostcardServer

/// Records requests that have a body or use the path of forms, whether or not they are refused. It runs before all
/// middleware that may refuse a request.
struct InspectionMiddleware<Context: RequestContext>: RouterMiddleware {
    let inspector: RequestInspector
    let uploadPath: String
    /// The scheme for curl: `http` or `https`.
    let scheme: String

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let connection = UploadConnection.current
        guard isRecorded(request) else { return try await recordingRefusals(request, connection, context, next) }
        return try await keeping(request, connection, context, next)
    }

    private func keeping(
        _ request: Request, _ connection: UploadConnection?, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let recorder = RequestRecorder(request, for: inspector)
        let received = Date()
        let start = ContinuousClock.now
        var observed = request
        observed.body = RequestBody(asyncSequence: ObservedBody(recorder: recorder))
        connection?.report.observer = recorder
        // The response may be left unread for long.
        defer { connection?.report.observer = nil }
        func keep(_ outcome: RecordedRequest.Outcome, _ notes: RequestRecorder.Notes) {
            let kept = RecordedRequest(
                request, on: connection, scheme: scheme, received: received, duration: start.duration(to: .now),
                outcome: outcome, notes: notes)
            inspector.keep(kept)
        }
        do {
            let response = try await next(observed, context)
            keep(
                .answered(status: response.status.code, upload: connection?.report.upload),
                recorder.finish(keepsBody: response.status.kind != .successful))
            return response
        } catch let problem as UploadProblem {
            // If a route refused the form, it has asked already.
            _ = await recorder.refusal(for: problem)
            keep(.refused(problem), recorder.finish(refusedFor: problem, keepsBody: true))
            throw problem
        } catch {
            keep(.unanswered, recorder.finish(keepsBody: true))
            throw error
        }
    }

    /// Handles other requests: records those that were refused access.
    private func recordingRefusals(
        _ request: Request, _ connection: UploadConnection?, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let problem as UploadProblem where [.unauthorized, .misdirectedRequest].contains(problem.status) {
            inspector.keep(
                RecordedRequest(
                    request, on: connection, scheme: scheme, received: Date(), duration: .zero,
                    outcome: .refused(problem), notes: .none(refusedFor: problem)))
            throw problem
        }
    }

    /// Whether the path of forms is also that of the records or of the page, which are read with GET and HEAD.
    private var isReadingPath: Bool { [UploadRecord.readingPath, "/"].contains(uploadPath) }

    /// Forms that were posted to a wrong path are recorded too.
    private func isRecorded(_ request: Request) -> Bool {
        switch request.method {
        case .post, .put, .patch: true
        case .get where isReadingPath, .head where isReadingPath: false
        default: request.uri.path == uploadPath
        }
    }
}
