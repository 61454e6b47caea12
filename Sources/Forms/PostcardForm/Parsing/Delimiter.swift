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
