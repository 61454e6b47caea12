import HTTPTypes
import Hummingbird

/// The last answer to an upload, kept for a sender who missed it.
struct KeptAnswer: Sendable, Codable {
    struct Field: Codable {
        let name: String
        let value: String
    }

    let status: Int
    let fields: [Field]
    /// The body; `nil` if it is the record, which is read from the store.
    let body: String?
    /// The bytes of the upload.
    let length: Int64

    private init(status: Int, fields: HTTPFields, body: String?, length: Int64) {
        self.status = status
        self.fields = fields.map { Field(name: $0.name.rawName, value: $0.value) }
        self.body = body
        self.length = length
    }

    /// The answer to a form that was received.
    init(_ response: Response, length: Int64) {
        self.init(status: response.status.code, fields: response.headers, body: nil, length: length)
    }

    /// The answer to a form that was refused for good.
    init(_ problem: UploadProblem, length: Int64) {
        let response = problem.response
        self.init(
            status: problem.status.code, fields: response.headers, body: String(buffer: problem.body), length: length)
    }

    /// Where the record lies, where the form became one.
    var location: String? { headers[.location] }

    /// The record, where the form became one.
    var record: UploadID? {
        location?.split(separator: "/").last.flatMap { UploadID(String($0)) }
    }

    private var headers: HTTPFields {
        HTTPFields(
            fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
    }

    /// The answer once more.
    ///
    /// - Parameter stored: Makes the body that shows a record.
    func response(showing stored: (UploadID) async throws -> ResponseBody) async rethrows -> Response {
        let content: ResponseBody
        if let body {
            content = ResponseBody(byteBuffer: ByteBuffer(string: body))
        } else if let record {
            content = try await stored(record)
        } else {
            content = ResponseBody()
        }
        return Response(status: HTTPResponse.Status(code: status), headers: headers, body: content)
    }
}
