import HTTPTypes
public import Hummingbird

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A store that also keeps uploads that arrive in several requests (draft-ietf-httpbis-resumable-upload).
///
/// The upload routes offer resumption for every store that conforms. ``LocalUploadStore`` does; a store that wraps
/// another one forwards these three functions.
///
/// An unfinished upload holds the bytes of a form that has not arrived whole. When it has, the routes read it, commit
/// it as any other form through ``UploadStore/beginUpload(under:announcedBytes:)``, and replace the bytes by the
/// response. A store that deletes a record also discards the unfinished uploads whose response shows it.
public protocol ResumableUploadStore: UploadStore {
    associatedtype Unfinished: UnfinishedUpload

    /// Creates an upload without bytes. When it returns, the upload survives a restart.
    ///
    /// - Parameters:
    ///   - id: The name that ``unfinishedUpload(_:)`` finds it by. It is a secret of the client.
    ///   - form: What is known about the form.
    ///   - expires: When the upload is discarded, finished or not.
    /// - Throws: ``UploadStoreError`` if there is no room on the disk, or the store fails.
    func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> Unfinished

    /// All uploads that are not finished. It is called once, before the first upload is created, because uploads from
    /// before a restart take up room too.
    func unfinishedUploads() async throws -> [Unfinished]

    /// The upload with the identifier; `nil` if there is none or it has expired. All callers share one object.
    func unfinishedUpload(_ id: ResumptionID) async throws -> Unfinished?
}

/// An upload whose bytes arrive in several requests, or whose response is kept. Only the request that holds ``lock``
/// changes it.
public protocol UnfinishedUpload: Sendable {
    associatedtype Appender: UploadAppender

    var id: ResumptionID { get }
    /// The facts about the form that are known so far.
    var form: UnfinishedForm { get }
    /// When the upload is discarded, finished or not.
    var expires: Date { get }
    /// Lets one request at a time change the upload.
    var lock: UploadLock { get }
    /// How far the upload is, including bytes that would not survive a power cut.
    var progress: UnfinishedUploadProgress { get }

    /// Makes all bytes durable and returns the progress. The client does not send these bytes again.
    func durableProgress() async throws -> UnfinishedUploadProgress

    /// Stores the length of the form, once a request has said it.
    func setLength(_ length: Int64) async throws

    /// Appends to the bytes received so far.
    func makeAppender() async throws -> Appender

    /// Opens the bytes received so far for reading.
    func openContent() async throws -> any StoredFile

    /// Replaces the bytes by the response. The options limit how many responses are kept.
    func finish(with response: FinalResponse, options: ResumptionOptions) async throws

    /// The response that ``finish(with:options:)`` stored.
    func response() async throws -> FinalResponse

    /// Removes the upload.
    func discard() async throws
}

/// Appends bytes to an unfinished upload.
public protocol UploadAppender {
    /// The length of the upload, once all bytes that were passed are written.
    var offset: Int64 { get }

    /// Appends bytes. Returns when the store can accept more, which may be before they are written.
    mutating func append(_ bytes: ByteBuffer) async throws

    /// Waits until all bytes that were passed are written. It is called after a failure too.
    mutating func finish() async throws
}

/// How far an unfinished upload is.
public enum UnfinishedUploadProgress: Sendable, Hashable {
    /// Bytes are missing, or the form could not be committed yet.
    case unfinished(offset: Int64)
    /// The form was committed as the record, or refused with no way to continue.
    case finished(length: Int64, record: UploadID?)
    /// The upload was discarded, has expired, or lost bytes.
    case gone
}

/// What is known about a form before all of it has arrived.
public struct UnfinishedForm: Sendable, Hashable {
    /// The form's Content-Type, with its boundary.
    public let contentType: String
    /// The key under which the form becomes a record.
    public let key: UploadKey
    /// The length of the body in bytes, once a request has said it.
    public var length: Int64?

    /// Describes a form.
    public init(contentType: String, key: UploadKey, length: Int64?) {
        self.contentType = contentType
        self.key = key
        self.length = length
    }
}

/// The identifier of an unfinished upload: 32 lower-case letters and digits, 160 random bits in Crockford's base 32.
///
/// Anyone who knows it can resume or discard the upload, so it is never written to a log.
public struct ResumptionID: Sendable, Hashable {
    /// The identifier as it is written in paths.
    public let text: String

    /// Reads an identifier.
    ///
    /// - Returns: `nil` if the text is not one. An identifier holds no character that has a meaning to a file system.
    public init?(_ text: some StringProtocol) {
        let bytes = text.utf8
        guard bytes.count == Self.length, bytes.allSatisfy(Self.alphabet.contains) else { return nil }
        self.text = String(text)
    }

    private init(text: String) {
        self.text = text
    }

    static func random() -> ResumptionID {
        var generator = SystemRandomNumberGenerator()
        let characters = (0..<length).map { _ in alphabet[Int.random(in: 0..<alphabet.count, using: &generator)] }
        return ResumptionID(text: String(decoding: characters, as: UTF8.self))
    }

    /// Enough characters to tell uploads apart in a log, and too few to guess the rest.
    var loggedText: String { text.prefix(6) + "…" }

    private static let length = 32
    private static let alphabet = Array("0123456789abcdefghjkmnpqrstvwxyz".utf8)
}

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
