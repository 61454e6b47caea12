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
    let inspector: RequestInspector
    let uploadPath: String
    /// `http` or `https`, as curl is to use it.
    let scheme: String

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        try await UploadReport.observing { report in
            guard isRecorded(request) else { return try await recordingRefusals(request, report, context, next) }
            return try await keeping(request, report, context, next)
        }
    }

    private func keeping(
        _ request: Request, _ report: UploadReport, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let recorder = RequestRecorder(for: inspector)
        let received = Date()
        let start = ContinuousClock.now
        var observed = request
        let body = ObservedBody(request.body, recorder: recorder)
        observed.body = RequestBody(asyncSequence: body)
        func keep(_ outcome: RecordedRequest.Outcome, keepsBody: Bool) {
            // A piece of a form does not say whether it begins within a secret.
            let notes = recorder.notes(keepsBody: keepsBody && request.method != .patch)
            let kept = RecordedRequest(
                request, scheme: scheme, received: received, duration: start.duration(to: .now), outcome: outcome,
                notes: notes)
            inspector.keep(kept)
        }
        do {
            let response = try await FormObservation.$current.withValue(recorder) { try await next(observed, context) }
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
    private func recordingRefusals(
        _ request: Request, _ report: UploadReport, _ context: Context,
        _ next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            let response = try await next(request, context)
            if case .deleted(let id) = report.outcome { inspector.forget(id) }
            return response
        } catch let problem as UploadProblem where [.unauthorized, .misdirectedRequest].contains(problem.status) {
            inspector.keep(
                RecordedRequest(
                    request, scheme: scheme, received: Date(), duration: .zero, outcome: .refused(problem),
                    notes: .none))
            throw problem
        }
    }

    /// Whether the rest of a body comes by itself, and is no more than would be kept.
    private func isShort(_ request: Request) -> Bool {
        guard request.headers[.expect] == nil, let length = request.headers[.contentLength] else { return false }
        return Int(length).map { $0 <= inspector.options.maximumEndBytes } ?? false
    }

    /// A form that was posted to a wrong path is worth a look too.
    private func isRecorded(_ request: Request) -> Bool {
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

/// A request's body that tells a recorder what goes by, and of which the rest can be read when its reader is done.
struct ObservedBody: AsyncSequence, Sendable {
    /// The body can be read once. Whoever reads on gets the same iterator.
    ///
    /// Unchecked: a request is answered by one task, and it reads the body first where the form is received, and then,
    /// when that has returned, where the request is kept.
    fileprivate final class Reader: @unchecked Sendable {
        private var iterator: RequestBody.AsyncIterator?
        private let body: RequestBody

        init(_ body: RequestBody) {
            self.body = body
        }

        @concurrent
        func next() async throws -> ByteBuffer? {
            var reading = iterator ?? body.makeAsyncIterator()
            defer { iterator = reading }
            return try await reading.next()
        }
    }

    fileprivate let reader: Reader
    private let recorder: RequestRecorder

    init(_ body: RequestBody, recorder: RequestRecorder) {
        reader = Reader(body)
        self.recorder = recorder
    }

    struct AsyncIterator: AsyncIteratorProtocol {
        fileprivate let reader: Reader
        private let recorder: RequestRecorder

        fileprivate init(reader: Reader, recorder: RequestRecorder) {
            self.reader = reader
            self.recorder = recorder
        }

        func next() async throws -> ByteBuffer? {
            guard let chunk = try await reader.next() else {
                recorder.bodyEnded()
                return nil
            }
            recorder.took(chunk)
            return chunk
        }
    }

    func makeAsyncIterator() -> AsyncIterator {
        AsyncIterator(reader: reader, recorder: recorder)
    }

    /// Reads on after a refusal, as far as it would be kept: most refused bodies are short and here already, and what
    /// is wrong with a body is best said of all of it.
    func readRest() async {
        let iterator = makeAsyncIterator()
        // A body that breaks off is kept as far as it came.
        while recorder.hasRoom, let chunk = try? await iterator.next() { _ = chunk }
    }
}
