import GRDB
import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// All that is needed to send an upload.
///
/// Everything is checked when it is read: the database may be old, damaged, or written by someone else.
struct UploadRecord: Sendable {
    let upload: QueuedUpload
    /// Names the upload's body, and its transfers in a background session.
    let uuid: UUID
    /// The header fields of the request, the `Idempotency-Key` among them.
    let headerFields: HTTPFields
    let contentType: String
    /// Where the server keeps what it has of the body, if it resumes uploads.
    let resource: URL?
    /// The number of attempts that failed since the upload was enqueued or retried by hand.
    let failures: Int
    /// The background session that has it, if one does.
    let session: String?
    /// The first attempt that may have delivered the form; `nil` if none can have.
    private let possibleDelivery: Int64?

    /// The identifier of the current attempt in a background session.
    var transfer: Transfer.ID { Transfer.ID(upload: uuid, attempt: max(upload.attempts, 1)) }

    init(_ row: Row) throws {
        upload = try QueuedUpload(row)
        guard let uuid = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")) else {
            throw RowDamage("its name is no UUID")
        }
        self.uuid = uuid
        var fields = HTTPFields()
        for field in try JSONDecoder().decode([Field].self, from: try row.decode(Data.self, forColumn: "headerFields"))
        {
            if let name = HTTPField.Name(field.name) { fields.append(HTTPField(name: name, value: field.value)) }
        }
        fields.idempotencyKey = try row.decode(String.self, forColumn: "idempotencyKey")
        headerFields = fields
        contentType = try row.decode(String.self, forColumn: "contentType")
        resource = try row.decode(String?.self, forColumn: "resource").flatMap { URL(string: $0) }
        failures = try row.count("failures")
        session = try row.decode(String?.self, forColumn: "session")
        possibleDelivery = try row.decode(Int64?.self, forColumn: "attempt")
    }

    /// Whether an earlier attempt may have delivered the form: a server that knows its `Idempotency-Key` may then answer
    /// before it has read the form again.
    func mayHaveArrived(before attempt: Int) -> Bool {
        possibleDelivery.map { $0 < attempt } ?? false
    }

    /// A header field as JSON has it.
    struct Field: Codable {
        let name: String
        let value: String
    }

    /// A part as JSON has it.
    struct Part: Codable {
        let name: String
        let filename: String?
        let contentType: String?
        let offset: Int64
        let length: Int64
    }

    /// The layout of the body that is on disk.
    ///
    /// - Throws: `FileError`, `FormError` if the file is not the one that was written.
    func layout(in folder: QueueFolder) throws -> FormLayout {
        let file = try folder.openBody(uuid, length: upload.totalBytes)
        let parts = upload.parts.map { part in
            (
                part: PartLayout(
                    name: part.name, filename: part.filename,
                    contentType: part.contentType.flatMap { try? MediaType($0) },
                    contentLength: part.content.upperBound - part.content.lowerBound),
                content: part.content
            )
        }
        return try FormLayout(
            written: file, path: folder.bodyURL(uuid).path, contentType: contentType, parts: parts)
    }
}

/// An upload whose body is written, about to become a row.
struct NewUpload {
    let uuid: UUID
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    let contentType: String
    let parts: [UploadRecord.Part]
    let totalBytes: Int64
    let conditions: UploadConditions
}

/// When an upload may be sent. The database looks for the next one by this alone.
enum Schedule: Int {
    /// It may be sent.
    case ready
    /// Its time has not come.
    case delayed
    /// Another upload of its group comes first.
    case behind
}

extension QueuedUpload {
    /// More than any disk has, and little enough that the bytes of many uploads can be added up.
    private static let maximumBytes: Int64 = 1 << 50

    /// What is read of each upload.
    static let columns = """
        SELECT upload.*, request.parts AS parts, response.status AS responseStatus,
            response.contentType AS responseType, response.body AS responseBody
        FROM upload LEFT JOIN request USING (id) LEFT JOIN response USING (id)
        """

