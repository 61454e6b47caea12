package import HTTPTypes
package import NIOCore
import PostcardFoundation
package import PostcardStore

/// The response to a request at the upload routes, before the server sends it.
package struct FormResponse: Sendable {
    package var status: HTTPResponse.Status
    package var headers: HTTPFields
    package var body: Body

    /// The body of a response.
    package enum Body: Sendable {
        /// Bytes in memory, and their share of the memory.
        case bytes(ByteBuffer, ShareAccount.Hold?)
        /// The stored bytes of a record, and their share of the open files.
        case record(UploadID, any StoredFile, ShareAccount.Hold, Priority)

        /// What a client is told of its stored form if the record cannot be shown: the identifier alone.
        static func identifier(_ id: UploadID) -> ByteBuffer { ByteBuffer(string: #"{"id":"\#(id)"}"#) }
    }

    /// How a server treats a stored file if there is no room for its bytes in memory.
    package enum Priority: Sendable {
        /// The response waits until there is room.
        case ordinary
        /// The response is sent in the smallest pieces, which do not count. Its client has sent a form, and should not
        /// wait for clients that do not read. A small record in memory does not count either.
        case immediate
    }

    package init(
        status: HTTPResponse.Status, headers: HTTPFields = [:], body: Body = .bytes(ByteBuffer(), nil)
    ) {
        self.status = status
        self.headers = headers
        self.body = body
    }

    /// The bytes of a body in memory; `nil` if the body is a stored file.
    var bytes: Data? {
        if case .bytes(let bytes, _) = body { Data(bytes.readableBytesView) } else { nil }
    }
}

extension FinalResponse {
    /// The response to a form that became a record.
    ///
    /// - Parameter isAnswer: Whether the response is the app's own answer, which does not show the record.
    init(_ response: FormResponse, isAnswer: Bool, showing record: UploadID, length: Int64) {
        self.init(
            status: response.status, fields: response.headers, body: isAnswer ? response.bytes : nil, length: length,
            record: record)
    }

    /// The response to a form that was refused finally, so that it cannot be continued.
    init(_ problem: UploadProblem, length: Int64) {
        self.init(
            status: problem.status, fields: problem.head.headerFields, body: Data(problem.body.readableBytesView),
            length: length, record: nil)
    }

    /// The stored response as one that can be sent again, to a later request.
    ///
    /// - Parameter recordBody: Makes the body that shows a record.
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
