import HTTPTypes
import Hummingbird
import PostcardServer

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps the requests that bring something, or come where forms are posted, whatever becomes of them.
///
/// It stands before everything that may refuse a request.
struct InspectionMiddleware<Context: RequestContext>: RouterMiddleware {
    let window: RequestWindow
    let uploadPath: String
    /// `http` or `https`, as curl is to use it.
    let scheme: String

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        try await UploadReport.observing { report in
            guard isToBeKept(request) else { return try await keepingStrangers(request, report, context, next) }
            return try await keeping(request, report, context, next)
        }
    }

    private func keeping(
        _ request: Request, _ report: UploadReport, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let capture = RequestCapture(for: window)
        let received = Date()
        let start = ContinuousClock.now
        var observed = request
        let body = ObservedBody(request.body, capture: capture)
        observed.body = RequestBody(asyncSequence: body)
        func keep(_ outcome: KeptRequest.Outcome, keepsBody: Bool) {
            // A piece of a form does not say whether it begins within a secret.
            let notes = capture.notes(keepsBody: keepsBody && request.method != .patch)
            let kept = KeptRequest(
                request, scheme: scheme, received: received, duration: start.duration(to: .now), outcome: outcome,
                notes: notes)
            window.keep(kept)
        }
        do {
            let response = try await FormObservation.$current.withValue(capture) { try await next(observed, context) }
            keep(
                .answered(status: response.status.code, upload: report.upload),
                keepsBody: response.status.kind != .successful)
            return response
        } catch let problem as UploadProblem {
            if isShort(request), problem.isOfTheForm { await body.readRest() }
            keep(.refused(problem), keepsBody: true)
            throw problem
        } catch {
            keep(.unanswered, keepsBody: true)
            throw error
        }
    }

    /// Keeps of the requests that ask for something only those that were not let in. What a deleted upload held is
    /// forgotten.
    private func keepingStrangers(
        _ request: Request, _ report: UploadReport, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            let response = try await next(request, context)
            if case .deleted(let id) = report.outcome { window.forget(id) }
            return response
        } catch let problem as UploadProblem where [.unauthorized, .misdirectedRequest].contains(problem.status) {
            window.keep(
                KeptRequest(
                    request, scheme: scheme, received: Date(), duration: .zero, outcome: .refused(problem),
                    notes: .none))
            throw problem
        }
    }

    /// Whether the rest of a body comes by itself, and is no more than would be kept.
    private func isShort(_ request: Request) -> Bool {
        guard request.headers[.expect] == nil, let length = request.headers[.contentLength] else { return false }
        return Int(length).map { $0 <= window.options.maximumEndBytes } ?? false
    }

    /// A form that was posted to a wrong path is worth a look too.
    private func isToBeKept(_ request: Request) -> Bool {
        switch request.method {
        case .post, .put, .patch: true
        // Where records are listed too, or the page lies, these are other requests.
        case .get,
            .head where [UploadRecord.readingPath, "/"].contains(uploadPath):
            false
        default: request.uri.path == uploadPath
        }
    }
}

extension UploadProblem {
    /// Whether it is about what was sent, and not about who sent it, when, or how slowly.
    fileprivate var isOfTheForm: Bool { [400, 404, 405, 415, 422].contains(status.code) }
}
