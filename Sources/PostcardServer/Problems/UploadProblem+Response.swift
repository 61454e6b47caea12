import HTTPTypes
public import Hummingbird

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadProblem: HTTPResponseError {
    public func response(from request: Request, context: some RequestContext) throws -> Response {
        // An answer to HEAD has no body; one that is sent is taken for the next answer.
        request.method == .head ? response.createHeadResponse() : response
    }

    /// The answer's head.
    var head: HTTPResponse {
        var fields = headers
        fields[.contentLength] = String(body.readableBytes)
        return HTTPResponse(status: status, headerFields: fields)
    }

    /// The answer: `application/problem+json` and the header fields that the status asks for.
    var response: Response {
        var response = Response(
            status: status, headers: headers, body: ResponseBody(byteBuffer: body))
        if status == .methodNotAllowed { response.headers[.allow] = allowedMethods.joined(separator: ", ") }
        response.headers[.wwwAuthenticate] = challenge
        response.headers[.retryAfter] = retryAfterSeconds.map(String.init)
        return response
    }

    var body: ByteBuffer {
        // Strings and integers always encode; an answer without a body is better than none.
        var body = ByteBuffer(bytes: (try? JSONEncoder.forAnswers.encode(self)) ?? Data())
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
