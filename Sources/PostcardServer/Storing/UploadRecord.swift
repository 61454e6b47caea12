#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What is known of an upload that was received whole; its JSON is what `GET /uploads/ID` answers.
public struct UploadRecord: Sendable, Hashable, Codable, Identifiable {
    /// A text field.
    public struct Field: Sendable, Hashable, Codable {
        /// The field's name, as its sender meant it.
        public let name: String
        /// The text. Bytes that are not UTF-8 have become U+FFFD.
        public let value: String

        /// For stores of one's own.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A file.
    public struct File: Sendable, Hashable, Codable {
        /// The name of the form's field, as its sender meant it.
        public let name: String
        /// The sender's name for the file, without a path. It is data from a stranger: never use it as a path.
        public let filename: String
        /// The media type that the sender gave; `application/octet-stream` where it gave none.
        public let contentType: String
        /// The bytes of the content.
        public let size: Int64
        /// The SHA-256 of the content, in lower-case hexadecimal.
        public let sha256: String
        /// Where the content can be fetched: a path, such as `/uploads/ID/files/0`.
        public let url: String

        /// For stores of one's own.
        public init(
            name: String, filename: String, contentType: String, size: Int64, sha256: String, url: String
        ) {
            self.name = name
            self.filename = filename
            self.contentType = contentType
            self.size = size
            self.sha256 = sha256
            self.url = url
        }
    }

    /// What the upload is known by.
    public let id: UploadID
    /// When the upload was complete, to the second.
    public let received: Date
    /// The text fields, in the order in which they came.
    public let fields: [Field]
    /// The files, in the order in which they came.
    public let files: [File]

    /// For stores of one's own.
    public init(id: UploadID, received: Date, fields: [Field], files: [File]) {
        self.id = id
        self.received = received
        self.fields = fields
        self.files = files
    }

    /// About how long the JSON is if nothing in it is escaped.
    package var expectedBytes: Int {
        var bytes = 0
        for field in fields { bytes += field.name.utf8.count + field.value.utf8.count + 32 }
        for file in files {
            bytes += file.name.utf8.count + file.filename.utf8.count + file.contentType.utf8.count + 256
        }
        return bytes
    }

    /// Where the record can be fetched: a path, such as `/uploads/ID`.
    public var url: String { Self.url(of: id) }

    static func url(of id: UploadID) -> String { "\(readingPath)/\(id)" }
    static func url(ofFile index: Int, of id: UploadID) -> String { "\(url(of: id))/files/\(index)" }

    /// Where records and files are read, wherever forms are posted.
    package static let readingPath = "/uploads"
}
