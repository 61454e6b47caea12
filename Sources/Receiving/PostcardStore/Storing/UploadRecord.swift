public import PostcardFoundation

/// A stored upload: its text fields and its files. Its JSON is the response to `GET /uploads/ID`.
public struct UploadRecord: Sendable, Hashable, Codable, Identifiable {
    /// A text field of a form.
    public struct Field: Sendable, Hashable, Codable {
        /// The unescaped name of the field.
        public let name: String
        /// The text. Text that is not UTF-8 is decoded with the charset of the part, or else the charset in the form's
        /// field `_charset_` (RFC 7578 §4.6). If both are unknown, each invalid byte becomes U+FFFD. The text may have
        /// any number of combining marks in a row, which make comparisons take quadratic time: compare its `utf8`.
        public let value: String
        /// The received bytes, if they differ from ``value`` in UTF-8; `nil` otherwise. The JSON member is `base64`.
        public let bytes: Data?

        private enum CodingKeys: String, CodingKey {
            case name, value
            case bytes = "base64"
        }

        /// Makes the description of a text field in your own store.
        ///
        /// - Parameters:
        ///   - name: The name of the field.
        ///   - value: The text.
        ///   - bytes: The received bytes, if they differ from the value in UTF-8.
        public init(name: String, value: String, bytes: Data? = nil) {
            self.name = name
            self.value = value
            self.bytes = bytes
        }

        /// The received content of the field.
        public var content: Data { bytes ?? Data(value.utf8) }
    }

    /// The description of a file in a form.
    public struct File: Sendable, Hashable, Codable {
        /// The unescaped name of the form's field.
        public let name: String
        /// The client's name for the file, without directories. The client can choose any name: never use it as a path.
        public let filename: String
        /// The client's filename with its path, such as `trip/day1/a.jpg`; `nil` for none. Never use it as a path.
        public let sentFilename: String?
        /// The media type that the client sent. Defaults to `application/octet-stream`.
        public let contentType: String
        /// The media type that the first bytes indicate, if it contradicts the client's type; `nil` otherwise.
        public let detectedType: String?
        /// The code of the damage that the first bytes show, such as `file-decoded-as-text`; `nil` if they show none.
        /// The file was damaged before it was sent. `postcard explain` explains each code.
        public let damage: String?
        /// The size of the content, in bytes.
        public let size: Int64
        /// The SHA-256 digest of the content, in lower-case hexadecimal.
        public let sha256: String
        /// The path from which to fetch the content, such as `/uploads/ID/files/0`.
        public let url: String
        /// `false` if the user chose no file; otherwise `nil`. The JSON has no member for `nil`.
        private let chosen: Bool?

        /// Makes the description of a file in your own store.
        public init(
            name: String, filename: String, contentType: String, detectedType: String? = nil,
            damage: String? = nil, sentFilename: String? = nil, size: Int64, sha256: String, url: String
        ) {
            self.name = name
            self.filename = filename
            self.contentType = contentType
            self.detectedType = detectedType
            self.damage = damage
            self.sentFilename = sentFilename
            self.size = size
            self.sha256 = sha256
            self.url = url
            chosen = size > 0 || !filename.isEmpty || sentFilename != nil ? nil : false
        }

        /// Makes the description of a complete file in your own store.
        ///
        /// - Parameters:
        ///   - header: The names and the type of the file.
        ///   - size: The size of the content, in bytes.
        ///   - sha256: The SHA-256 digest of the content, in hexadecimal digits.
        ///   - index: The index of the file in the upload, from 0.
        ///   - id: The identifier of the upload.
        public init(_ header: FileHeader, size: Int64, sha256: String, at index: Int, of id: UploadID) {
            self.init(
                name: header.name, filename: header.filename, contentType: header.contentType,
                detectedType: header.detectedType, damage: header.damage, sentFilename: header.sentFilename,
                size: size, sha256: sha256, url: UploadRecord.url(ofFile: index, of: id))
        }

        /// Whether the user chose a file. If not, browsers send an empty file, and the JSON has `"chosen": false`.
        public var isChosen: Bool { chosen ?? true }
    }

    /// The facts about a file that are known before its content has arrived.
    public struct FileHeader: Sendable, Hashable {
        /// The unescaped name of the form's field.
        public let name: String
        /// The client's name for the file, without directories.
        public let filename: String
        /// The client's name for the file with its path; `nil` if no path was sent.
        public let sentFilename: String?
        /// The media type that the client sent.
        public package(set) var contentType: String
        /// The media type that the first bytes indicate, if it contradicts the client's type; `nil` otherwise.
        public package(set) var detectedType: String?
        /// The code of the damage that the first bytes show; `nil` if they show none.
        public package(set) var damage: String?

