public import PostcardFoundation
import PostcardPictureFormats

/// The metadata that is removed from a picture or a video while it is sent: where it was taken, the people and devices
/// that it names, or everything.
///
/// Forms send pictures and videos without their position by default: ``picturesWithoutLocation``.
///
/// ```swift
/// form.append(fileAt: photo, named: "petImage")
/// form.append(fileAt: map, named: "map", metadata: .asIs)
/// ```
///
/// Pixels are never decoded. Metadata is overwritten in place while the bytes are read, so the length and the picture
/// stay the same. The file on disk is not changed, and no copy is made.
///
/// JPEG, PNG, WebP, GIF, BMP, TIFF, DNG, HEIC, AVIF, MP4 and QuickTime files are understood. They are recognized by
/// their bytes, not their names. Apple ProRAW is DNG. Any other file, such as a PDF, a BigTIFF or a raw picture in a
/// camera maker's own format, is an error unless ``ifUnreadable(_:)`` allows it. So is a file with a broken structure.
///
/// In a TIFF or DNG, the values of removed entries are overwritten. Bytes that no entry names are overwritten if they
/// are at most 64 KiB in a row. A longer piece is sent: it is not left over from an editor, but pixels in a private
/// format.
///
/// A JPEG is read completely, because only its pixels show where it ends and whether other bytes follow. The pixels of
/// other files are not read.
public struct MetadataPolicy: Sendable, Hashable, Codable {
    /// The choice for a file whose metadata cannot be read.
    public enum Unreadable: String, Sendable, Hashable, Codable {
        /// Laying out the form fails: ``FormError`` with code ``FormError/Code/metadataUnreadable``.
        case fail
        /// The file is sent as it is, with all its metadata.
        case sendAsIs
    }

    /// The metadata to remove; `nil` for none.
    private let removal: MetadataScan.Removal?
    /// Whether a file that is neither a picture nor a video is sent as it is.
    private let sparesOthers: Bool
    private(set) var unreadable = Unreadable.fail

    private init(_ removal: MetadataScan.Removal?, sparingOthers sparesOthers: Bool = false) {
        self.removal = removal
        self.sparesOthers = sparesOthers
    }

    /// Removes nothing. Files are sent byte for byte.
    public static let asIs = MetadataPolicy(nil)

    /// Removes where a picture was taken and whose it is: positions and place names, names of owners, authors and
    /// persons, serial numbers, and camera makers' own data, which may contain any of these. The camera's model, its
    /// settings, the time, titles, descriptions and copyright notices stay.
    ///
    /// JPEGs and videos behind the end of a JPEG or a HEIC stay, without their own positions. Motion photos have them
    /// (Google's MicroVideo and MotionPhoto, Samsung's trailer, the `mpvd` box). Apple's data keeps the name of a Live
    /// Photo's video, and how bright the picture is to be shown. All other data after a picture's end is overwritten.
    public static let withoutLocation = MetadataPolicy(.location)

    /// Sends pictures and videos ``withoutLocation``, and other files byte for byte. The default of forms.
    ///
    /// The first bytes decide what a file is, not its name. A picture or a video whose metadata cannot be read is an
    /// error: if it is damaged, in WebM, or a raw picture in a camera maker's own format. ``asIs`` sends such a file
    /// anyway. An audio recording in WebM begins like a video. It is sent as it is if the part's content type is
    /// `audio/webm`, or its filename ends in `.weba`. A stream cannot be read before it is sent, so it is sent as it
    /// is.
    public static let picturesWithoutLocation = MetadataPolicy(.location, sparingOthers: true)

    /// Removes everything from a picture but the pixels, the orientation and the color profile, and everything from a
    /// video but pictures and sound: subtitles are removed too. Bytes behind a picture's end are overwritten, even the
    /// video of a motion photo. A DNG also keeps how its pixels are rendered and the camera's model, because no program
    /// opens it without them.
    public static let none = MetadataPolicy(.everything)

    /// The same policy with another choice for files whose metadata cannot be read. By default, such a file is an
    /// error.
    public func ifUnreadable(_ choice: Unreadable) -> MetadataPolicy {
        var policy = self
        policy.unreadable = choice
        return policy
    }

    /// Finds the bytes that must be overwritten in a file. Reads the structure of the file, not its pixels.
    ///
    /// - Parameters:
    ///   - length: The number of the file's bytes.
    ///   - read: Reads from an offset into a buffer and returns the number of bytes, 0 at the end.
    /// - Throws: ``MetadataError`` if the structure is not understood or too large, or if `read` throws.
    ///   ``ifUnreadable(_:)`` does not apply here.
    public func edits(
        ofLength length: Int64, reading read: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) throws(MetadataError) -> FileEdits {
        try edits(ofLength: length, declaredAs: nil, reading: read)
    }

    private func edits(
        ofLength length: Int64, declaredAs type: MediaType?,
        reading read: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) throws(MetadataError) -> FileEdits {
        guard let removal else { return FileEdits() }
        do throws(PictureFault) {
            var scan = MetadataScan(removal, length: length, read: read)
            return FileEdits(try scan.editsOfFile(sparingOthers: sparesOthers, declaredAs: type?.value))
        } catch {
            throw MetadataError(error)
        }
    }

