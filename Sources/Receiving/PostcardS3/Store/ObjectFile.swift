import Crypto
import NIOCore
import PostcardForm
import PostcardStore
import Synchronization

/// Several consecutive objects that are read as one file.
///
/// When a file is read in order, each request asks for more bytes than needed, because requests are slow. Only 16 files
/// at a time are read ahead in this way, because the extra bytes stay in memory while a client reads slowly.
final class ObjectFile: StoredFile {
    /// An object, and its offset in the file.
    struct Piece: Sendable {
        let key: String
        let offset: Int64
        let size: Int64
        var end: Int64 { offset + size }
    }

    let size: Int64
    private let objects: ObjectStore
    private let pieces: [Piece]
    private let ahead = Mutex<(offset: Int64, bytes: ByteBuffer)>((0, ByteBuffer()))
    private let place: ReadingAhead.Place?

    /// The minimum number of bytes to request while the file is read in order.
    private static let blockBytes = 1 << 20

    init(_ objects: ObjectStore, _ pieces: [Piece]) {
        self.objects = objects
        self.pieces = pieces
        size = pieces.last?.end ?? 0
        place = objects.readingAhead.place()
    }

    @concurrent
    func read(at offset: Int64, count: Int) async throws -> ByteBuffer {
        let start = min(max(offset, 0), size)
        let end = start + min(Int64(max(count, 0)), size - start)
        let kept = ahead.withLock { $0 }
        var result = ByteBuffer()
        var position = start
        if position >= kept.offset, position <= kept.offset + Int64(kept.bytes.readableBytes) {
            let index = Int(position - kept.offset)
            let count = min(kept.bytes.readableBytes - index, Int(end - position))
            result = kept.bytes.getSlice(at: kept.bytes.readerIndex + index, length: count) ?? ByteBuffer()
            position += Int64(result.readableBytes)
        }
        guard position < end else { return result }
        let isInOrder =
            place != nil && (start == kept.offset + Int64(kept.bytes.readableBytes) || result.readableBytes > 0)
        let limit = isInOrder ? min(max(end, position + Int64(Self.blockBytes)), size) : end
        var block = ByteBuffer()
        let blockStart = position
        for piece in pieces where piece.end > position && piece.offset < limit {
            let range = (position - piece.offset)..<(min(limit, piece.end) - piece.offset)
            guard let (_, body) = try await storing({ try await objects.get(piece.key, range: range) }),
                body.readableBytes == range.count
            else {
                throw UploadStoreError(
                    .unavailable, "\(objects.address(of: piece.key)) is gone.")
            }
            position += Int64(body.readableBytes)
            if block.readableBytes == 0 { block = body } else { block.writeImmutableBuffer(body) }
        }
        let wanted = block.getSlice(at: block.readerIndex, length: Int(end - blockStart)) ?? ByteBuffer()
        if place != nil { ahead.withLock { [block] in $0 = (blockStart, block) } }
        // Most reads return the bytes without copying.
        guard result.readableBytes > 0 else { return wanted }
        result.writeImmutableBuffer(wanted)
        return result
    }
}

/// Turns errors of requests into `UploadStoreError`.
func storing<Value>(_ body: () async throws -> Value) async throws -> Value {
    do {
        return try await body()
    } catch let error as S3Error {
        throw UploadStoreError(
            error.isFull ? .full : .unavailable, error.message, advice: error.advice, underlyingError: error)
    }
}

/// The digest and the first bytes of an object that is read completely.
struct ObjectReading {
    private var hash = SHA256()
    private(set) var firstBytes: [UInt8] = []

    /// The number of bytes in each request.
    private static let blockBytes: Int64 = 4 << 20

    /// Reads an object completely, for its digest and its first bytes. Throws ``S3Error`` with status 412 if the
    /// object's content has changed, and with status 404 if it is missing or shorter than in its head.
    mutating func read(_ key: String, _ head: ObjectHead, from objects: ObjectStore) async throws {
        var position: Int64 = 0
        while position < head.size {
            let range = position..<min(position + Self.blockBytes, head.size)
            guard let (_, body) = try await objects.get(key, range: range, ifMatching: head.etag),
                body.readableBytes == range.count
            else { throw S3Error.missing(objects.address(of: key)) }
            body.withUnsafeReadableBytes { hash.update(bufferPointer: $0) }
            let wanted = MediaType.firstBytesCount - firstBytes.count
            if wanted > 0 { firstBytes += body.readableBytesView.prefix(wanted) }
            position = range.upperBound
        }
    }

    var sha256: String { hash.finalize().hexadecimal }
}

/// Limits the number of files that are read ahead. Each of them uses up to 2 MiB: two blocks.
final class ReadingAhead: Sendable {
    private let free = Atomic(16)

    /// The permission to read a file ahead, which is given back when the last reference to this object is released.
    final class Place: Sendable {
        private let all: ReadingAhead

        fileprivate init(_ all: ReadingAhead) {
            self.all = all
        }

        deinit {
            all.free.add(1, ordering: .relaxed)
        }
    }

    /// Returns the permission to read a file ahead; `nil` if too many files are already read ahead.
    func place() -> Place? {
        guard free.subtract(1, ordering: .relaxed).newValue >= 0 else {
            free.add(1, ordering: .relaxed)
            return nil
        }
        return Place(self)
    }
}
