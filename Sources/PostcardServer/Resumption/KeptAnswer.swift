#if Server
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
    let body: String
    /// The bytes of the upload.
    let length: Int64

    private init(status: Int, fields: HTTPFields, body: ByteBuffer, length: Int64) {
        self.status = status
        self.fields = fields.map { Field(name: $0.name.rawName, value: $0.value) }
        self.body = String(buffer: body)
        self.length = length
    }

    /// The answer to a form that was received.
    init(_ response: Response, length: Int64) async throws {
        let content = CollectedBody()
        try await response.body.write(content)
        self.init(status: response.status.code, fields: response.headers, body: content.bytes, length: length)
    }

    /// The answer to a form that was refused for good.
    init(_ problem: UploadProblem, length: Int64) {
        let response = problem.response
        self.init(status: problem.status.code, fields: response.headers, body: problem.body, length: length)
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

    var response: Response {
        Response(
            status: HTTPResponse.Status(code: status), headers: headers,
            body: ResponseBody(byteBuffer: ByteBuffer(string: body)))
    }
}

/// Keeps a body instead of sending it.
private final class CollectedBody: ResponseBodyWriter {
    private(set) var bytes = ByteBuffer()

    func write(_ buffer: ByteBuffer) async throws { bytes.writeImmutableBuffer(buffer) }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}
}
#endif
