#if !canImport(ImageIO)
import CPictureCodecs
import PostcardForm
import PostcardFoundation

/// The codec that uses libjpeg-turbo, libpng, libwebp, libheif and libtiff.
struct LibraryCodec: PictureCodec {
    /// Whether the module was compiled with the headers of these libraries.
    static var isAvailable: Bool { picture_libraries() }

    /// Whether the module was compiled with the headers of libtiff, which are needed only for TIFF.
    static var readsTIFF: Bool { picture_library_tiff() }

    /// The maximum memory for a picture that cannot be read row by row, in bytes.
    static let memory = 512 << 20

    func complete(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
        switch head.type {
        case .heic?, .heif?, .avif?: try completeHEIF(head, of: source)
        case .tiff?: try completeTIFF(head, of: source)
        default: throw PictureFitError.unsupported(head.type)
        }
    }

    private func completeHEIF(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
        var (width, height): (UInt32, UInt32) = (0, 0)
        var failure = picture_failure()
        try source.withLibrarySource { source in
            guard picture_measure_heif(source, &width, &height, &failure) == PICTURE_OK else {
                throw failure.error(head.type)
            }
        }
        var head = head
        // The size is that of the upright picture, because the library rotates the pixels itself.
        head.storedSize = PictureSize(width: Int(clamping: width), height: Int(clamping: height))
        return head
    }

    private func completeTIFF(_ head: PictureHead, of source: PictureSource) throws -> PictureHead {
        guard Self.readsTIFF else { throw PictureFitError.builtWithoutPictures }
        var found = picture_tiff_head()
        var failure = picture_failure()
        try source.withLibrarySource { source in
            guard picture_measure_tiff(source, &found, &failure) == PICTURE_OK else { throw failure.error(head.type) }
        }
        var head = head
        head.storedSize = PictureSize(width: Int(clamping: found.width), height: Int(clamping: found.height))
        head.orientation = PictureOrientation(rawValue: Int(clamping: found.orientation)) ?? .upright
        // A TIFF with several pages counts as animated, because a JPEG would have only its first page.
        head.isAnimated = found.has_pages
        return head
    }

    func open(
        _ source: PictureSource, head: PictureHead, edge: Int, maximumBytes: Int64
    ) throws -> any DecodedPicture {
        guard let stored = head.storedSize else { throw PictureFitError.damaged("it has no size") }
        let receiver = RowReceiver(stored, edge: edge, orientation: head.orientation, maximumBytes: maximumBytes)
        // The decoder shrinks the picture to twice the edge at most. `RowScaler` does the rest, because it scales
        // better.
        var options = picture_options(smallest_edge: UInt32(clamping: 2 * edge), memory: Self.memory)
        var failure = picture_failure()
        let code = source.withLibrarySource { source in
            receiver.withSink { sink in
                switch head.type {
                case .jpeg?: picture_read_jpeg(source, &options, sink, &failure)
                case .png?: picture_read_png(source, &options, sink, &failure)
                case .webP?: picture_read_webp(source, &options, sink, &failure)
                case .heic?, .heif?, .avif?: picture_read_heif(source, &options, sink, &failure)
                case .tiff?: picture_read_tiff(source, &options, sink, &failure)
                default: picture_failure.unsupported(&failure)
                }
            }
        }
        if receiver.isOversized { throw PictureFitError.damaged("it has more pixels than its head says") }
        if code == PICTURE_STOPPED { throw CancellationError() }
        guard code == PICTURE_OK else { throw failure.error(head.type) }
        guard let pixels = receiver.pixels else { throw PictureFitError.damaged("the file ends within its pixels") }
        return LibraryPicture(original: pixels, profile: receiver.profile)
    }
}

/// A decoded picture, scaled to the first edge that is tried.
struct LibraryPicture: DecodedPicture {
    let original: PicturePixels
    let profile: [UInt8]
    /// The pixels at a smaller edge, scaled from the original pixels.
    var smaller: PicturePixels?

    init(original: PicturePixels, profile: [UInt8]) {
        self.original = original
        self.profile = profile
    }

    var fixedBytes: Int64 { 600 + Int64(profile.count) }

    mutating func encode(_ encoding: PictureFit.Encoding) throws -> EncodedPicture {
        if original.size.scaled(toEdge: encoding.edge) == original.size {
            return try encode(original, quality: encoding.quality)
        }
        if smaller?.size.longerEdge != encoding.edge {
            smaller = nil
            smaller = original.scaled(toEdge: encoding.edge)
        }
        return try encode(smaller ?? original, quality: encoding.quality)
    }

