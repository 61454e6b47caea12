import GRDB
import HTTPTypes
import PostcardClient
import PostcardFiles
import PostcardForm
import PostcardFoundation
import PostcardWire

/// The row of an upload with everything that is needed to send it.
///
/// All values are checked when they are read, because the database may be old, damaged or changed by someone.
struct UploadRow: Sendable {
    let upload: QueuedUpload
    /// The name of the upload's body and of its transfers in a background session.
    let uuid: UUID
    /// The header fields of the request, including `Idempotency-Key`. Object stores do not get that field, because the
    /// key of an object identifies the upload.
    let headerFields: HTTPFields
    let contentType: String
    /// The signed address of an object store; `nil` for other servers.
    let signed: SignedAddress?
    /// The statuses that the form's endpoint accepts; `nil` if the endpoint does not list any.
    var acceptedStatuses: Set<Int>?
    /// The URL of the upload resource, if the server resumes the upload.
    let resource: URL?
    /// The number of attempts that failed since the upload was enqueued or retried by hand.
    let failures: Int
    /// The number of conflicts in a row, as `RetrySchedule` counts them.
    let conflicts: Int
    /// The number of attempts in a row that the system ended without a response.
    let interruptions: Int
    /// Whether the upload has new header fields or a new presigned form, because the server refused the old ones.
    let hasFreshFields: Bool
    /// The time of the first attempt after the upload was enqueued or retried by hand.
    let started: Date?
    /// The reason for the failure of the latest attempt.
    let reason: String?
    /// The identifier of the background session that has the upload; `nil` if there is none.
    let session: String?
    /// The number of the first attempt that may have delivered the form; `nil` if no attempt can have delivered it.
    let possibleDelivery: Int64?
    /// The resume data for the system's current attempt; `nil` if the attempt sends the whole form.
    let resumeData: Data?
}

extension UploadRow {
    init(_ row: Row) throws {
        upload = try QueuedUpload(row)
        guard let uuid = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")) else {
            throw RowDamage("its name is not a UUID")
        }
        self.uuid = uuid
        signed = try row.optional(Data.self, "signed").map {
            try JSONDecoder().decode(SignedAddress.self, from: $0)
        }
        var fields = try Field.fields(in: try row.value(Data.self, "headerFields"))
        if signed == nil { fields[.idempotencyKey] = try row.value(String.self, "idempotencyKey") }
        headerFields = fields
        contentType = try row.value(String.self, "contentType")
        acceptedStatuses = try row.optional(Data.self, "statuses").map {
            try JSONDecoder().decode(Set<Int>.self, from: $0)
        }
        resource = try row.optional(String.self, "resource").flatMap { URL(string: $0) }
        failures = try row.count("failures")
        conflicts = try row.count("conflicts")
        interruptions = try row.count("interruptions")
        hasFreshFields = try row.count("hasFreshFields") > 0
        started = try row.date("started")
        reason = try row.optional(String.self, "reason")
        session = try row.optional(String.self, "session")
        possibleDelivery = try row.optional(Int64.self, "attempt")
        let (stopped, attempts) = (try row.optional(Int64.self, "stopped"), upload.attempts)
        let data = try row.optional(Data.self, "resumeData")
        resumeData = stopped.map { $0 < attempts } ?? false ? data : nil
    }

    /// The possible delivery of the form by attempts before the given one.
    func delivery(before attempt: Int) -> PossibleDelivery {
        possibleDelivery.map { $0 < attempt } ?? false ? .responseLost(resource: nil) : .neverArrived
    }

    /// The counts of failures and conflicts, with the given possible delivery, for the retry schedule.
    func history(after delivery: PossibleDelivery) -> RetrySchedule.History {
        RetrySchedule.History(failures: failures, conflicts: conflicts, after: delivery)
    }

    /// The maximum of ``elapsed(at:)`` in seconds: longer than any upload, and short enough for calculations.
    private static let longestTime = 1e9

    /// The time since the first attempt after the upload was enqueued or retried by hand.
    func elapsed(at now: Date) -> Duration {
        started.map { .seconds(min(max(0, now.timeIntervalSince($0)), Self.longestTime)) } ?? .zero
    }

    /// Returns the error if it is too late to send the form again, or `nil` if an attempt may begin.
    func expiry(by schedule: RetrySchedule, at now: Date) -> UploadError? {
        guard upload.attempts > 1 else { return nil }
        return schedule.expiry(after: nil, startingAt: elapsed(at: now)).map { error in
            reason.map { error.adding("The last attempt failed: \($0)") } ?? error
        }
    }

    /// A header field as JSON.
    struct Field: Codable {
        let name: String
        let value: String

        static func list(_ fields: HTTPFields) -> [Field] {
            fields.map { Field(name: $0.name.rawName, value: $0.value) }
        }

        /// Reads stored header fields. Fields without a valid name are left out.
        static func fields(in data: Data) throws -> HTTPFields {
            fields(try JSONDecoder().decode([Field].self, from: data))
        }

        static func fields(_ list: [Field]) -> HTTPFields {
            var fields = HTTPFields()
            for field in list {
                if let name = HTTPField.Name(field.name) { fields.append(HTTPField(name: name, value: field.value)) }
            }
            return fields
        }
    }

    /// A part as JSON.
    struct Part: Codable {
        let name: String
        let filename: String?
        let contentType: String?
        let offset: Int64
        let length: Int64
    }

    /// The layout of the body on disk.
    ///
    /// - Throws: `FileError` or `FormError` if the file is not the one that was written.
    func layout(in directory: QueueDirectory) throws -> FormLayout {
        let file = try directory.openBody(uuid, length: upload.totalBytes)
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
            written: file, path: directory.bodyURL(uuid).path, contentType: contentType, parts: parts)
    }
}