    init(_ row: Row) throws {
        id = try row.decode(Int64.self, forColumn: "id")
        guard let url = URL(string: try row.decode(String.self, forColumn: "url")),
            let method = HTTPRequest.Method(try row.decode(String.self, forColumn: "method")),
            let kind = State.Kind(rawValue: try row.decode(String.self, forColumn: "state"))
        else { throw RowDamage("its address, method or state is none") }
        self.url = url
        self.method = method
        let total = try row.decode(Int64.self, forColumn: "total")
        guard (0...Self.maximumBytes).contains(total) else { throw RowDamage("no body has \(total) bytes") }
        totalBytes = total
        bytesSent = min(max(try row.decode(Int64.self, forColumn: "sent"), 0), total)
        attempts = try row.count("attempts")
        enqueued = try row.date("enqueued") ?? Date(timeIntervalSince1970: 0)
        conditions = UploadConditions(
            notBefore: try row.date("notBefore"),
            networks: AllowedNetworks(mask: try row.decode(Int64.self, forColumn: "networks")),
            priority: Int(clamping: try row.decode(Int64.self, forColumn: "priority")),
            group: try row.decode(String?.self, forColumn: "sequence"))
        let parts = try row.decode(Data?.self, forColumn: "parts") ?? Data("[]".utf8)
        self.parts = try JSONDecoder().decode([UploadRecord.Part].self, from: parts).map { part in
            let (end, isTooFar) = part.offset.addingReportingOverflow(part.length)
            guard part.offset >= 0, part.length >= 0, !isTooFar, end <= total else {
                throw RowDamage("a part is out of place")
            }
            return Part(
                name: part.name, filename: part.filename, contentType: part.contentType, content: part.offset..<end)
        }
        let reason = try row.decode(String?.self, forColumn: "reason") ?? ""
        state =
            switch kind {
            case .waiting: .waiting
            case .sending: .sending
            case .retrying: .retrying(at: try row.date("due") ?? enqueued, because: reason)
            case .paused: .paused
            case .done:
                // Absent from a row that was read without its response.
                .done(
                    Response(
                        status: Int(clamping: try row.optional(Int64.self, "responseStatus") ?? 0),
                        contentType: try row.optional(String.self, "responseType"),
                        body: try row.optional(Data.self, "responseBody") ?? Data()))
            case .failed: .failed(because: reason)
            case .cancelled: .cancelled
            }
    }
}

extension AllowedNetworks {
    /// One bit for each kind of network that an upload may not use.
    var mask: Int64 { (cellular ? 0 : 1) | (expensive ? 0 : 2) | (constrained ? 0 : 4) }

    init(mask: Int64) {
        self.init(cellular: mask & 1 == 0, expensive: mask & 2 == 0, constrained: mask & 4 == 0)
    }
}

extension Row {
    /// Large enough for every count, and small enough to be counted up.
    static let maximumCount: Int64 = 1_000_000_000

    fileprivate func date(_ column: String) throws -> Date? {
        try decode(Double?.self, forColumn: column).map(Date.init(timeIntervalSince1970:))
    }

    fileprivate func optional<Value: DatabaseValueConvertible & StatementColumnConvertible>(
        _ type: Value.Type, _ column: String
    ) throws -> Value? {
        hasColumn(column) ? try decode(Value?.self, forColumn: column) : nil
    }

    /// How often something has happened.
    func count(_ column: String) throws -> Int {
        Int(clamping: Swift.min(Swift.max(try decode(Int64.self, forColumn: column), 0), Self.maximumCount))
    }
}

extension UUID {
    /// The name of a body as the queue writes it, so that no two rows name one body.
    init?(bodyName: DatabaseValue) {
        guard case .string(let name) = bodyName.storage, let uuid = UUID(uuidString: name), uuid.uuidString == name
        else { return nil }
        self = uuid
    }
}

/// An upload whose row says what the queue would not have written. The others are not affected.
struct RowDamage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Reads one upload, and turns what is wrong with its row alone into damage of that row.
    static func naming<Value>(_ id: QueuedUpload.ID, _ read: () throws -> Value) throws -> Value {
        do {
            return try read()
        } catch let error as DatabaseError where error.resultCode != .SQLITE_TOOBIG {
            throw error
        } catch {
            throw RowDamage("upload \(id) cannot be read: \(error)")
        }
    }
}
