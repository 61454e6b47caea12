import PostcardForm
import PostcardFoundation

/// The facts that a client sends before the file itself: the JSON of `POST /uploads/forms`.
struct FormRequest: Codable, Sendable {
    /// The client's name for the file.
    var filename: String?
    var contentType: String?
    /// The text fields of the record.
    var fields: [Field]?

    struct Field: Codable, Sendable {
        let name: String
        let value: String
    }

    static let maximumBytes = 16 << 10
}

/// The filename and text fields for a file's later record. The object keeps them in `x-amz-meta-form`: JSON in Base64.
struct FormFacts: Codable, Sendable {
    var filename: String
    var fields: [FormRequest.Field]

    static let fieldName = "form"
    /// The maximum size of the value, in bytes. Stores accept 2 KB of metadata fields, including their names.
    static let maximumBytes = 1900
}

/// The body of a report: one file that a client reports, or an event of a store.
struct ObjectNotification: Decodable, Sendable {
    let key: String?
    let etag: String?
    let size: Int64?
    let records: [Record]?

    private enum CodingKeys: String, CodingKey {
        case key, etag, size
        case records = "Records"
    }

    static let maximumBytes = 1 << 20
    /// The maximum number of records in an event. Most events have few. Each record causes a few requests to the store.
    static let maximumRecords = 100

    /// A record of an event, as in "Event message structure" in the reference of Amazon S3. Only members that all
    /// stores send are decoded.
    struct Record: Decodable, Sendable {
        let eventName: String
        let s3: Place

        struct Place: Decodable, Sendable {
            let bucket: Bucket
            let object: Object
        }

        struct Bucket: Decodable, Sendable {
            let name: String
        }

        struct Object: Decodable, Sendable {
            let key: String
            let size: Int64?
            let eTag: String?
        }

        /// Whether the event reports that an object was stored. Some stores begin the names of events with `s3:`.
        var isCreation: Bool { eventName.contains("ObjectCreated:") }

        /// The decoded key of the object. Events encode keys like values of URL-encoded forms.
        var key: String { ObjectNotification.decoded(s3.object.key) }
    }

    /// Returns the text with percent-encoding decoded, and a plus as a blank. Invalid escapes are kept.
    static func decoded(_ text: String) -> String {
        let encoded = text.utf8.lazy.map { $0 == UInt8(ascii: "+") ? UInt8.space : $0 }
        return String(streamSafe: PercentEncoding.decoded(encoded).bytes)
    }
}
