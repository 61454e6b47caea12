public import PostcardForm
public import PostcardFoundation
import PostcardPictureFormats
import Synchronization
import SystemPackage

/// Makes pictures fit a limit. The result is upright, and as good as the bytes allow.
///
/// ```swift
/// let fitter = PictureFitter()
/// let picture = try await fitter.fit(photo, to: PictureLimit(maximumBytes: 1_000_000))
/// form.append(
///     FormPart(
///         name: "petImage", filename: picture.filename(for: photo.lastPathComponent),
///         contentType: picture.contentType, content: picture.content))
/// ```
///
/// A photo is in memory at its final size only: a photo of 48 megapixels needs less than 100 MB. On Linux this is true
/// of baseline JPEG, PNG and TIFF in strips; a progressive JPEG, a WebP and a HEIC are decoded as a whole, within 512
/// MiB. Use one fitter for all pictures: it prepares one picture at a time, so that ten photos need no more memory than
/// one.
///
/// Apple platforms use ImageIO. Linux uses libjpeg-turbo, libpng, libwebp, libheif and, for TIFF, libtiff, if their
/// headers were installed when the package was compiled. Each library is loaded when a picture needs it. Without the
/// libraries, a picture that already fits is returned unchanged, and any other picture throws ``PictureFitError`` with
/// code ``PictureFitError/Code/builtWithoutPictures``.
public struct PictureFitter: Sendable {
    private let codec: any PictureCodec
    private let turns: PictureTurns

    /// Makes a fitter.
    ///
    /// - Parameter maximumConcurrentPictures: The maximum number of pictures to prepare at a time, by this fitter and
    ///   its copies. Each picture needs its own memory. Defaults to 1.
    public init(maximumConcurrentPictures: Int = 1) {
        self.init(codec: Self.defaultCodec, maximumConcurrentPictures: maximumConcurrentPictures)
    }

    init(codec: any PictureCodec, maximumConcurrentPictures: Int = 1) {
        self.codec = codec
        turns = PictureTurns(max(maximumConcurrentPictures, 1))
    }

    /// Whether this build can decode and encode pictures.
    public static var isAvailable: Bool { !(defaultCodec is AbsentCodec) }

    private static var defaultCodec: any PictureCodec {
        #if canImport(ImageIO)
        ImageIOCodec()
        #else
        LibraryCodec.isAvailable ? LibraryCodec() : AbsentCodec()
        #endif
    }

    /// Makes a picture file fit.
    ///
    /// - Parameters:
    ///   - picture: The file, which stays unchanged.
    ///   - limit: The limit that the picture must fit.
    ///   - folder: The folder for new files, which only their owner can read. It is created if it does not exist.
    ///     Defaults to `FormPart.temporaryFolder`.
    /// - Returns: The original if it fits; otherwise a new file, which the caller must remove after the upload.
    /// - Throws: ``PictureFitError`` if the picture cannot be made to fit and the limit does not allow sending the
    ///   original. `CancellationError` if the task is cancelled; then no new file remains.
    @concurrent
    public func fit(_ picture: URL, to limit: PictureLimit, in folder: URL? = nil) async throws -> FittedPicture {
        try await fit(.file(picture), to: limit) { encoded in .file(try Self.save(encoded, in: folder)) }
    }

    /// Makes a picture in memory fit.
    ///
    /// - Parameters:
    ///   - picture: The bytes of a picture file.
    ///   - limit: The limit that the picture must fit.
    /// - Returns: The original if it fits; otherwise a new picture in memory.
    /// - Throws: ``PictureFitError`` if the picture cannot be made to fit and the limit does not allow sending the
    ///   original. `CancellationError` if the task is cancelled.
    @concurrent
    public func fit(_ picture: Data, to limit: PictureLimit) async throws -> FittedPicture {
        try await fit(.bytes(picture), to: limit) { .bytes($0) }
    }

