public import PostcardFoundation

/// A file in a value that is sent as a form or decoded from a form.
///
/// ```swift
/// struct Pet: Codable {
///     var name: String
///     var pictures: [FormFile]
/// }
/// let pet = Pet(name: "초코", pictures: [FormFile(at: photo)])
/// let form = try MultipartForm(encoding: pet)
/// ```
///
/// A ``FormEncoder`` encodes the file as a file part, which a ``FormDecoder`` decodes. Other encoders and decoders
/// throw an error, because they cannot transfer files.
public struct FormFile: Sendable, Hashable {
    /// The filename to send, or the received filename. A received filename is untrusted: never use it as a path.
    public var filename: String

    /// The media type. In a file to send, `nil` means that the type is detected from the filename extension or the
    /// first bytes. In a received file, `nil` means that the part has no valid type. A sender may claim any type.
    public var contentType: MediaType?

    /// The file's bytes, in memory or on disk.
    public var content: Content

    /// The metadata to remove from a picture or video while it is sent: by default its location and owner. Other files
    /// are sent unchanged. Received files do not use this property.
    ///
    /// ```swift
    /// var file = FormFile(at: map)
    /// file.metadata = .asIs
    /// ```
    public var metadata = MetadataPolicy.picturesWithoutLocation

    /// The bytes of a file, in memory or on disk.
    public enum Content: Sendable, Hashable {
        /// Bytes in memory.
        case bytes(Data)
        /// A file on disk, which is read while it is sent, or which a receiver has written.
        case file(URL)
    }

    /// Makes a file whose bytes are in memory.
    ///
    /// - Parameters:
    ///   - bytes: The content.
    ///   - filename: The filename to send.
    ///   - contentType: The media type. Defaults to the type of the filename extension or the first bytes.
    public init(_ bytes: Data, filename: String, contentType: MediaType? = nil) {
        self.filename = filename
        self.contentType = contentType
        content = .bytes(bytes)
    }

    /// Makes a file from a file on disk, which is read while it is sent and never held in memory as a whole.
    ///
    /// - Parameters:
    ///   - url: The URL of the file. It is first accessed when the form is laid out.
    ///   - filename: The filename to send. Defaults to the last component of the path.
    ///   - contentType: The media type. Defaults to the type of the extension or the first bytes.
    public init(at url: URL, filename: String? = nil, contentType: MediaType? = nil) {
        self.filename = filename ?? url.lastPathComponent
        self.contentType = contentType
        content = .file(url)
    }

    /// The file of a part; `nil` if the part is a text field.
    public init?(_ part: ReceivedForm.Part) {
        guard let filename = part.header.filename else { return nil }
        self.filename = filename
        contentType = part.header.contentType.flatMap { try? MediaType($0) }
        content =
            switch part.content {
            case .bytes(let bytes): .bytes(bytes)
            case .file(let url): .file(url)
            }
    }

    /// The bytes of the file, read into memory if they are on disk.
    ///
    /// - Throws: The error of reading the file.
    public func data() throws -> Data {
        switch content {
        case .bytes(let bytes): bytes
        case .file(let url): try Data(contentsOf: url)
        }
    }

    /// Moves a received file, which the receiver would otherwise remove after its response.
    ///
    /// ```swift
    /// try await picture.move(to: folder.appending(path: UUID().uuidString))
    /// ```
    ///
    /// - Parameter url: The URL of the new file. Do not use the sender's filename. No file may exist at the URL.
    /// - Throws: The error of moving or writing the file.
    @concurrent public func move(to url: URL) async throws {
        switch content {
        case .bytes(let bytes): try bytes.write(to: url, options: .withoutOverwriting)
        case .file(let written): try FileManager.default.moveItem(at: written, to: url)
        }
    }
}

extension FormFile: Codable {
    /// Encodes the file as a file part.
    ///
    /// - Throws: `EncodingError` if the encoder is not a ``FormEncoder``.
    public func encode(to encoder: any Encoder) throws {
        guard let encoder = encoder as? ValueEncoder else {
            throw EncodingError.invalidValue(
                self,
                EncodingError.Context(
                    codingPath: encoder.codingPath,
                    debugDescription: "A FormFile is sent as a part of a form, and \(type(of: encoder)) writes none. "
                        + "Encode it with FormEncoder, or encode its data()."))
        }
        encoder.encode(self)
    }

    /// Decodes the file from a file part.
    ///
    /// - Throws: `DecodingError` if the decoder is not a ``FormDecoder``.
    public init(from decoder: any Decoder) throws {
        guard let decoder = decoder as? ValueDecoder else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "A FormFile is read from a part of a form, and \(type(of: decoder)) reads none. "
                        + "Decode it with FormDecoder."))
        }
        self = try decoder.file()
    }
}
