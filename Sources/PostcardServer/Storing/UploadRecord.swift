public import PostcardFoundation

/// A stored upload: its text fields and its files. Its JSON is the response to `GET /uploads/ID`.
public struct UploadRecord: Sendable, Hashable, Codable, Identifiable {
    /// A text field.
    public struct Field: Sendable, Hashable, Codable {
        /// The field's name, unescaped.
        public let name: String
        /// The text. Bytes that are not UTF-8 have become U+FFFD. It may have any number of combining marks in a row, with
        /// which a comparison takes time by the square of their number: compare its `utf8`.
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
        /// The media type that the first bytes show, if it contradicts the client's; else `nil`.
        public let detectedType: String?
        /// The size of the content in bytes.
        public let size: Int64
        /// The SHA-256 of the content, in lower-case hexadecimal.
        public let sha256: String
        /// The path to fetch the content from, such as `/uploads/ID/files/0`.
        public let url: String

        /// Describes a file, for your own store.
        public init(
            name: String, filename: String, contentType: String, detectedType: String? = nil, size: Int64,
            sha256: String, url: String
        ) {
            self.name = name
            self.filename = filename
            self.contentType = contentType
            self.detectedType = detectedType
            self.size = size
            self.sha256 = sha256
            self.url = url
        }
    }

    /// A part of the form: a text field or a file, by its index in ``fields`` or ``files``.
    public enum Part: Sendable, Hashable {
        case field(Int)
        case file(Int)

        fileprivate var field: Int? { if case .field(let index) = self { index } else { nil } }
        fileprivate var file: Int? { if case .file(let index) = self { index } else { nil } }
    }

    /// Identifies the upload.
    public let id: UploadID
    /// When the upload was complete, to the second.
    public let received: Date
    /// The text fields, in the order of the form.
    public let fields: [Field]
    /// The files, in the order of the form.
    public let files: [File]
    /// The fields and files together, in the order of the form.
    public let parts: [Part]

    /// Makes a record, for your own store.
    ///
    /// - Parameter parts: The fields and files together, in the order of the form. Defaults to the fields before the
    ///   files.
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

    /// The approximate length of the JSON in bytes, if nothing in it is escaped.
    package var expectedBytes: Int {
        var bytes = 0
        for field in fields { bytes += field.name.utf8.count + field.value.utf8.count + 48 }
        for file in files {
            bytes += file.name.utf8.count + file.filename.utf8.count + file.contentType.utf8.count + 320
        }
        return bytes
    }

    /// How many bytes the upload takes in a store: the record and the files, each in whole blocks, and a block for what
    /// they are listed in.
    package func storedBytes(inBlocksOf block: Int64) -> Int64 {
        var recordBytes: Int64 = 0
        _ = writeJSON { recordBytes += Int64($0.count) }
        return files.reduce(block + Self.roundedUp(recordBytes, to: block)) { sum, file in
            let (bytes, isTooMuch) = sum.addingReportingOverflow(Self.roundedUp(file.size, to: block))
            return isTooMuch ? .max : bytes
        }
    }

    /// The size of a file in whole blocks.
    static func roundedUp(_ bytes: Int64, to block: Int64) -> Int64 {
        let (whole, isOver) = bytes.addingReportingOverflow(block - 1)
        return isOver ? .max : whole / block * block
    }

    /// The path to fetch the record from, such as `/uploads/ID`.
    public var url: String { Self.url(of: id) }

    package static func url(of id: UploadID) -> String { "\(readingPath)/\(id)" }
    package static func url(ofFile index: Int, of id: UploadID) -> String { "\(url(of: id))/files/\(index)" }

    /// The path of records and files, wherever forms are posted.
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
