public import PostcardFoundation
import PostcardPictureFormats

/// The metadata to remove from a picture or video while it is sent: its location and owner, or everything.
///
/// Forms send pictures and videos without their location by default: ``picturesWithoutLocation``.
///
/// ```swift
/// form.append(fileAt: photo, named: "petImage")
/// form.append(fileAt: map, named: "map", metadata: .asIs)
/// ```
///
/// Pixels are never decoded. Metadata is overwritten in place while the bytes are read, so the length and the picture
/// stay the same. The file on disk is not changed or copied.
///
/// JPEG, PNG, WebP, GIF, BMP, TIFF, DNG (such as Apple ProRAW), HEIC, AVIF, MP4 and QuickTime files are supported and
/// recognized by their bytes. Any other or damaged file, such as a PDF, a BigTIFF or a raw picture in a camera maker's
/// own format, is an error unless ``ifUnreadable(_:)`` allows it.
///
/// In a TIFF or DNG, the values of removed entries are overwritten. Unused bytes are overwritten too, unless there are
/// more than 64 KiB in a row. Such a row is sent, because it has pixels in a private format.
///
/// A JPEG is read completely, because only its pixels show where it ends and whether other bytes follow. The pixels of
/// other files are not read.
public struct MetadataPolicy: Sendable, Hashable, Codable {
    /// The way to treat a file whose metadata cannot be read.
    public enum Unreadable: String, Sendable, Hashable, Codable {
        /// Laying out the form fails with ``FormError/Code/metadataUnreadable``, a code of ``FormError``.
        case fail
        /// The file is sent unchanged, with all its metadata.
        case sendAsIs
    }

    /// The metadata to remove; `nil` to remove none.
    private let removal: MetadataScan.Removal?
    /// Whether a file that is neither a picture nor a video is sent unchanged.
    private let sparesOthers: Bool
    private(set) var unreadable = Unreadable.fail

    private init(_ removal: MetadataScan.Removal?, sparingOthers sparesOthers: Bool = false) {
        self.removal = removal
        self.sparesOthers = sparesOthers
    }

    /// Removes nothing: files are sent byte for byte.
    public static let asIs = MetadataPolicy(nil)

    /// Removes where a picture was taken and whose it is: positions and place names, names of owners, authors and
    /// persons, serial numbers, and camera makers' own data, which may contain any of these. The camera's model and
    /// settings, the time, titles, descriptions and copyright notices stay.
    ///
    /// JPEGs and videos after the end of a JPEG or HEIC stay, because motion photos need them, but without positions
    /// (Google's MicroVideo and MotionPhoto, Samsung's trailer, the `mpvd` box). Apple's data keeps the name of a Live
    /// Photo's video and the brightness of the picture. All other data after a picture's end is overwritten.
    public static let withoutLocation = MetadataPolicy(.location)

    /// Sends pictures and videos ``withoutLocation``, and other files byte for byte. The default of forms.
    ///
    /// Files are recognized by their first bytes. A picture or video with unreadable metadata is an error: a damaged
    /// one, one in WebM, or a raw picture in a camera maker's own format. ``asIs`` sends such a file anyway. A WebM
    /// sound file begins like a video, but is sent unchanged if the part's type is `audio/webm` or its filename ends in
    /// `.weba`. Streams are sent unchanged, because they cannot be read in advance.
    public static let picturesWithoutLocation = MetadataPolicy(.location, sparingOthers: true)

    /// Removes everything from a picture but the pixels, orientation and color profile, and everything from a video but
    /// pictures and sound, so that subtitles are lost too. All bytes after a picture's end are overwritten, even the
    /// video of a motion photo. A DNG also keeps the camera's model and how its pixels are rendered, because programs
    /// need both to open it.
    public static let none = MetadataPolicy(.everything)

    /// A copy of the policy with another way to treat a file with unreadable metadata. The default is an error.
    public func ifUnreadable(_ choice: Unreadable) -> MetadataPolicy {
        var policy = self
        policy.unreadable = choice
        return policy
    }

    /// Finds the bytes to overwrite in a file. Reads the structure of the file, not its pixels.
    ///
    /// - Parameters:
    ///   - length: The size of the file, in bytes.
    ///   - read: Reads from an offset into a buffer and returns the number of bytes, 0 at the end.
    /// - Throws: ``MetadataError`` if the structure is not understood or too large, or if `read` throws.
    ///   ``ifUnreadable(_:)`` does not apply.
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
        do throws(ScanError) {
            var scan = MetadataScan(removal, length: length, read: read)
            return FileEdits(try scan.editsOfFile(sparingOthers: sparesOthers, declaredAs: type?.value))
        } catch {
            throw MetadataError(error)
        }
    }

    /// A copy of a picture in memory without its metadata, of the same length.
    ///
    /// - Throws: ``MetadataError`` if the structure is not understood. ``ifUnreadable(_:)`` does not apply.
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
    /// Whether unreadable metadata is an error even for files that are neither pictures nor videos.
    var needsStructure: Bool { removal != nil && unreadable == .fail && !sparesOthers }

    /// The edits that the policy makes in a file of a form.
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

    /// The bytes to send for content in memory: the content without the removed metadata.
    func applied(to bytes: Data, declaredAs type: MediaType?, partIndex: Int) throws(FormError) -> Data {
        do {
            return try applied(to: bytes, declaredAs: type)
        } catch {
            if unreadable == .fail { throw .metadata(error, path: nil, partIndex: partIndex) }
            return bytes
        }
    }
}

/// The bytes of a file to overwrite while it is read, in ascending order and without overlaps.
public struct FileEdits: Sendable, Hashable {
    private let edits: PictureEdits

    init(_ edits: PictureEdits = PictureEdits()) {
        self.edits = edits
    }

    /// Whether there are no edits.
    public var isEmpty: Bool { edits.isEmpty }

    /// The ranges of bytes to overwrite, counted from the start of the file.
    public var ranges: [Range<Int64>] { edits.ranges }

    /// The kinds of removed content, each as the end of a sentence that begins with "It is sent without".
    package var removed: [String] { edits.removed.phrases }

    /// The entries of ``removed`` that are not metadata: further pictures, a video, and data after the picture's end.
    package var removedContent: [String] { edits.removed.intersection(.content).phrases }

    /// Whether the edits remove where a picture was taken: its position, or names of places.
    package var removesPosition: Bool { !edits.removed.isDisjoint(with: [.position, .places]) }

    /// Whether the file is a picture that also contains a video.
    package var hasVideo: Bool { edits.hasVideo }

    /// Overwrites bytes in a piece of the file. Pieces may be of any size and in any order.
    ///
    /// - Parameters:
    ///   - buffer: The piece of the file.
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

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The structure of the file is damaged or unknown.
        public static let notUnderstood = Code(rawValue: "not-understood")
        /// The file cannot be read.
        public static let fileUnreadable = Code(rawValue: "file-unreadable")
    }

    /// The kind of the error.
    public let code: Code

    /// The offset of the error, in bytes from the start of the file.
    public let offset: Int64

    /// The error of reading the file; `nil` if reading did not fail.
    public let underlyingError: (any Error)?

    /// The reason, as the end of a sentence.
    let reason: String

    init(_ error: ScanError) {
        code = error.underlyingError == nil ? .notUnderstood : .fileUnreadable
        offset = error.offset
        reason = error.reason
        underlyingError = error.underlyingError
    }

    /// The error, in a sentence.
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
