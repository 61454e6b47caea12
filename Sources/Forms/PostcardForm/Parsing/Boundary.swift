/// The text that separates the parts of a multipart body (RFC 2046 §5.1.1).
///
/// A boundary must not occur in the contents of the parts. ``init()`` makes a boundary that cannot be guessed and needs
/// no quotes in a header. Set your own boundary only if a test needs the same bytes every time.
public struct Boundary: Sendable, Hashable, CustomStringConvertible {
    /// The boundary's characters, without the dashes before it in the body.
    public let value: String

    /// The maximum number of characters that RFC 2046 §5.1.1 allows.
    public static let maximumLength = 70

    private static let prefix = "Postcard-"
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-".utf8)

    /// Makes a random boundary of letters, digits, `-` and `_`, with 126 bits from the system's generator.
    public init() {
        // A character takes six bits, and each call of the system's generator gives 64 bits.
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

    /// Makes a boundary from a text.
    ///
    /// - Parameter value: 1 to 70 of the characters that RFC 2046 §5.1.1 allows: letters, digits, space and
    ///   `'()+_,-./:=?`. The last character must not be a space.
    /// - Throws: ``FormError`` with the code ``FormError/Code/invalidBoundary``.
    public init(_ value: String) throws(FormError) {
        if let reason = Boundary.reasonToReject(value.utf8) {
            throw .invalidBoundary(value, reason: reason)
        }
        self.value = value
    }

    /// The reason why RFC 2046 §5.1.1 does not allow a boundary; `nil` if it is allowed.
    static func reasonToReject(_ characters: some BidirectionalCollection<UInt8>) -> String? {
        reasonToReject(characters, where: { $0.isBoundaryCharacter })
    }

    /// The reason why a receiver cannot use a boundary; `nil` if it can. Like other receivers, the parser accepts
    /// spaces and any visible ASCII, which is more than the RFC allows.
    static func reasonToRejectReceived(_ characters: some BidirectionalCollection<UInt8>) -> String? {
        reasonToReject(characters) { (0x20..<0x7F).contains($0) }
    }

    private static func reasonToReject(
        _ characters: some BidirectionalCollection<UInt8>, where isAllowed: (UInt8) -> Bool
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

    /// The value of a `boundary` parameter, in quotes only if the grammar requires them.
    var parameterValue: String {
        value.utf8.allSatisfy { $0.isTokenCharacter } ? value : "\"\(value)\""
    }

    public var description: String { value }
}

/// The bytes between two parts: CRLF, two dashes and the boundary (RFC 2046 §5.1.1).
///
/// A boundary contains no CR, so every CR may begin a delimiter but never continue one. After a failed match, the
/// search therefore never has to go back.
struct Delimiter: Sendable {
    /// The delimiter and one more dash. The parser holds at most these bytes before they turn out to be content.
    let heldBytes: [UInt8]

    let boundary: String

    init(boundary: String) {
        self.boundary = boundary
        heldBytes = Array("\r\n--\(boundary)-".utf8)
    }

    var bytes: ArraySlice<UInt8> { heldBytes.dropLast() }

    var count: Int { heldBytes.count - 1 }

    /// Whether the content begins with two dashes and the boundary. After the header's line break, they are a
    /// delimiter.
    func isPrefixedWithoutLineBreak(_ content: UnsafeRawBufferPointer) -> Bool {
        content.starts(with: bytes.dropFirst(2))
    }

    /// The number of bytes at `start` that continue a match of the first `matched` bytes of the delimiter. The match
    /// stops where the content ends or differs.
    func matchLength(from matched: Int, in content: UnsafeRawBufferPointer, at start: Int, end: Int) -> Int {
        let most = min(count - matched, end - start)
        var length = 0
        while length < most, content[start + length] == heldBytes[matched + length] { length += 1 }
        return length
    }

    /// The number of bytes at the end of a region that may begin a delimiter.
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

    /// The first index of a whole delimiter; `nil` if there is none.
    func firstIndex(in content: UnsafeRawBufferPointer) -> Int? {
        firstIndex(in: content, from: 0, end: content.count)
    }

    /// The first index of a whole delimiter between two indices; `nil` if there is none.
    ///
    /// Compares 64 positions at once with the delimiter's first and last byte. In random data, both match once in
    /// 65,536 positions. Text that is similar to a delimiter usually differs in the last byte.
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
        // The remaining positions are compared together with positions before them, if there are any.
        let last = beyond - Probe.width
        if last >= start, !probe.mayFit(at: base + last) { return nil }
        return firstIndex(base, from: index, beyond: beyond)
    }

    /// Whether the bytes at an address are a whole delimiter. Compares eight bytes at a time.
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

    /// The first index of a whole delimiter. Compares the last few positions one by one.
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

/// Compares several positions at once with the first and last byte of the delimiter.
private struct Probe {
    /// The number of positions to compare at once.
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

    /// Returns sixteen bytes, one for each position from `place` on. A byte is zero if no delimiter begins at its
    /// position. The result is two words, because the standard library is slow at reading a mask lane by lane.
    @inline(__always)
    private func fits(at place: UnsafeRawPointer) -> SIMD2<UInt64> {
        let isFirst = place.loadUnaligned(as: SIMD16<UInt8>.self) .== firstBytes
        let isLast = (place + lastOffset).loadUnaligned(as: SIMD16<UInt8>.self) .== lastBytes
        return unsafeBitCast(isFirst .& isLast, to: SIMD2<UInt64>.self)
    }
}
