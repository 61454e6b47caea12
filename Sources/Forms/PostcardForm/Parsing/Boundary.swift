/// The text that separates the parts of a multipart body (RFC 2046 §5.1.1).
///
/// A boundary must not occur in the data that it separates. ``init()`` makes a boundary that cannot be guessed and
/// needs no quotes in a header. Choose your own boundary only if a test needs the same bytes every time.
public struct Boundary: Sendable, Hashable, CustomStringConvertible {
    /// The boundary's characters, without the dashes that come before them in the body.
    public let value: String

    /// The maximum number of characters that RFC 2046 §5.1.1 allows.
    public static let maximumLength = 70

    private static let prefix = "Postcard-"
    private static let alphabet = Array("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-".utf8)

    /// Makes a random boundary: 126 bits from the system's generator, in letters, digits, `-` and `_`.
    public init() {
        // Each character takes six bits. The system's generator costs a call for each 64 bits.
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
    ///   `'()+_,-./:=?`. The last character must not be a space.
    /// - Throws: ``FormError`` with the code ``FormError/Code/invalidBoundary``.
    public init(_ value: String) throws(FormError) {
        if let reason = Boundary.fault(in: value.utf8) {
            throw .invalidBoundary(value, reason: reason)
        }
        self.value = value
    }

    /// Why RFC 2046 §5.1.1 does not allow these characters as a boundary; `nil` if they are allowed.
    static func fault(in characters: some BidirectionalCollection<UInt8>) -> String? {
        fault(in: characters, where: { $0.isBoundaryCharacter })
    }

    /// Why a receiver cannot read a body with these characters as its boundary; `nil` if it can. A receiver accepts
    /// more than the RFC allows a sender: any visible ASCII, like all other receivers.
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
/// A boundary contains no CR, so a CR can only be the delimiter's first byte. A search therefore never has to go back:
/// if a match fails, no other match can have begun inside it.
struct Delimiter: Sendable {
    /// The delimiter and one more dash: the maximum that may have been read before the bytes turn out to be content.
    let heldBytes: [UInt8]

    let boundary: String

    init(boundary: String) {
        self.boundary = boundary
        heldBytes = Array("\r\n--\(boundary)-".utf8)
    }

    var bytes: ArraySlice<UInt8> { heldBytes.dropLast() }

    var count: Int { heldBytes.count - 1 }

    /// Whether the content begins with the two dashes and the boundary. Together with the line break that ends the header
    /// before the content, these bytes would be a delimiter.
    func isPrefixedWithoutLineBreak(_ content: UnsafeRawBufferPointer) -> Bool {
        content.starts(with: bytes.dropFirst(2))
    }

    /// The number of bytes at `start` that match the delimiter from its byte `matched` on. Fewer than the rest of the
    /// delimiter if the content ends or differs.
    func matchLength(from matched: Int, in content: UnsafeRawBufferPointer, at start: Int, end: Int) -> Int {
        let most = min(count - matched, end - start)
        var length = 0
        while length < most, content[start + length] == heldBytes[matched + length] { length += 1 }
        return length
    }

    /// The number of bytes at the end of a region that may begin the delimiter.
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

    /// The first index of the whole delimiter; `nil` if there is none.
    func firstIndex(in content: UnsafeRawBufferPointer) -> Int? {
        firstIndex(in: content, from: 0, end: content.count)
    }

    /// The first index of the whole delimiter between two indices; `nil` if there is none.
    ///
    /// Sixty-four positions are compared at once with the delimiter's first and last byte. In random data, both match
    /// once in 65,536 positions, and text that is almost a delimiter differs in the last byte.
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

    /// The first index of the whole delimiter. Compares positions one by one, for the remaining positions.
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

/// Checks by the first and the last byte whether a delimiter may begin at one of several positions.
private struct Probe {
    /// The number of positions that are compared at once.
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

    /// One byte for each of sixteen positions, which is zero if no delimiter begins there. The bytes are returned as
    /// words, because the standard library reads a mask lane by lane.
    @inline(__always)
    private func fits(at place: UnsafeRawPointer) -> SIMD2<UInt64> {
        let isFirst = place.loadUnaligned(as: SIMD16<UInt8>.self) .== firstBytes
        let isLast = (place + lastOffset).loadUnaligned(as: SIMD16<UInt8>.self) .== lastBytes
        return unsafeBitCast(isFirst .& isLast, to: SIMD2<UInt64>.self)
    }
}