    private func fit(
        _ source: PictureSource, to limit: PictureLimit, keeping keep: (Data) throws -> FormPart.Content
    ) async throws -> FittedPicture {
        let bytes = try source.reader()
        var head = PictureHead(bytes: bytes.count)
        do {
            head = try PictureHead(reading: bytes)
            try await turns.wait()
            defer { turns.finish() }
            return try await prepare(source, &head, to: limit, keeping: keep)
        } catch let error as PictureFitError {
            guard limit.onFailure == .sendOriginal else { throw error }
            return original(source, head)
        }
    }

    private func original(_ source: PictureSource, _ head: PictureHead) -> FittedPicture {
        FittedPicture(
            content: source.content, bytes: head.bytes, size: head.size, quality: nil, contentType: head.type,
            isOriginal: true, encodings: 0)
    }

    private func prepare(
        _ source: PictureSource, _ head: inout PictureHead, to limit: PictureLimit,
        keeping keep: (Data) throws -> FormPart.Content
    ) async throws -> FittedPicture {
        // Without a limit for the edge, the size is not needed, so no codec has to read it.
        if limit.maximumEdge == .max, head.fits(limit) { return original(source, head) }
        if head.storedSize == nil { head = try codec.complete(head, of: source) }
        guard let size = head.size else { throw PictureFitError.unsupported(head.type) }
        var fit: PictureFit
        switch PicturePlan(for: head, size: size, limit: limit) {
        case .original: return original(source, head)
        case .refuse(.animated): throw PictureFitError.animated(head.type ?? .gif)
        case .refuse(.tooManyPixels): throw PictureFitError.tooManyPixels(size, limit: limit.maximumPixels)
        case .refuse: throw PictureFitError.damaged("it has no pixels")
        case .encode(let search): fit = search
        }

        var picture = try codec.open(source, head: head, edge: fit.edge, maximumBytes: limit.maximumBytes)
        fit.fixedBytes = picture.fixedBytes
        var best: EncodedPicture?
        while true {
            try Task.checkCancellation()
            switch fit.next {
            case .encode(let encoding):
                let encoded = try picture.encode(encoding)
                fit.record(Int64(encoded.bytes.count), for: encoding)
                // Only the best encoding is kept in memory.
                if fit.best?.encoding == encoding { best = encoded }
                // Other tasks of the app can use the thread between two encodings.
                await Task.yield()
            case .finished(let encoding):
                guard let best else { throw PictureFitError.notEncodable("its encoding was lost") }
                let quality = JPEGQuality.estimate(of: best.bytes) ?? encoding.quality
                return FittedPicture(
                    content: try keep(best.bytes), bytes: Int64(best.bytes.count), size: best.size,
                    quality: quality, contentType: .jpeg, isOriginal: false, encodings: fit.tries.count)
            case .impossible:
                let smallest = fit.smallest
                throw PictureFitError.cannotFit(
                    fit.maximumBytes, smallest: smallest?.bytes, edge: smallest?.encoding.edge ?? fit.edge,
                    quality: smallest?.encoding.quality ?? PictureFit.qualities.lowerBound)
            }
        }
    }

    private static func save(_ bytes: Data, in folder: URL?) throws -> URL {
        do {
            let file = try FormPart.makeFolder(folder).appending(component: "\(UUID().uuidString).jpg")
            let descriptor = try FileDescriptor.open(
                FilePath(file.path), .writeOnly, options: [.create, .exclusiveCreate, .closeOnExec],
                permissions: [.ownerRead, .ownerWrite])
            do {
                _ = try descriptor.closeAfter { try descriptor.writeAll(bytes) }
            } catch {
                // On a full disk, part of the file may have been written.
                try? FileManager.default.removeItem(at: file)
                throw error
            }
            return file
        } catch {
            throw PictureFitError.notWritable((folder ?? FormPart.temporaryFolder).path, underlyingError: error)
        }
    }
}