extension UploadRow.Part {
    /// The parts of a written body, for the database.
    static func list(_ layout: FormLayout, _ ranges: [Range<Int64>]) -> [UploadRow.Part] {
        zip(layout.parts, ranges).map { part, range in
            UploadRow.Part(
                name: part.name, filename: part.filename, contentType: part.contentType?.value,
                offset: range.lowerBound, length: range.upperBound - range.lowerBound)
        }
    }
}

/// The values of the column `schedule`, by which the queue finds the next upload to send. The column is `NULL` for
/// uploads that are not waiting.
enum Schedule: Int {
    /// The upload may be sent.
    case ready
    /// The upload is due later.
    case delayed
    /// An earlier upload of the same group must be sent first.
    case behind
}

extension QueuedUpload {
    /// The maximum length of a body: more than any disk has, and small enough to add up the lengths of many uploads.
    private static let maximumBytes: Int64 = 1 << 50

    /// The SQL that selects the columns of an upload.
    static let columns = """
        SELECT upload.*, request.parts AS parts, response.status AS responseStatus,
            response.headerFields AS responseFields, response.body AS responseBody, delivery.attempt AS attempt
        FROM upload LEFT JOIN request USING (id) LEFT JOIN response USING (id) LEFT JOIN delivery USING (id)
        """

