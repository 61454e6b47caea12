/// The text that separates the parts of a multipart body (RFC 2046 §5.1.1).
///
/// A boundary must not occur in the data that it separates. ``init()`` makes one that cannot be guessed and that needs
/// no quotes in a header; choose your own only if a test needs the same bytes every time.
public struct Boundary: Sendable, Hashable, CustomStringConvertible {
    /// The boundary's characters, without the dashes before it in the body.
    public let value: String

    /// The maximum number of characters that RFC 2046 §5.1.1 allows.
    public static let maximumLength = 70

    private static let prefix = "Postcard-"
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-".utf8)

    /// Makes a random boundary: 126 bits from the system's generator, in letters, digits, `-` and `_`.
    public init() {
        // Six bits a character. The system's generator costs a call for each 64 bits.
        var bits = UInt128.random(in: 0 ... .max)
        let length = Self.prefix.utf8.count + 21
        value = String(unsafeUninitializedCapacity: length) { characters in
            for index in characters.initialize(from: Self.prefix.utf8).index..<length {
                characters.initializeElement(at: index, to: Self.alphabet[Int(truncatingIfNeeded: bits & 63)])
                bits >>= 6
            }
            return length
        }
    }

    /// Makes a boundary from the caller's own text.
    ///
    /// - Parameter value: 1 to 70 of the characters that RFC 2046 §5.1.1 allows: letters, digits, space and
    ///   `'()+_,-./:=?`, the last of them not a space.
    /// - Throws: ``FormError`` with the code ``FormError/Code/invalidBoundary``.
    public init(_ value: String) throws(FormError) {
        if let reason = Boundary.fault(in: value.utf8) {
            throw .invalidBoundary(value, reason: reason)
        }
        self.value = value
    }

    /// Why RFC 2046 §5.1.1 does not allow these characters as a boundary; `nil` if it does.
    static func fault(in characters: some BidirectionalCollection<UInt8>) -> String? {
        fault(in: characters, where: { $0.isBoundaryCharacter })
    }

    /// What keeps a receiver from reading a body with these characters as its boundary. It reads more than the
    /// RFC allows a sender, as all receivers in the field do: any visible ASCII.
    static func faultForReceiving(in characters: some BidirectionalCollection<UInt8>) -> String? {
        fault(in: characters) { (0x20..<0x7F).contains($0) }
    }

    private static func fault(
        in characters: some BidirectionalCollection<UInt8>, where isAllowed: (UInt8) -> Bool
    ) -> String? {
        guard let last = characters.last else { return "it is empty" }
        if characters.count > maximumLength {
            return "it has \(characters.count) characters and at most \(maximumLength) are allowed"
        }
        if let index = characters.firstIndex(where: { !isAllowed($0) }) {
            return "its character \(characters.distance(from: characters.startIndex, to: index) + 1) is not allowed"
        }
        return last == .space ? "it ends in a space" : nil
    }

    /// The boundary as the value of a `boundary` parameter: in quotes only if the grammar requires them.
    var parameterValue: String {
        value.utf8.allSatisfy { $0.isTokenCharacter } ? value : "\"\(value)\""
    }

    public var description: String { value }
}

/// The bytes between two parts: CRLF, two dashes and the boundary (RFC 2046 §5.1.1).
///
/// A boundary holds no CR, so a CR can only be the delimiter's first byte. So a search never has to go back: if a match
/// fails, no other can have begun inside it.
struct Delimiter: Sendable {
    /// The delimiter and one more dash: what may have been read before it turns out to be content.
    let heldBytes: [UInt8]

    let boundary: String

    init(boundary: String) {
        self.boundary = boundary
        heldBytes = Array("\r\n--\(boundary)-".utf8)
    }

    var bytes: ArraySlice<UInt8> { heldBytes.dropLast() }

    var count: Int { heldBytes.count - 1 }

    /// Whether the content begins with the delimiter without its line break, which the blank line before the content
    /// would replace.
    func isPrefixedWithoutLineBreak(_ content: UnsafeRawBufferPointer) -> Bool {
        content.starts(with: bytes.dropFirst(2))
    }