    /// A copy of a picture in memory without its metadata, of the same length.
    ///
    /// - Throws: ``MetadataError`` if the structure is not understood. ``ifUnreadable(_:)`` does not apply here.
    public func applied(to picture: Data) throws(MetadataError) -> Data { try applied(to: picture, declaredAs: nil) }

    private func applied(to picture: Data, declaredAs type: MediaType?) throws(MetadataError) -> Data {
        let edits = try edits(ofLength: Int64(picture.count), declaredAs: type) { offset, buffer in
            picture.withUnsafeBytes { picture in
                let rest = UnsafeRawBufferPointer(
                    rebasing: picture.dropFirst(Int(clamping: offset)).prefix(buffer.count))
                buffer.copyMemory(from: rest)
                return rest.count
            }
        }
        guard !edits.isEmpty else { return picture }
        var result = picture
        result.withUnsafeMutableBytes { edits.apply(to: $0, at: 0) }
        return result
    }
}

extension MetadataPolicy {
    /// Whether the content's structure must be read before it is sent.
    var needsStructure: Bool { removal != nil && unreadable == .fail && !sparesOthers }

    /// The edits to a file that is part of a form, by the policy.
    func edits(
        ofLength length: Int64, declaredAs type: MediaType?, path: String, partIndex: Int,
        reading read: @escaping (Int64, UnsafeMutableRawBufferPointer) throws -> Int
    ) throws(FormError) -> FileEdits {
        do {
            return try edits(ofLength: length, declaredAs: type, reading: read)
        } catch {
            if let failure = error.underlyingError as? FormError { throw failure }
            if unreadable == .fail { throw .metadata(error, path: path, partIndex: partIndex) }
            return FileEdits()
        }
    }

    /// The bytes to send for content in memory: the content without the metadata that the policy removes.
    func applied(to bytes: Data, declaredAs type: MediaType?, partIndex: Int) throws(FormError) -> Data {
        do {
            return try applied(to: bytes, declaredAs: type)
        } catch {
            if unreadable == .fail { throw .metadata(error, path: nil, partIndex: partIndex) }
            return bytes
        }
    }
}

/// The bytes of a file to overwrite while the file is read, in ascending order and without overlaps.
public struct FileEdits: Sendable, Hashable {
    private let edits: PictureEdits

    init(_ edits: PictureEdits = PictureEdits()) {
        self.edits = edits
    }

    /// Whether there are no edits.
    public var isEmpty: Bool { edits.isEmpty }

    /// The ranges of bytes that are overwritten, counted from the start of the file.
    public var ranges: [Range<Int64>] { edits.ranges }

    /// The kinds of removed content, each as the end of a sentence that begins with "It is sent without …".
    package var removed: [String] { edits.removed.phrases }

    /// The phrases in ``removed`` that are not metadata: pictures, a video, and data after the end.
    package var removedContent: [String] { edits.removed.intersection(.content).phrases }

    /// Whether the place where a picture was taken is removed: its position, or names of places.
    package var removesPosition: Bool { !edits.removed.isDisjoint(with: [.position, .places]) }

    /// Whether the file is a picture that has a video with it.
    package var hasVideo: Bool { edits.hasVideo }

    /// Overwrites the bytes of a piece of the file. Pieces may be of any size and in any order.
    ///
    /// - Parameters:
    ///   - buffer: The piece, as it was read.
    ///   - offset: The offset of the piece in the file.
    public func apply(to buffer: UnsafeMutableRawBufferPointer, at offset: Int64) {
        edits.apply(to: buffer, at: offset)
    }
}

/// Why metadata could not be removed from a file.
public struct MetadataError: PostcardError {
    /// The kind of an error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The structure of the file is damaged or unknown.
        public static let notUnderstood = Code(rawValue: "not-understood")
        /// The file cannot be read.
        public static let fileUnreadable = Code(rawValue: "file-unreadable")
    }

    /// The kind of the error.
    public let code: Code

    /// The offset at which the error was found, in bytes from the start of the file.
    public let offset: Int64

    /// The error of reading the file, if reading failed.
    public let underlyingError: (any Error)?

    /// The error, as the end of a sentence.
    let reason: String

    init(_ fault: PictureFault) {
        code = fault.underlyingError == nil ? .notUnderstood : .fileUnreadable
        offset = fault.offset
        reason = fault.reason
        underlyingError = fault.underlyingError
    }

    /// The error and where it was found, in a sentence.
    public var message: String { "The metadata cannot be removed: \(reason)." }

    /// The advice on what to do, in a sentence.
    public var advice: String? {
        "Save the picture again with another program, or send it with all its metadata: `metadata: .asIs`, or "
            + "--metadata as-is in a command."
    }
}

extension FormError {
    static func metadata(_ error: MetadataError, path: String?, partIndex: Int) -> FormError {
        FormError(
            .metadataUnreadable, "The metadata of \(path ?? "part \(partIndex)") cannot be removed: \(error.reason).",
            advice: error.advice, path: path, partIndex: partIndex, underlyingError: error)
    }

    static func metadataInStream(partIndex: Int) -> FormError {
        FormError(
            .metadataUnreadable,
            "The metadata of part \(partIndex) cannot be removed: a stream cannot be read before it is sent.",
            advice: "Write it to a file, or send it as it is.", partIndex: partIndex)
    }
}
