package import HTTPTypes
package import NIOCore
package import PostcardFoundation

extension UploadProblem {
    /// The head of the response: `application/problem+json`, and the header fields that its status needs.
    package var head: HTTPResponse {
        var fields: HTTPFields = [
            .contentType: "application/problem+json", .cacheControl: "no-store", .xContentTypeOptions: "nosniff",
        ]
        for field in resumption.fields { fields[field.name] = field.value }
        if status == .methodNotAllowed { fields[.allow] = allowedMethods.joined(separator: ", ") }
        fields[.wwwAuthenticate] = challenge
        fields[.retryAfter] = retryAfterSeconds.map(String.init)
        return HTTPResponse(status: status, headerFields: fields)
    }

    /// The body of the response.
    package var body: ByteBuffer {
        // Strings and integers always encode. A response without a body is better than none.
        var body = ByteBuffer(bytes: (try? JSONEncoder.forResponses.encode(self)) ?? Data())
        body.writeString("\n")
        return body
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
