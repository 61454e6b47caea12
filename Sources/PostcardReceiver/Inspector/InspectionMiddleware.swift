import HTTPTypes
import Hummingbird
import PostcardFoundation
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
        let recorder = RequestRecorder(for: inspector)
        let received = Date()
        let start = ContinuousClock.now
        var observed = request
        let body = ObservedBody(request.body, recorder: recorder)
        observed.body = RequestBody(asyncSequence: body)
        connection?.report.observer = recorder
        // The response may be left unread for long.
        defer { connection?.report.observer = nil }
        func keep(_ outcome: RecordedRequest.Outcome, keepsBody: Bool) {
            // An append may begin in the middle of a secret.
            let notes = recorder.notes(keepsBody: keepsBody && request.method != .patch)
            let kept = RecordedRequest(
                request, on: connection, scheme: scheme, received: received, duration: start.duration(to: .now),
                outcome: outcome, notes: notes)
            inspector.keep(kept)
        }
        do {
            let response = try await next(observed, context)
            keep(
                .answered(status: response.status.code, upload: connection?.report.upload),
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
                    outcome: .refused(problem), notes: .none))
            throw problem
        }
    }

    /// Whether the client sends the rest of the body in any case, and no more than would be recorded.
    private func isShort(_ request: Request) -> Bool {
        guard request.headers[.expect] == nil, let length = request.headers[.contentLength] else { return false }
        return Int(length).map { $0 <= inspector.options.maximumEndBytes } ?? false
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

extension UploadProblem {
    /// Whether the problem is about the form, and not about the client or its connection.
    fileprivate var isOfTheForm: Bool { [400, 404, 405, 415, 422].contains(status.code) }
}

/// A request's body that passes its bytes to a recorder, and whose rest can be read after its reader.
struct ObservedBody: AsyncSequence, Sendable {
    /// The body can be read once, so all readers share one iterator.
    ///
    /// Unchecked: one task handles a request. It first reads the body to receive the form, and then to record the rest.
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

    /// Reads the rest after a refusal, as far as it would be recorded: most refused bodies are short and have arrived
    /// already, and a whole body is easier to explain.
    func readRest() async {
        let iterator = makeAsyncIterator()
        // A body that breaks off is recorded as far as it arrived.
        while recorder.hasRoom, let chunk = try? await iterator.next() { _ = chunk }
    }
}
