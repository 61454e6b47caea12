import PostcardPictureFormats

/// The last bytes of a file whose format has a directory at its end.
struct FileTail: Sendable {
    private var bytes: [UInt8] = []
    /// Whether the end record of a ZIP archive was read and then dropped.
    private var hasPassedArchive = false

    /// The number of bytes to keep: enough for the end record of a ZIP archive and its comment.
    private static let count = 66 << 10

    /// The result of comparing the directory's offset with its position.
    enum End: Equatable {
        /// The file has no directory.
        case missing
        case unreadable
        /// The directory begins this many bytes later than its offset says, or earlier if the number is negative.
        /// `lineFeeds` is the number of LFs from the directory to the end of the file.
        case shifted(Int64, lineFeeds: Int)
    }

    mutating func read(_ chunk: UnsafeRawBufferPointer, isKept: Bool) {
        guard isKept else { return bytes = [] }
        for start in stride(from: 0, to: chunk.count, by: Self.count) {
            let piece = chunk[start..<min(start + Self.count, chunk.count)]
            // Appending a slice would copy byte by byte.
            bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: piece))
            // Dropping bytes moves the kept ones, so it happens rarely.
            if bytes.count < 4 * Self.count { continue }
            let passed = bytes.count - Self.count
            hasPassedArchive = hasPassedArchive || holds(Self.archiveEnd, before: passed)
            bytes.removeFirst(passed)
        }
    }

    /// The signature of a ZIP archive's end of central directory record (APPNOTE §4.3.16).
    private static let archiveEnd: [UInt8] = [0x50, 0x4B, 5, 6]

    func archive(of size: Int64) -> End {
        guard let place = lastIndex(of: Self.archiveEnd) else { return hasPassedArchive ? .unreadable : .missing }
        guard bytes.count - place >= 22 else { return .missing }
        let comment = Int(bytes[place + 20]) | Int(bytes[place + 21]) << 8
        guard bytes.count - place - 22 >= comment else { return .missing }
        let length = number(at: place + 12), offset = number(at: place + 16)
        // ZIP64 has these numbers in another record.
        guard length != 0xFFFF_FFFF, offset != 0xFFFF_FFFF else { return .unreadable }
        let start = size - Int64(bytes.count)
        return .shifted(start + Int64(place) - offset - length, lineFeeds: lineFeeds(from: place))
    }

    /// Whether most checksums in a ZIP directory contain a `?`, which a conversion to ASCII puts in place of bytes.
    var archiveHoldsQuestionMarks: Bool {
        var entries = 0, marked = 0
        for index in bytes.indices.dropLast(20)
        where bytes[index] == 0x50 && bytes[index..<(index + 4)].elementsEqual([0x50, 0x4B, 1, 2]) {
            entries += 1
            if bytes[(index + 16)..<(index + 20)].contains(UInt8(ascii: "?")) { marked += 1 }
        }
        return marked * 2 > entries
    }

    private func number(at index: Int) -> Int64 {
        bytes[index..<(index + 4)].reversed().reduce(0) { $0 << 8 | Int64($1) }
    }

    /// Compares the position of a PDF's cross-reference table with the offset in the trailer (ISO 32000-1 §7.5.5).
    func document(of size: Int64) -> End {
        guard let end = lastIndex(of: Array("%%EOF".utf8)) else { return .missing }
        let marker = Array("startxref".utf8)
        guard let trailer = lastIndex(of: marker, before: end) else { return .unreadable }
        let digits = bytes[(trailer + marker.count)..<end].drop { !$0.isDigit }.prefix { $0.isDigit }
        guard let stated = Int64(String(decoding: digits, as: UTF8.self)), (0...size).contains(stated),
            let place = tableStart(before: trailer) ?? objectStart(before: trailer)
        else { return .unreadable }
        return .shifted(
            size - Int64(bytes.count) + Int64(place) - stated, lineFeeds: lineFeeds(from: place))
    }

    private func lineFeeds(from place: Int) -> Int { bytes[place...].count { $0 == .lineFeed } }

    /// The start of the last line with `xref`; `nil` if there is none.
    private func tableStart(before end: Int) -> Int? {
        var end = end
        while let place = lastIndex(of: Array("xref".utf8), before: end) {
            if place == 0 || bytes[place - 1] == .lineFeed || bytes[place - 1] == .carriageReturn { return place }
            end = place
        }
        return nil
    }

    /// The start of the last object, which newer PDF files use as their cross-reference table; `nil` if there is none.
    private func objectStart(before end: Int) -> Int? {
        guard let place = lastIndex(of: Array(" obj".utf8), before: end) else { return nil }
        let line = bytes[..<place].lastIndex { $0 == .lineFeed || $0 == .carriageReturn }
        return line.map { $0 + 1 }
    }

    /// Whether the bytes of `needle` occur and begin before the index `end`.
    private func holds(_ needle: [UInt8], before end: Int) -> Bool {
        bytes.withUnsafeBytes { buffer in
            var index = buffer.firstIndex(of: needle[0], from: 0)
            while index < end {
                if buffer[index...].starts(with: needle) { return true }
                index = buffer.firstIndex(of: needle[0], from: index + 1)
            }
            return false
        }
    }

    private func lastIndex(of needle: [UInt8], before end: Int? = nil) -> Int? {
        var index = (end ?? bytes.count) - needle.count
        while index >= 0 {
            if bytes[index] == needle[0], bytes[index..<(index + needle.count)].elementsEqual(needle) { return index }
            index -= 1
        }
        return nil
    }
}