    private func encode(_ pixels: PicturePixels, quality: Int) throws -> EncodedPicture {
        var bytes: UnsafeMutablePointer<UInt8>?
        var count = 0
        var failure = picture_failure()
        let code = RowReceiver.none.withSink { sink in
            profile.withUnsafeBufferPointer { profile in
                pixels.bytes.withUnsafeBufferPointer { samples in
                    var rows = picture_rows()
                    rows.width = UInt32(clamping: pixels.size.width)
                    rows.height = UInt32(clamping: pixels.size.height)
                    rows.channels = UInt32(clamping: pixels.channels)
                    rows.profile = profile.isEmpty ? nil : profile.baseAddress
                    rows.profile_count = profile.count
                    // A progressive JPEG is usually smaller. For a small picture it is larger, because each scan needs
                    // tables.
                    let isProgressive = pixels.size.pixels >= 1 << 16
                    return picture_write_jpeg(
                        samples.baseAddress, &rows, Int32(clamping: quality), isProgressive, sink, &bytes, &count,
                        &failure)
                }
            }
        }
        if code == PICTURE_STOPPED { throw CancellationError() }
        if code == PICTURE_MISSING { throw PictureFitError.missingLibrary(failure.text) }
        guard code == PICTURE_OK, let bytes else { throw PictureFitError.notEncodable(failure.text) }
        defer { picture_free(bytes) }
        return EncodedPicture(bytes: Data(bytes: bytes, count: count), size: pixels.size)
    }
}

/// Receives the rows of a picture from the library.
private final class RowReceiver {
    private let stored: PictureSize
    private let edge: Int
    private let orientation: PictureOrientation
    private let maximumBytes: Int64
    private var scaler: RowScaler?
    private var rows = 0
    private(set) var profile: [UInt8] = []
    /// Whether the decoder found more pixels than the file's header announced. Only the announced size was checked
    /// against the limit.
    private(set) var isOversized = false

    init(_ stored: PictureSize, edge: Int, orientation: PictureOrientation, maximumBytes: Int64) {
        self.stored = stored
        self.edge = edge
        self.orientation = orientation
        self.maximumBytes = maximumBytes
    }

    /// A receiver for an encoder. The encoder passes no rows to it, and only asks whether to continue.
    static var none: RowReceiver {
        RowReceiver(PictureSize(width: 0, height: 0), edge: 0, orientation: .upright, maximumBytes: 0)
    }

    /// The pixels; `nil` until all rows were received.
    var pixels: PicturePixels? {
        guard let scaler, scaler.isComplete else { return nil }
        return scaler.pixels
    }

    /// Prepares for the rows of a picture. Returns whether to continue decoding.
    func start(_ rows: picture_rows) -> Bool {
        let size = PictureSize(width: Int(clamping: rows.width), height: Int(clamping: rows.height))
        isOversized = size.width > stored.width || size.height > stored.height
        guard !isOversized else { return false }
        let channels = Int(clamping: rows.channels)
        // A decoder that shrinks the picture may round its size. So the result's size is computed from the stored size.
        let goal = stored.scaled(toEdge: edge)
        let target = PictureSize(width: min(goal.width, size.width), height: min(goal.height, size.height))
        scaler = RowScaler(from: size, channels: channels, to: target, orientation: orientation)
        guard let start = rows.profile else { return true }
        let found = UnsafeBufferPointer(start: start, count: rows.profile_count)
        if PicturePlan.keepsProfile(found, count: found.count, isGrey: channels == 1, maximumBytes: maximumBytes) {
            profile = Array(found)
        }
        return true
    }

    /// Receives the next row of the picture. Returns whether to continue decoding.
    func receive(_ row: UnsafePointer<UInt8>) -> Bool {
        scaler?.receive(row)
        rows += 1
        return rows % 64 != 0 || !Task.isCancelled
    }

    func withSink<Result>(_ body: (UnsafePointer<picture_sink>) throws -> Result) rethrows -> Result {
        var sink = picture_sink(
            context: Unmanaged.passUnretained(self).toOpaque(),
            start: { context, rows in
                guard let context, let rows else { return false }
                let receiver = Unmanaged<RowReceiver>.fromOpaque(context).takeUnretainedValue()
                return receiver.start(rows.pointee) && !Task.isCancelled
            },
            row: { context, row in
                guard let context, let row else { return false }
                return Unmanaged<RowReceiver>.fromOpaque(context).takeUnretainedValue().receive(row)
            },
            proceed: { _ in !Task.isCancelled })
        return try withExtendedLifetime(self) { try body(&sink) }
    }
}

extension PictureSource {
    fileprivate func withLibrarySource<Result>(
        _ body: (UnsafePointer<picture_source>) throws -> Result
    ) rethrows -> Result {
        switch self {
        case .file(let url):
            try url.path.withCString { path in
                var source = picture_source(path: path, bytes: nil, count: 0)
                return try body(&source)
            }
        case .bytes(let data):
            try data.withUnsafeBytes { bytes in
                let start = bytes.bindMemory(to: UInt8.self).baseAddress
                var source = picture_source(path: nil, bytes: start, count: bytes.count)
                return try body(&source)
            }
        }
    }
}

extension picture_failure {
    fileprivate static func unsupported(_ failure: inout picture_failure) -> Int32 {
        failure.code = Int32(PICTURE_UNSUPPORTED)
        return failure.code
    }

    fileprivate var text: String {
        withUnsafeBytes(of: message) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    fileprivate func error(_ type: MediaType?) -> PictureFitError {
        switch Int(code) {
        case Int(PICTURE_DAMAGED): .damaged(text)
        case Int(PICTURE_MEMORY): .tooMuchMemory(text)
        case Int(PICTURE_UNREADABLE): .unreadable(text)
        case Int(PICTURE_MISSING): .missingLibrary(text)
        default: .unsupported(type, text.isEmpty ? nil : text)
        }
    }
}
#endif