        /// Makes the header of a file.
        public init(
            name: String, filename: String, sentFilename: String? = nil, contentType: String,
            detectedType: String? = nil, damage: String? = nil
        ) {
            self.name = name
            self.filename = filename
            self.sentFilename = sentFilename
            self.contentType = contentType
            self.detectedType = detectedType
            self.damage = damage
        }
    }

    /// A part of the form.
    public enum Part: Sendable, Hashable {
        /// A text field, by its index in ``UploadRecord/fields``.
        case field(Int)
        /// A file, by its index in ``UploadRecord/files``.
        case file(Int)

        fileprivate var field: Int? { if case .field(let index) = self { index } else { nil } }
        fileprivate var file: Int? { if case .file(let index) = self { index } else { nil } }
    }

    /// The identifier of the upload.
    public let id: UploadID
    /// The time at which the upload was complete, rounded to seconds.
    public let received: Date
    /// The text fields, in the order of the form.
    public let fields: [Field]
    /// The files, in the order of the form.
    public let files: [File]
    /// All fields and files, in the order of the form.
    public let parts: [Part]

    /// Makes a record in your own store.
    ///
    /// - Parameters:
    ///   - id: The identifier of the upload.
    ///   - received: The time at which the form was received.
    ///   - fields: The text fields, in the order of the form.
    ///   - files: The files, in the order of the form.
    ///   - parts: All fields and files, in the order of the form. Defaults to the fields before the files.
    public init(id: UploadID, received: Date, fields: [Field], files: [File], parts: [Part]? = nil) {
        self.id = id
        self.received = received
        self.fields = fields
        self.files = files
        self.parts = parts ?? fields.indices.map(Part.field) + files.indices.map(Part.file)
    }

    private enum CodingKeys: CodingKey {
        case id, received, fields, files, parts
    }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        self.init(
            id: try members.decode(UploadID.self, forKey: .id),
            received: try members.decode(Date.self, forKey: .received),
            fields: try members.decode([Field].self, forKey: .fields),
            files: try members.decode([File].self, forKey: .files),
            parts: try members.decodeIfPresent([Part].self, forKey: .parts))
        guard parts.compactMap(\.field).elementsEqual(fields.indices),
            parts.compactMap(\.file).elementsEqual(files.indices)
        else {
            throw DecodingError.dataCorruptedError(
                forKey: .parts, in: members,
                debugDescription: "The parts do not name each field and each file once, in their order.")
        }
    }

    /// The approximate length of the JSON without escapes, in bytes.
    package var expectedBytes: Int {
        var bytes = 0
        for field in fields {
            bytes += field.name.utf8.count + field.value.utf8.count + (field.bytes?.count ?? 0) * 4 / 3 + 64
        }
        for file in files {
            bytes += file.name.utf8.count + file.filename.utf8.count + file.contentType.utf8.count + 320
            bytes += (file.sentFilename?.utf8.count ?? 0) + (file.damage?.utf8.count ?? 0)
        }
        return bytes
    }

    /// The size of the upload in a store, in bytes: the record and files in whole blocks, and a block for the folder.
    package func storedBytes(inBlocksOf block: Int64) -> Int64 {
        var recordBytes: Int64 = 0
        _ = writeJSON { recordBytes += Int64($0.count) }
        return files.reduce(block + Self.roundedUp(recordBytes, to: block)) { sum, file in
            let (bytes, isTooMuch) = sum.addingReportingOverflow(Self.roundedUp(file.size, to: block))
            return isTooMuch ? .max : bytes
        }
    }

    static func roundedUp(_ bytes: Int64, to block: Int64) -> Int64 {
        let (whole, isOver) = bytes.addingReportingOverflow(block - 1)
        return isOver ? .max : whole / block * block
    }

    /// The path from which to fetch the record, such as `/uploads/ID`.
    public var url: String { Self.url(of: id) }

    package static func url(of id: UploadID) -> String { "\(readingPath)/\(id)" }

    /// The path from which to fetch a file, such as `/uploads/ID/files/0`. Stores write this path to their records.
    public static func url(ofFile index: Int, of id: UploadID) -> String { "\(url(of: id))/files/\(index)" }

    /// The path of records and files, whatever the upload path is.
    package static let readingPath = "/uploads"
}

extension UploadRecord.Part: Codable {
    private enum CodingKeys: CodingKey {
        case field, file
    }

    public init(from decoder: any Decoder) throws {
        let members = try decoder.container(keyedBy: CodingKeys.self)
        if let index = try members.decodeIfPresent(Int.self, forKey: .field) {
            self = .field(index)
        } else {
            self = .file(try members.decode(Int.self, forKey: .file))
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var members = encoder.container(keyedBy: CodingKeys.self)
        switch self {
        case .field(let index): try members.encode(index, forKey: .field)
        case .file(let index): try members.encode(index, forKey: .file)
        }
    }
}
