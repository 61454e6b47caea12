import PostcardForm
import PostcardFoundation

/// A form that was signed for a client. Its JSON is what `PresignedForm` of the module `PostcardClient` is decoded
/// from, and has what boto3's `generate_presigned_post` returns.
public struct SignedForm: Sendable, Encodable {
    /// `POST` or `PUT`.
    public let method: String
    /// The address that the file is sent to.
    public let url: String
    /// The fields before the file, for a POST.
    public let fields: [String: String]?
    /// The header fields, for a PUT.
    public let headers: [String: String]?
    /// The key of the object, by which the client reports that it is stored.
    public let key: String
    /// When the form expires, in ISO 8601: at the end of its lifetime, or of the credentials that sign it.
    public let expires: String
}

/// What a client says of a file before it sends it: the JSON of `POST /uploads/forms`.
struct FormRequest: Codable, Sendable {
    /// The client's name for the file.
    var filename: String?
    /// Its media type.
    var contentType: String?
    /// The text fields of the record.
    var fields: [Field]?

    struct Field: Codable, Sendable {
        let name: String
        let value: String
    }

    static let maximumBytes = 16 << 10
}

/// What an object has to say about the record that it becomes: the field `x-amz-meta-form`, JSON in Base64, because
/// fields of a header are ASCII.
struct FormFacts: Codable, Sendable {
    var filename: String
    var fields: [FormRequest.Field]

    static let fieldName = "form"
    /// Stores accept 2 KB of such fields, with their names.
    static let maximumBytes = 1900
}

/// The body of a notification: one file that a client reports, or the event of a store.
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
    /// Each takes a few requests to the store. Stores send one record in an event, or few.
    static let maximumRecords = 100

    /// An entry of "Event message structure" in the reference of Amazon S3, as far as stores agree on it.
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

        /// Whether an object was stored. Some stores begin the names with `s3:`.
        var isCreation: Bool { eventName.contains("ObjectCreated:") }

        /// The key, which is written as the value of a URL-encoded form.
        var key: String { ObjectNotification.decoded(s3.object.key) }
    }

    /// Undoes percent-encoding, with a plus for a blank. What is not encoded correctly stays.
    static func decoded(_ text: String) -> String {
        let encoded = text.utf8.lazy.map { $0 == UInt8(ascii: "+") ? UInt8.space : $0 }
        return String(streamSafe: PercentEncoding.decoded(encoded).bytes)
    }
}
