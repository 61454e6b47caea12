package import HTTPTypes
package import NIOCore
import PostcardFoundation
package import PostcardStore

/// The response to a request at the upload routes.
package struct FormResponse: Sendable {
    package var status: HTTPResponse.Status
    package var headers: HTTPFields
    package var body: Body

    package enum Body: Sendable {
        /// Bytes in memory, with the reservation of their memory.
        case bytes(ByteBuffer, ShareAccount.Hold?)
        /// The stored bytes of a record, with the reservation of an open file.
        case record(UploadID, any StoredFile, ShareAccount.Hold, Priority)

        /// The body with only the identifier of a stored form, if the record cannot be shown.
        static func identifier(_ id: UploadID) -> ByteBuffer { ByteBuffer(string: #"{"id":"\#(id)"}"#) }
    }

    /// How a response with a stored file behaves if the memory for responses is used up.
    package enum Priority: Sendable {
        /// The response waits until memory is free.
        case ordinary
        /// The response is sent in the smallest pieces, which are not counted: its client has sent a form, and should
        /// not wait for clients that read slowly. A small record in memory is not counted either.
        case immediate
    }

    package init(
        status: HTTPResponse.Status, headers: HTTPFields = [:], body: Body = .bytes(ByteBuffer(), nil)
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The bytes of the body in memory; `nil` if the body is a stored file.
    var bytes: Data? {
        if case .bytes(let bytes, _) = body { Data(bytes.readableBytesView) } else { nil }
    }
}

extension HTTPFields {
    /// Makes the header fields of a response with content. Browsers must not guess another type.
    package init(content type: String, cacheControl: String? = nil) {
        self = [.contentType: type, .xContentTypeOptions: "nosniff"]
        self[.cacheControl] = cacheControl
    }
}

extension FinalResponse {
    /// Makes the response to a form that became a record. `isOwn` says whether the response is the app's own. Only then
    /// is the body stored: any other body can be made again from the record.
    init(_ response: FormResponse, isOwn: Bool, showing record: UploadID, length: Int64) {
        self.init(
            status: response.status, fields: response.headers, body: isOwn ? response.bytes : nil, length: length,
            record: record)
    }

    /// Makes the response to a form that was refused for good.
    init(_ problem: UploadProblem, length: Int64) {
        self.init(
            status: problem.status, fields: problem.head.headerFields, body: Data(problem.body.readableBytesView),
            length: length, record: nil)
    }

    /// Makes a response from this stored response, for a client that asks again. `recordBody` makes the body from the
    /// record if no body is stored.
    func response(recordBody: (UploadID) async throws -> FormResponse.Body) async rethrows -> FormResponse {
        var content = FormResponse.Body.bytes(ByteBuffer(), nil)
        if let body {
            content = .bytes(ByteBuffer(bytes: body), nil)
        } else if let record {
            content = try await recordBody(record)
        }
        return FormResponse(status: HTTPResponse.Status(code: status), headers: headerFields, body: content)
    }
}
