import HTTPTypes
import Hummingbird
import PostcardReception
import PostcardServer
import Tracing

/// Makes a span for each request, in the trace that the client's header fields name. Must be the first middleware.
///
/// Unlike Hummingbird's own middleware, this middleware records no query and no secrets of a path. The span includes
/// reads from the store while the response is sent. Without a tracer in the process, the middleware does nothing.
struct TraceMiddleware<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        let instrument = InstrumentationSystem.instrument
        guard !(instrument is NoOpInstrument) else { return try await next(request, context) }
        var trace = ServiceContext.current ?? .topLevel
        instrument.extract(request.headers, into: &trace, using: HTTPFieldExtractor())
        let work = TracedWork(startSpan(request.method.rawValue, context: trace, ofKind: .server))
        let path = request.uri.path
        work.span.updateAttributes { attributes in
            attributes["http.request.method"] = request.method.rawValue
            attributes["url.path"] = Secrets.masked(path: path)
            attributes["client.address"] = UploadConnection.current?.clientAddress.map { "\($0)" }
            attributes["user_agent.original"] = request.headers[.userAgent]
            attributes["http.request.body.size"] = request.headers[.contentLength].flatMap { Int64($0) }
        }
        do {
            var response = try await ServiceContext.$current.withValue(work.span.context) {
                try await next(request, context)
            }
            work.note(response.status, route: context.endpointPath, of: request.method)
            // Only responses to GET read from the store while they are sent.
            if request.method == .get { response.body = work.tracing(response.body) }
            return response
        } catch {
            let status = (error as? any HTTPResponseError)?.status ?? .internalServerError
            work.note(status, route: context.endpointPath, of: request.method)
            if let problem = error as? UploadProblem { work.span.attributes["error.type"] = problem.code.rawValue }
            throw error
        }
    }
}

/// The span of a request in progress. It ends when the request and its response have ended and release this object.
private final class TracedWork: Sendable {
    let span: any Span

    init(_ span: any Span) {
        self.span = span
    }

    deinit {
        span.end()
    }

    func note(_ status: HTTPResponse.Status, route: String?, of method: HTTPRequest.Method) {
        if let route { span.operationName = "\(method.rawValue) \(route)" }
        span.attributes["http.route"] = route
        span.attributes["http.response.status_code"] = status.code
        if status.code >= 500 { span.setStatus(SpanStatus(code: .error)) }
    }

    func tracing(_ body: ResponseBody) -> ResponseBody {
        ResponseBody(contentLength: body.contentLength) { [self] writer in
            try await ServiceContext.$current.withValue(span.context) { try await body.write(writer) }
        }
    }
}

private struct HTTPFieldExtractor: Extractor {
    func extract(key: String, from fields: HTTPFields) -> String? { HTTPField.Name(key).flatMap { fields[$0] } }
}

/// Handles each GET request in its own task, which ends before the response is written. A task keeps the memory of its
/// deepest calls until it ends, and a client may take long to read the response.
struct BriefResponder<Base: HTTPResponder>: HTTPResponder where Base.Context: Sendable {
    let base: Base

    func respond(to request: Request, context: Base.Context) async throws -> Response {
        guard request.method == .get else { return try await base.respond(to: request, context: context) }
        async let response = base.respond(to: request, context: context)
        return try await response
    }
}
