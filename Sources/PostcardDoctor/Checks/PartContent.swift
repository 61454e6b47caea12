import Crypto
import PostcardForm

/// A part's content as it goes by: its digest, its ends, and where its format stops.
struct PartContent: Sendable {
    private(set) var size: Int64 = 0
    private(set) var start: [UInt8] = []
    /// The last bytes.
    private(set) var tail: [UInt8] = []
    private(set) var picture = PictureEnd()
    private var hash = SHA256()

    /// As much as tells a text from bytes.
    static let textSample = 4 << 10
    /// A JPEG's first segments, of which one may hold EXIF.
    private static let pictureSample = 68 << 10
    private static let tailBytes = 8

    var sha256: String { hash.finalize().hexadecimal }

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        size += Int64(bytes.count)
        hash.update(bufferPointer: bytes)
        // The first two bytes say how much more of them is wanted.
        let first = bytes.prefix(max(2 - start.count, 0))
        start += first
        start += bytes.dropFirst(first.count).prefix(max(sample - start.count, 0))
        picture.read(bytes)
        tail += bytes.suffix(Self.tailBytes)
        tail.removeFirst(max(tail.count - Self.tailBytes, 0))
    }

    private var sample: Int { start.starts(with: [0xFF, 0xD8]) ? Self.pictureSample : Self.textSample }

    /// Whether all of it is in ``start``.
    var isWhole: Bool { size == Int64(start.count) }

    /// The whole text, of a short content in UTF-8.
    var text: String? { isWhole && size <= Int64(Self.textSample) ? String(validating: start, as: UTF8.self) : nil }

    /// Whether the first bytes are UTF-8, a character that is cut off at their end aside.
    var isUTF8: Bool {
        if isWhole { return String(validating: start, as: UTF8.self) != nil }
        return (0...3).contains { String(validating: start.dropLast($0), as: UTF8.self) != nil }
    }
}
