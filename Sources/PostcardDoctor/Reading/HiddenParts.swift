import PostcardForm

/// Finds lines that resemble a delimiter or begin a part's header, in bytes where no receiver reads a part.
///
/// Such a part was probably meant: its delimiter has a dash or a blank too many or too few, or another mistake.
struct HiddenParts: Sendable {
    /// The boundary without the dashes around it; empty if it has nothing else.
    let core: [UInt8]
    private let coreSearch: ByteSearch
    private let delimiter: [UInt8]
    private let lineBreak: LineBreak
    /// The number of dashes before the core in a delimiter.
    private let leadingDashes: Int

    /// The type of every part of a form. The letter before it differs in case.
    private static let typeSearch = ByteSearch("orm-data".utf8)
    /// Longer than what is before the type in a line, with some blanks.
    private static let reach = 64

    /// A line that resembles a delimiter, or a header's first line.
    struct Line {
        let start: Int
        /// Whether it resembles a delimiter; a header's line otherwise.
        let isDelimiter: Bool
        /// Whether it begins with the boundary, and no header follows: a content may be that word alone.
        let isBare: Bool
    }

    /// - Parameter lineBreak: How lines of the form end, beside CRLF.
    init(boundary: [UInt8], delimiter: [UInt8], lineBreak: LineBreak) {
        self.lineBreak = lineBreak
        core = Array(Self.core(of: boundary[...]))
        coreSearch = ByteSearch(core)
        self.delimiter = delimiter
        leadingDashes = delimiter.prefix { $0 == .dash }.count
    }

    /// What is left of a line without the dashes and blanks around it.
    static func core(of line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var core = line.drop { $0 == .dash || $0.isBlank }
        while let last = core.last, last == .dash || last.isBlank { core.removeLast() }
        return core
    }

    /// The lines whose recognized bytes begin in a range, in their order.
    ///
    /// A header's line after one that resembles a delimiter is not repeated.
    func lines(in buffer: BodyBuffer, _ range: Range<Int>) -> [Line] {
        var explained: Set<Int> = []
        var found: [Line] = []
        each(coreSearch, in: buffer, range) { index in
            guard let line = nearDelimiter(at: index, in: buffer) else { return }
            let isBare = line.header == nil && line.start == index
            found.append(Line(start: line.start, isDelimiter: true, isBare: isBare))
            if let header = line.header { explained.insert(header) }
        }
        each(Self.typeSearch, in: buffer, range) { index in
            guard let start = buffer.lineStart(before: index, atMost: Self.reach),
                buffer.holds("content-disposition", at: start), !explained.contains(start),
                !followsLookalike(start, in: buffer)
            else { return }
            found.append(Line(start: start, isDelimiter: false, isBare: false))
        }
        return found.sorted { $0.start < $1.start }
    }

    /// Whether the line before begins as a delimiter does, which is noted by itself.
    private func followsLookalike(_ start: Int, in buffer: BodyBuffer) -> Bool {
        guard let lineBreak = buffer.lineBreak(before: start) else { return false }
        let before = buffer.lineStart(before: start - lineBreak.length, atMost: delimiter.count + Self.reach)
        return before.map { beginsDelimiter(at: $0, in: buffer) } ?? false
    }

    /// Whether a line begins as a delimiter does, after a line break as other lines have it: then it is a delimiter, or
    /// noted as content.
    private func beginsDelimiter(at start: Int, in buffer: BodyBuffer) -> Bool {
        let before = buffer.lineBreak(before: start)
        return buffer.holds(delimiter, at: start) && (before == .crlf || before == lineBreak)
    }

    private func each(_ search: ByteSearch, in buffer: BodyBuffer, _ range: Range<Int>, _ take: (Int) -> Void) {
        guard !search.needle.isEmpty else { return }
        let end = min(range.upperBound + search.needle.count - 1, buffer.count)
        var from = range.lowerBound
        while let index = search.firstIndex(in: buffer.bytes, from: from, end: end) {
            take(index)
            from = index + 1
        }
    }

    /// The line around the boundary's core if it resembles a delimiter, and the index of the header after it: a line that
    /// only dashes and blanks make differ, or one that a delimiter ends.
    private func nearDelimiter(at index: Int, in buffer: BodyBuffer) -> (start: Int, header: Int?)? {
        let coreEnd = index + core.count
        var end = coreEnd
        while end < coreEnd + Self.reach, let byte = buffer[end], byte == .dash || byte.isBlank { end += 1 }
        countSteps(end - index)
        guard buffer.lineBreak(at: end) != nil || (buffer.isLast && end == buffer.count) else { return nil }
        let header = buffer.header(behind: end)
        let whole = index - leadingDashes
        if let start = buffer.lineStart(before: index, atMost: Self.reach),
            buffer.bytes[start..<index].allSatisfy({ $0 == .dash || $0.isBlank })
        {
            return beginsDelimiter(at: start, in: buffer) ? nil : (start, header)
        }
        return buffer.holds(delimiter, at: whole) ? (whole, header) : nil
    }
}

extension BodyBuffer {
    /// The start of the line that an index is in, or the body's start; `nil` if it is further away.
    func lineStart(before index: Int, atMost maximum: Int) -> Int? {
        var start = index
        while index - start <= maximum {
            if lineBreak(before: start) != nil || (start == 0 && offset == 0) {
                countSteps(index - start)
                return start
            }
            guard start > 0 else { break }
            start -= 1
        }
        countSteps(index - start)
        return nil
    }

    /// The index of the part's header on the next line, or after one blank line; `nil` if none begins there.
    func header(behind index: Int) -> Int? {
        guard let lineBreak = lineBreak(at: index) else { return nil }
        let next = index + lineBreak.length
        if beginsHeader(at: next) { return next }
        guard let second = self.lineBreak(at: next), beginsHeader(at: next + second.length) else { return nil }
        return next + second.length
    }
}
