package import HTTPTypes
public import NIOCore
public import PostcardFoundation

/// An upload whose bytes arrive in several requests, or whose response is kept. In each process, only the request that
/// holds ``lock`` may change the upload.
public protocol UnfinishedUpload: Sendable {
    /// The type that appends the bytes of a request.
    associatedtype Appender: UploadAppender

    /// The identifier by which clients resume the upload.
    var id: ResumptionID { get }
    /// The known facts about the form.
    var form: UnfinishedForm { get }
    /// The time at which the upload is discarded, finished or not.
    var expires: Date { get }
    /// The lock that lets one request of this process at a time change the upload.
    var lock: UploadLock { get }
    /// The progress known to this process, including bytes that a power cut would lose.
    var progress: UnfinishedUploadProgress { get }

    /// Makes all bytes durable and returns the progress, including bytes that other processes have appended. The client
    /// does not send these bytes again, so the offset must never become smaller.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func durableProgress() async throws -> UnfinishedUploadProgress

    /// Stores the length of the form, which a request has declared.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func setLength(_ length: Int64) async throws

    /// Makes an appender for bytes after those received so far.
    ///
    /// - Parameter isRevertible: Whether ``UploadAppender/revert()`` may be called, if a digest of the bytes does not
    ///   match. Other processes must then not count the bytes before ``UploadAppender/finish()``.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func makeAppender(isRevertible: Bool) async throws -> Appender

    /// Opens the bytes received so far for reading.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func openContent() async throws -> any StoredFile

    /// Replaces the bytes with the response. The options limit how many responses are kept.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func finish(with response: FinalResponse, options: UnfinishedUploadOptions) async throws

    /// Reads the response that ``finish(with:options:)`` stored.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func response() async throws -> FinalResponse

    /// Removes the upload.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func discard() async throws
}

/// The progress of an unfinished upload.
public enum UnfinishedUploadProgress: Sendable, Hashable {
    /// The form is incomplete, or could not be committed yet.
    case unfinished(offset: Int64)
    /// The form became the record, or was refused for good. `record` is `nil` if it was refused.
    case finished(length: Int64, record: UploadID?)
    /// The upload was discarded, has expired, or lost bytes.
    case gone
}

/// Appends bytes to an unfinished upload.
public protocol UploadAppender {
    /// The length of the upload once all appended bytes are written.
    var offset: Int64 { get }

    /// Appends bytes. Returns when the store can accept more, which may be before the bytes are written.
    ///
    /// - Throws: ``UploadStoreError``, with the code ``UploadStoreError/Code/overtaken`` if another process has
    ///   appended other bytes at the same offset.
    mutating func append(_ bytes: ByteBuffer) async throws

    /// Waits until all appended bytes are written. More bytes may then be appended. After a failure, this function is
    /// still called, and throws again. More bytes may then be appended only after ``revert()``.
    ///
    /// - Throws: The same errors as ``append(_:)``.
    mutating func finish() async throws

    /// Removes all bytes of this appender, because they do not match their digest. No client was told that these bytes
    /// are stored, and ``finish()`` was not called.
    mutating func revert() async throws
}

/// The response to a complete upload, for a client that missed it.
public struct FinalResponse: Sendable, Hashable, Codable {
    private struct Field: Hashable, Codable {
        let name: String
        let value: String
    }

    package let status: Int
    private let fields: [Field]
    /// The body of the response; `nil` if there is none, or if the body is the record, which is read from the store.
    package let body: Data?
    /// The length of the upload in bytes.
    public let length: Int64
    /// The record that the form became; `nil` if the form was refused.
    public let record: UploadID?

    package init(status: HTTPResponse.Status, fields: HTTPFields, body: Data?, length: Int64, record: UploadID?) {
        self.status = status.code
        self.fields = fields.map { Field(name: $0.name.rawName, value: $0.value) }
        self.body = body
        self.length = length
        self.record = record
    }

    /// Decodes a response that a store has kept.
    ///
    /// - Throws: `DecodingError`, also if the values are invalid for a final response.
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

    /// Encodes the response as JSON, with its body in base64.
    package func encoded() throws -> Data {
        let encoder = JSONEncoder()
        encoder.outputFormatting = .withoutEscapingSlashes
        return try encoder.encode(self)
    }

    package var headerFields: HTTPFields {
        HTTPFields(
            fields.compactMap { field in
                HTTPField.Name(field.name).map { HTTPField(name: $0, value: field.value) }
            })
    }
}
