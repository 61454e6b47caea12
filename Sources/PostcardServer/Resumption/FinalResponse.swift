import HTTPTypes
import Hummingbird

/// The response to a complete upload, kept for a client that missed it.
public struct FinalResponse: Sendable, Hashable, Codable {
    private struct Field: Hashable, Codable {
        let name: String
        let value: String
    }

    private let status: Int
    private let fields: [Field]
    /// The body; `nil` if it is the record, which is read from the store.
    private let body: String?
    /// The length of the upload in bytes.
    public let length: Int64
    /// The record that the form became; `nil` if it was refused.
    public let record: UploadID?

    private init(status: HTTPResponse.Status, fields: HTTPFields, body: String?, length: Int64, record: UploadID?) {
        self.status = status.code
        self.fields = fields.map { Field(name: $0.name.rawName, value: $0.value) }
        self.body = body
        self.length = length
        self.record = record
    }

    /// Reads a response that a store has kept.
    ///
    /// - Throws: `DecodingError`, also if the values are not those of a final response.
    public init(from decoder: any Decoder) throws {
        let values = try decoder.container(keyedBy: CodingKeys.self)
        status = try values.decode(Int.self, forKey: .status)
        fields = try values.decode([Field].self, forKey: .fields)
        body = try values.decodeIfPresent(String.self, forKey: .body)
        length = try values.decode(Int64.self, forKey: .length)
        record = try values.decodeIfPresent(UploadID.self, forKey: .record)
        guard (200...599).contains(status) else {
            throw DecodingError.dataCorruptedError(
                forKey: .status, in: values, debugDescription: "\(status) is no status of a final response.")
        }
        guard length >= 0 else {
            throw DecodingError.dataCorruptedError(
                forKey: .length, in: values, debugDescription: "A length is not negative.")
        }
    }

    /// The response to a form that became a record.
    init(_ response: Response, showing record: UploadID, length: Int64) {
        self.init(status: response.status, fields: response.headers, body: nil, length: length, record: record)
    }

    /// The response to a form that was refused with no way to continue.
    init(_ problem: UploadProblem, length: Int64) {
        self.init(
            status: problem.status, fields: problem.response.headers, body: String(buffer: problem.body),
            length: length, record: nil)
    }

    /// The same response again.
    ///
    /// - Parameter recordBody: Makes the body that shows a record.
    func response(recordBody: (UploadID) async throws -> ResponseBody) async rethrows -> Response {
        var content = ResponseBody()
        if let body {
            content = ResponseBody(byteBuffer: ByteBuffer(string: body))
        } else if let record {
            content = try await recordBody(record)
        }
        let headers = HTTPFields(
            fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
        return Response(status: HTTPResponse.Status(code: status), headers: headers, body: content)
    }
}