    /// How many of the delimiter's bytes from `matched` on are at `start`; fewer than the rest if the content ends or
    /// differs.
    func matchLength(from matched: Int, in content: UnsafeRawBufferPointer, at start: Int, end: Int) -> Int {
        let most = min(count - matched, end - start)
        var length = 0
        while length < most, content[start + length] == heldBytes[matched + length] { length += 1 }
        return length
    }

    /// How many bytes at the end of a region might begin the delimiter.
    func prefixLength(atEndOf content: UnsafeRawBufferPointer, from start: Int, end: Int) -> Int {
        var index = end
        while index > start, end - index < count - 1 {
            index -= 1
            if content[index] == .carriageReturn {
                return matchLength(from: 0, in: content, at: index, end: end) == end - index ? end - index : 0
            }
        }
        return 0
    }

    /// The first index of the whole delimiter.
    func firstIndex(in content: UnsafeRawBufferPointer) -> Int? {
        firstIndex(in: content, from: 0, end: content.count)
    }

    /// The first index of the whole delimiter between two indices.
    ///
    /// Sixty-four places are compared at once with the delimiter's first and last byte. Random data matches both once
    /// in 65,536 places, and near-delimiters differ in the last byte.
    func firstIndex(in content: UnsafeRawBufferPointer, from start: Int, end: Int) -> Int? {
        guard let base = content.baseAddress, end - start >= count else { return nil }
        let beyond = end - count + 1
        let probe = Probe(lastByte: heldBytes[count - 1], lastOffset: count - 1)
        var index = start
        while index + Probe.width <= beyond {
            if probe.mayFit(at: base + index),
                let found = firstIndex(base, from: index, beyond: index + Probe.width)
            {
                return found
            }
            index += Probe.width
        }
        return firstIndex(base, from: index, beyond: beyond)
    }

    /// Whether the bytes at an address are the whole delimiter. Compares eight bytes at a time.
    private func isWhole(_ place: UnsafeRawPointer, _ wanted: UnsafeRawPointer) -> Bool {
        var index = 0
        while index + 8 <= count {
            if (place + index).loadUnaligned(as: UInt64.self) != (wanted + index).loadUnaligned(as: UInt64.self) {
                return false
            }
            index += 8
        }
        while index < count {
            if place.load(fromByteOffset: index, as: UInt8.self) != wanted.load(fromByteOffset: index, as: UInt8.self) {
                return false
            }
            index += 1
        }
        return true
    }

    /// Compares the remaining places one by one.
    private func firstIndex(_ base: UnsafeRawPointer, from start: Int, beyond: Int) -> Int? {
        heldBytes.withUnsafeBytes { bytes in
            guard let wanted = bytes.baseAddress else { return nil }
            let last = count - 4
            let head = wanted.loadUnaligned(as: UInt32.self)
            let tail = (wanted + last).loadUnaligned(as: UInt32.self)
            var index = start
            while index < beyond {
                let place = base + index
                if place.loadUnaligned(as: UInt32.self) == head,
                    (place + last).loadUnaligned(as: UInt32.self) == tail, isWhole(place, wanted)
                {
                    return index
                }
                index += 1
            }
            return nil
        }
    }
}

/// Checks whether a delimiter may begin in a run of places, by its first and its last byte.
private struct Probe {
    /// The number of places that are compared at once.
    static let width = 64

    private let firstBytes = SIMD16<UInt8>(repeating: .carriageReturn)
    private let lastBytes: SIMD16<UInt8>
    private let lastOffset: Int

    init(lastByte: UInt8, lastOffset: Int) {
        lastBytes = SIMD16(repeating: lastByte)
        self.lastOffset = lastOffset
    }

    @inline(__always)
    func mayFit(at place: UnsafeRawPointer) -> Bool {
        let found = fits(at: place) | fits(at: place + 16) | fits(at: place + 32) | fits(at: place + 48)
        return found.x | found.y != 0
    }

    /// A byte for each of sixteen places, zero if no delimiter begins there. They are returned as words, because the
    /// standard library reads a mask lane by lane.
    @inline(__always)
    private func fits(at place: UnsafeRawPointer) -> SIMD2<UInt64> {
        let isFirst = place.loadUnaligned(as: SIMD16<UInt8>.self) .== firstBytes
        let isLast = (place + lastOffset).loadUnaligned(as: SIMD16<UInt8>.self) .== lastBytes
        return unsafeBitCast(isFirst .& isLast, to: SIMD2<UInt64>.self)
    }
}
