import PostcardForm

/// A section of a body while it is read, with a few earlier bytes.
///
/// Indices are indices of ``bytes``. Offsets count from the start of the body.
struct BodyBuffer: Sendable {
    private(set) var bytes: [UInt8] = []

    /// The offset in the body of the first byte in ``bytes``.
    private(set) var offset: Int64 = 0

    /// Whether the body has ended.
    private(set) var isLast = false

    var count: Int { bytes.count }

    func offset(of index: Int) -> Int64 { offset + Int64(index) }

    subscript(_ index: Int) -> UInt8? { bytes.indices.contains(index) ? bytes[index] : nil }

    mutating func append(_ new: RawSpan) {
        countSteps(new.byteCount)
        new.withUnsafeBytes { bytes.append(contentsOf: $0) }
    }

    mutating func end() {
        isLast = true
    }

    /// Drops read bytes, except those that an excerpt may show. Returns the number to subtract from every index.
    mutating func forget(before index: Int) -> Int {
        let count = max(index - Excerpt.reach, 0)
        countSteps(bytes.count - count)
        bytes.removeFirst(count)
        offset += Int64(count)
        return count
    }

    func excerpt(at place: Int64) -> Excerpt {
        let index = Int(min(max(place - offset, 0), Int64(count)))
        let range = max(index - Excerpt.reach, 0)..<min(index + Excerpt.reach, count)
        return Excerpt(offset: offset(of: range.lowerBound), bytes: Array(bytes[range]))
    }

    /// Whether the bytes at an index equal a text, ignoring case.
    func holds(_ lowercase: String, at index: Int) -> Bool {
        guard index >= 0, index + lowercase.utf8.count <= count else { return false }
        countSteps(1)
        var place = index
        for byte in lowercase.utf8 {
            guard bytes[place].asciiLowercased == byte else { return false }
            place += 1
        }
        return true
    }

    func holds(_ wanted: [UInt8], at index: Int) -> Bool {
        index >= 0 && index + wanted.count <= count && bytes[index..<(index + wanted.count)].elementsEqual(wanted)
    }

    func lineBreak(at index: Int) -> LineBreak? {
        switch self[index] {
        case .carriageReturn?: self[index + 1] == .lineFeed ? .crlf : .cr
        case .lineFeed?: .lf
        default: nil
        }
    }

    func lineBreak(before index: Int) -> LineBreak? {
        switch self[index - 1] {
        case .lineFeed?: self[index - 2] == .carriageReturn ? .crlf : .lf
        case .carriageReturn?: .cr
        default: nil
        }
    }

    /// The end of the line at an index: its line break, the end of the buffer, or the limit. A CR without LF ends the
    /// line only with `endingAtCarriageReturn`.
    func lineEnd(from index: Int, endingAtCarriageReturn: Bool = false, limit: Int = .max) -> Int {
        var end = index
        while end < min(count, limit), bytes[end] != .lineFeed {
            if bytes[end] == .carriageReturn, endingAtCarriageReturn || self[end + 1] == .lineFeed { break }
            end += 1
        }
        countSteps(end - index)
        return end
    }

    /// The number of dashes before an index, if they begin a line; 0 if they do not.
    func dashes(before index: Int, atMost maximum: Int) -> Int {
        var start = index
        while index - start < maximum, self[start - 1] == .dash { start -= 1 }
        return lineBreak(before: start) == nil ? 0 : index - start
    }

    /// The last line of the body without its line break; `nil` if the line is longer than the buffer.
    var lastLine: Range<Int>? {
        let end = count - (lineBreak(before: count)?.length ?? 0)
        var start = end
        while start > 0, lineBreak(before: start) == nil { start -= 1 }
        countSteps(end - start)
        return start > 0 ? start..<end : nil
    }

    func skippingBlanks(from index: Int) -> Int {
        var end = index
        while let byte = self[end], byte.isBlank { end += 1 }
        countSteps(end - index)
        return end
    }
}

/// The bytes that end a line.
enum LineBreak: Sendable, Hashable {
    case crlf, lf, cr

    var length: Int { self == .crlf ? 2 : 1 }
}