    init(_ row: Row) throws {
        id = try row.value(Int64.self, "id")
        guard let url = URL(string: try row.value(String.self, "url")),
            let method = HTTPRequest.Method(try row.value(String.self, "method")),
            let kind = State.Kind(rawValue: try row.value(String.self, "state"))
        else { throw RowDamage("its URL, method or state is not valid") }
        self.url = url
        self.method = method
        let total = try row.value(Int64.self, "total")
        guard (0...Self.maximumBytes).contains(total) else { throw RowDamage("its body cannot have \(total) bytes") }
        totalBytes = total
        bytesSent = min(max(try row.value(Int64.self, "sent"), 0), total)
        attempts = try row.count("attempts")
        enqueued = try row.date("enqueued") ?? Date(timeIntervalSince1970: 0)
        conditions = UploadConditions(
            notBefore: try row.date("notBefore"), expires: try row.date("expires"),
            networks: AllowedNetworks(mask: try row.value(Int64.self, "networks")),
            priority: Int(clamping: try row.value(Int64.self, "priority")),
            group: try row.optional(String.self, "sequence"))
        let parts = try row.optional(Data.self, "parts") ?? Data("[]".utf8)
        self.parts = try JSONDecoder().decode([UploadRow.Part].self, from: parts).map { part in
            let (end, isTooFar) = part.offset.addingReportingOverflow(part.length)
            guard part.offset >= 0, part.length >= 0, !isTooFar, end <= total else {
                throw RowDamage("a part is outside its body")
            }
            return Part(
                name: part.name, filename: part.filename, contentType: part.contentType, content: part.offset..<end)
        }
        tag = try row.optional(Data.self, "tag")
        end = try row.optional(Int64.self, "ended")
        let response = try Response(row)
        let code = UploadError.Code(rawValue: try row.optional(String.self, "code") ?? "")
        // The row says whether an attempt may have delivered the form, and the code whether the server accepted the
        // form.
        let arrived = code.usualDelivery == .accepted ? UploadError.Delivery.accepted : .responseLost
        let failure = Failure(
            code, try row.optional(String.self, "reason") ?? "", advice: try row.optional(String.self, "advice"),
            response: response,
            delivery: try row.decode(DatabaseValue.self, forColumn: "attempt").isNull ? nil : arrived)
        state =
            switch kind {
            case .importing: .importing(because: failure.code.rawValue.isEmpty ? nil : failure)
            case .waiting: .waiting
            case .sending: .sending
            case .retrying: .retrying(at: try row.date("due") ?? enqueued, because: failure)
            case .paused: .paused
            case .done:
                // The row may have been read without its response.
                .done(response ?? Response(status: 0, headerFields: HTTPFields(), body: Data()))
            case .failed: .failed(because: failure)
            case .cancelled: .cancelled
            }
    }
}

extension QueuedUpload.Response {
    /// Reads a response. Returns `nil` if there is none, or if the row was read without its response.
    fileprivate init?(_ row: Row) throws {
        guard row.hasColumn("responseStatus"), let status = try row.optional(Int64.self, "responseStatus") else {
            return nil
        }
        self.init(
            status: HTTPResponse.Status(clamping: status),
            headerFields: try UploadRow.Field.fields(
                in: try row.optional(Data.self, "responseFields") ?? Data("[]".utf8)),
            body: try row.optional(Data.self, "responseBody") ?? Data())
    }
}

extension AllowedNetworks {
    /// The value of the column `networks`, with a bit for each kind of network that the upload may not use.
    var mask: Int64 { (cellular ? 0 : 1) | (expensive ? 0 : 2) | (constrained ? 0 : 4) }

    init(mask: Int64) {
        self.init(cellular: mask & 1 == 0, expensive: mask & 2 == 0, constrained: mask & 4 == 0)
    }
}

extension Row {
    /// The maximum of a count: larger than any real count, and small enough to be incremented.
    static let maximumCount: Int64 = 1_000_000_000

    fileprivate func date(_ column: String) throws -> Date? {
        try optional(Double.self, column).map(Date.init(timeIntervalSince1970:))
    }

    /// Reads a value that must have its column's type. Without the check, SQLite would convert text to the number 0.
    fileprivate func value<Value: DatabaseValueConvertible>(_ type: Value.Type, _ column: String) throws -> Value {
        guard let value = try optional(type, column) else { throw RowDamage("its \(column) is missing") }
        return value
    }

    /// Reads a value that may be `NULL`.
    fileprivate func optional<Value: DatabaseValueConvertible>(
        _ type: Value.Type, _ column: String
    ) throws -> Value? {
        let stored = try decode(DatabaseValue.self, forColumn: column)
        if stored.isNull { return nil }
        guard let value = Value.fromDatabaseValue(stored) else { throw RowDamage("its \(column) has another type") }
        return value
    }

    /// Reads a count, and limits it to the possible range.
    func count(_ column: String) throws -> Int {
        Int(clamping: Swift.min(Swift.max(try value(Int64.self, column), 0), Self.maximumCount))
    }
}

extension UUID {
    /// Reads the name of a body. It must be exactly as the queue writes it, so that no two rows name the same body.
    init?(bodyName: DatabaseValue) {
        guard case .string(let name) = bodyName.storage, let uuid = UUID(uuidString: name), uuid.uuidString == name
        else { return nil }
        self = uuid
    }
}

/// The error for a row that the queue cannot have written. It does not affect other uploads.
struct RowDamage: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) {
        self.description = description
    }

    /// Reads a row, and throws ``RowDamage`` for errors about this row alone.
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
