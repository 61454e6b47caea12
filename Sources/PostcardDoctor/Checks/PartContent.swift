import Crypto
import PostcardForm

/// A part's content as it goes by: its digest, its ends, and where its format stops.
struct PartContent: Sendable {
    private(set) var size: Int64 = 0
    private(set) var start: [UInt8] = []
    /// The last bytes.
    private(set) var tail: [UInt8] = []
    private(set) var picture = PictureEnd()
    private(set) var photo = PhotoMetadata()
    private var hash = SHA256()

    /// As much as tells a text from bytes.
    static let textSample = 4 << 10
    private static let tailBytes = 8

    var sha256: String { hash.finalize().hexadecimal }

    mutating func read(_ bytes: UnsafeRawBufferPointer) {
        guard !bytes.isEmpty else { return }
        size += Int64(bytes.count)
        hash.update(bufferPointer: bytes)
        start += bytes.prefix(max(Self.textSample - start.count, 0))
        picture.read(bytes)
        photo.read(bytes)
        tail += bytes.suffix(Self.tailBytes)
        tail.removeFirst(max(tail.count - Self.tailBytes, 0))
    }

    /// Whether all of it is in ``start``.
    var isWhole: Bool { size == Int64(start.count) }

    /// The whole text, of a short content in UTF-8.
    var text: String? { isWhole && size <= Int64(Self.textSample) ? String(validating: start, as: UTF8.self) : nil }

    /// The text, or as many of its first words as there are; `nil` where it is not in UTF-8.
    var words: String? {
        if isWhole { return String(validating: start, as: UTF8.self) }
        let beginning = (0...3).lazy.compactMap { String(validating: start.dropLast($0), as: UTF8.self) }.first
        return beginning.map { String($0[..<($0.lastIndex { $0.isASCII && $0.isWhitespace } ?? $0.endIndex)]) }
    }

    /// How many of the first bytes are UTF-8.
    var validUTF8Count: Int {
        var iterator = start.makeIterator()
        var parser = Unicode.UTF8.ForwardParser()
        var count = 0
        while case .valid(let scalar) = parser.parseScalar(from: &iterator) { count += scalar.count }
        return count
    }

    /// Whether the first bytes are UTF-8, a character that is cut off at their end aside.
    var isUTF8: Bool {
        if isWhole { return String(validating: start, as: UTF8.self) != nil }
        return (0...3).contains { String(validating: start.dropLast($0), as: UTF8.self) != nil }
    }
}