/// Finds a short sequence of bytes in a long one.
///
/// Looks for the first and last byte at sixteen positions at once, which is faster than hashing.
struct ByteSearch: Sendable {
    let needle: [UInt8]

    init(_ needle: some Sequence<UInt8>) {
        self.needle = Array(needle)
    }

    /// The first index of the whole sequence in a range of bytes; `nil` if there is none.
    func firstIndex(in bytes: [UInt8], from start: Int, end: Int) -> Int? {
        let end = min(end, bytes.count)
        guard let first = needle.first, let last = needle.last, end - start >= needle.count else { return nil }
        let found = bytes.withUnsafeBytes { all -> Int? in
            guard let base = all.baseAddress else { return nil }
            let beyond = end - needle.count + 1
            let firsts = SIMD16<UInt8>(repeating: first)
            let lasts = SIMD16<UInt8>(repeating: last)
            var index = start
            while index + 16 <= beyond {
                let isFirst = (base + index).loadUnaligned(as: SIMD16<UInt8>.self) .== firsts
                let isLast = (base + index + needle.count - 1).loadUnaligned(as: SIMD16<UInt8>.self) .== lasts
                let fits = unsafeBitCast(isFirst .& isLast, to: SIMD2<UInt64>.self)
                if fits.x | fits.y != 0, let found = place(in: all, from: index, beyond: index + 16) { return found }
                index += 16
            }
            return place(in: all, from: index, beyond: beyond)
        }
        countSteps((found ?? end) - start)
        return found
    }

    private func place(in bytes: UnsafeRawBufferPointer, from start: Int, beyond: Int) -> Int? {
        var index = start
        while index < beyond {
            var length = 0
            while length < needle.count, bytes[index + length] == needle[length] { length += 1 }
            if length == needle.count { return index }
            index += 1
        }
        return nil
    }
}

/// The final bytes that all pictures of a format have.
enum PictureEnd {
    static let jpeg: [UInt8] = [0xFF, 0xD9]
    static let png = Array("IEND".utf8) + [0xAE, 0x42, 0x60, 0x82]
}

extension BodyBuffer {
    /// Whether a known field of a part's header begins at an index.
    func beginsHeader(at index: Int) -> Bool {
        holds("content-disposition", at: index) || holds("content-type", at: index)
            || holds("content-transfer-encoding", at: index) || holds("content-length", at: index)
    }

    /// Whether a line ends at an index and a part's header follows, perhaps after a blank line.
    func beginsPart(behind index: Int) -> Bool { header(behind: index) != nil }

    /// Whether only dashes are between the start of a line and an index, at least one.
    func followsDashes(_ index: Int) -> Bool {
        var start = index
        while let byte = self[start - 1], byte == .dash { start -= 1 }
        countSteps(index - start)
        return start < index && (start == 0 || lineBreak(before: start) != nil)
    }

    /// Whether a dash precedes an index, or only dashes and blanks precede it on its line. Two dashes after a text do
    /// not count: they belong to the text.
    func isIndented(_ index: Int) -> Bool {
        if self[index - 1] == .dash {
            let isText =
                self[index - 3].map { $0 != .dash && !$0.isBlank } == true && lineBreak(before: index - 2) == nil
            return !(isText && self[index - 2] == .dash)
        }
        guard self[index - 1]?.isBlank == true, let start = lineStart(before: index, atMost: 64) else { return false }
        return bytes[start..<index].allSatisfy { $0 == .dash || $0.isBlank }
    }

    /// Whether the byte before an index may be a damaged line break: it follows a lone CR, or it is the only byte of
    /// its line and no letter or digit.
    func endsInStrayByte(_ index: Int) -> Bool {
        guard let byte = self[index - 1], byte != .lineFeed, let before = lineBreak(before: index - 1) else {
            return false
        }
        return before == .cr || !(byte.isLetter || byte.isDigit)
    }

    /// Whether the final bytes of a JPEG or PNG precede an index.
    func endsPicture(at index: Int) -> Bool {
        [PictureEnd.jpeg, PictureEnd.png].contains { holds($0, at: index - $0.count) }
    }

    func holdsByteOrderMark(before index: Int) -> Bool {
        index == 3 && offset == 0 && holds([0xEF, 0xBB, 0xBF], at: 0)
    }
}
