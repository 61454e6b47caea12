import HTTPTypes
public import Hummingbird
package import PostcardFoundation

/// Turns errors into `application/problem+json`: those of the router, such as the 404 of an unknown path, and those
/// that a handler which reads a form lets through.
///
/// Add it before the routes. The routes of ``Hummingbird/Router/addUploads(to:options:stored:)`` do not need it.
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
            throw error.status == .notFound ? UploadProblem.pathNotFound : UploadProblem(error)
        }
    }
}

extension UploadProblem {
    /// An error of the router or of a handler, with a code made of its status.
    init(_ error: HTTPError) {
        let reason = error.status.reasonPhrase
        self.init(
            status: error.status, code: reason.lowercased().replacing(" ", with: "-"), detail: error.body ?? reason)
    }
}

extension UploadProblem: HTTPResponseError {
    public func response(from request: Request, context: some RequestContext) throws -> Response {
        // A response to HEAD has no body. The client would read one as the next response.
        request.method == .head ? response.createHeadResponse() : response
    }

    /// The head of the response.
    var head: HTTPResponse {
        var fields = headers
        fields[.contentLength] = String(body.readableBytes)
        return HTTPResponse(status: status, headerFields: fields)
    }

    /// The response: `application/problem+json`, and the header fields that its status needs.
    var response: Response {
        var response = Response(
            status: status, headers: headers, body: ResponseBody(byteBuffer: body))
        if status == .methodNotAllowed { response.headers[.allow] = allowedMethods.joined(separator: ", ") }
        response.headers[.wwwAuthenticate] = challenge
        response.headers[.retryAfter] = retryAfterSeconds.map(String.init)
        return response
    }

    var body: ByteBuffer {
        // Strings and integers always encode. A response without a body is better than none.
        var body = ByteBuffer(bytes: (try? JSONEncoder.forResponses.encode(self)) ?? Data())
        body.writeString("\n")
        return body
    }

    private var headers: HTTPFields {
        var headers: HTTPFields = [
            .contentType: "application/problem+json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        ]
        for field in resumption.fields { headers[field.name] = field.value }
        return headers
    }
}

extension JSONEncoder {
    /// Encodes responses: without line breaks, keys sorted, times in ISO 8601.
    package static var forResponses: JSONEncoder {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        encoder.dateEncodingStrategy = .iso8601
        return encoder
    }
}
