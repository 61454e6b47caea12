import Crypto
import NIOCore
import PostcardForm

/// Reads an object from its beginning to its end, for its digest and its first bytes.
struct ObjectReading {
    private var hash = SHA256()
    private(set) var firstBytes: [UInt8] = []

    /// The size of a request.
    private static let blockBytes: Int64 = 4 << 20

    /// - Throws: ``S3Error`` with status 412 if the object has another content by now.
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
