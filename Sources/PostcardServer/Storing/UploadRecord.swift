#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// A stored upload: its text fields and its files. Its JSON is the response to `GET /uploads/ID`.
public struct UploadRecord: Sendable, Hashable, Codable, Identifiable {
    /// A text field.
    public struct Field: Sendable, Hashable, Codable {
        /// The field's name, unescaped.
        public let name: String
        /// The text. Bytes that are not UTF-8 have become U+FFFD.
        public let value: String

        /// Describes a field, for your own store.
        public init(name: String, value: String) {
            self.name = name
            self.value = value
        }
    }

    /// A file.
    public struct File: Sendable, Hashable, Codable {
        /// The name of the form's field, unescaped.
        public let name: String
        /// The client's name for the file, without directories. Anyone can choose it: never use it as a path.
        public let filename: String
        /// The media type that the client sent. Defaults to `application/octet-stream`.
        public let contentType: String
        /// The size of the content in bytes.
        public let size: Int64
        /// The SHA-256 of the content, in lower-case hexadecimal.
        public let sha256: String
        /// The path to fetch the content from, such as `/uploads/ID/files/0`.
        public let url: String

        /// Describes a file, for your own store.
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

    /// Identifies the upload.
    public let id: UploadID
    /// When the upload was complete, to the second.
    public let received: Date
    /// The text fields, in the order of the form.
    public let fields: [Field]
    /// The files, in the order of the form.
    public let files: [File]

    /// Makes a record, for your own store.
    public init(id: UploadID, received: Date, fields: [Field], files: [File]) {
        self.id = id
        self.received = received
        self.fields = fields
        self.files = files
    }

    /// The approximate length of the JSON in bytes, if nothing in it is escaped.
    package var expectedBytes: Int {
        var bytes = 0
        for field in fields { bytes += field.name.utf8.count + field.value.utf8.count + 32 }
        for file in files {
            bytes += file.name.utf8.count + file.filename.utf8.count + file.contentType.utf8.count + 256
        }
        return bytes
    }

    /// The path to fetch the record from, such as `/uploads/ID`.
    public var url: String { Self.url(of: id) }

    static func url(of id: UploadID) -> String { "\(readingPath)/\(id)" }
    static func url(ofFile index: Int, of id: UploadID) -> String { "\(url(of: id))/files/\(index)" }

    /// The path of records and files, wherever forms are posted.
    package static let readingPath = "/uploads"
}