/// Limits the number of tasks that work at a time. Waiting tasks are served in order.
final class PictureTurns: Sendable {
    private struct State {
        var free: Int
        var waiting: [(id: UInt64, continuation: CheckedContinuation<Void, any Error>)] = []
        var lastID: UInt64 = 0
        /// The identifiers of tasks that were cancelled before they began to wait.
        var cancelled: Set<UInt64> = []
    }

    private let state: Mutex<State>

    init(_ count: Int) {
        state = Mutex(State(free: count))
    }

    /// Waits until the task may work. The task must call ``finish()`` after its work.
    ///
    /// - Throws: `CancellationError` if the task is cancelled first.
    func wait() async throws {
        try Task.checkCancellation()
        let id = state.withLock { state in
            state.lastID += 1
            return state.lastID
        }
        try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let result: Result<Void, any Error>? = state.withLock { state in
                    if state.cancelled.remove(id) != nil { return .failure(CancellationError()) }
                    if state.free > 0 {
                        state.free -= 1
                        return .success(())
                    }
                    state.waiting.append((id, continuation))
                    return nil
                }
                if let result { continuation.resume(with: result) }
            }
        } onCancel: {
            let continuation = state.withLock { state -> CheckedContinuation<Void, any Error>? in
                guard let index = state.waiting.firstIndex(where: { $0.id == id }) else {
                    state.cancelled.insert(id)
                    return nil
                }
                return state.waiting.remove(at: index).continuation
            }
            continuation?.resume(throwing: CancellationError())
        }
        // If a task was cancelled just after its turn came, its identifier was recorded. It is removed here.
        state.withLock { _ = $0.cancelled.remove(id) }
    }

    /// Ends the work of a task, and lets the next waiting task start.
    func finish() {
        let next = state.withLock { state -> CheckedContinuation<Void, any Error>? in
            guard !state.waiting.isEmpty else {
                state.free += 1
                return nil
            }
            return state.waiting.removeFirst().continuation
        }
        next?.resume()
    }
}

/// A picture within its limit: the unchanged original, or a new JPEG.
///
/// A new JPEG is upright and keeps the color profile, but has no EXIF or XMP, and so no location, time, camera or
/// owner. An original keeps all its metadata, which `FormPart.metadata` can remove.
public struct FittedPicture: Sendable {
    /// The picture: a file, or bytes if the caller passed bytes. The caller must remove a new file after the upload.
    public let content: FormPart.Content

    /// The number of bytes.
    public let bytes: Int64

    /// The size of the upright picture; `nil` for an original whose size could not be read.
    public let size: PictureSize?

    /// The quality of the JPEG on the scale of libjpeg, from 50 to 82; `nil` for an original.
    ///
    /// The quality is read from the JPEG's quantization tables, so that it means the same for every encoder. It can be
    /// slightly higher than 82 if the encoder's own scale has no step at 82.
    public let quality: Int?

    /// The picture's media type according to its bytes; `nil` for an original of an unknown type.
    public let contentType: MediaType?

    /// Whether the picture is the original, byte for byte.
    public let isOriginal: Bool

    /// The number of times that the picture was encoded: 0 for an original, otherwise at most 6.
    public let encodings: Int

    /// The filename for sending the picture: the original's name, with the extension of the new type.
    ///
    /// - Parameter filename: The name of the original, such as `IMG_0001.HEIC`, which becomes `IMG_0001.jpg`.
    public func filename(for filename: String) -> String {
        guard !isOriginal, MediaType.forExtension(of: filename) != .jpeg else { return filename }
        guard let dot = filename.lastIndex(of: "."), MediaType.forExtension(of: filename) != nil else {
            return filename.isEmpty ? "picture.jpg" : "\(filename).jpg"
        }
        let stem = filename[..<dot]
        return "\(stem.isEmpty ? "picture" : stem).jpg"
    }
}
