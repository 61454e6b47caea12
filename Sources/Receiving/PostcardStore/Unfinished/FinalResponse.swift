package import HTTPTypes
package import PostcardFoundation

/// The response to a complete upload, kept for a client that missed it.
public struct FinalResponse: Sendable, Hashable, Codable {
    private struct Field: Hashable, Codable {
        let name: String
        let value: String
    }

    package let status: Int
    private let fields: [Field]
    /// The body; `nil` if it is the record, which is read from the store, or if there is none.
    package let body: Data?
    /// The length of the upload in bytes.
    public let length: Int64
    /// The record that the form became; `nil` if it was refused.
    public let record: UploadID?

    package init(status: HTTPResponse.Status, fields: HTTPFields, body: Data?, length: Int64, record: UploadID?) {
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
        body = try values.decodeIfPresent(Data.self, forKey: .body)
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

    package var headerFields: HTTPFields {
        HTTPFields(
            fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
    }
}
