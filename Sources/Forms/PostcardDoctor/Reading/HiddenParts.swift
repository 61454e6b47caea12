import PostcardForm

/// Finds lines that resemble a delimiter or begin a part's header, in bytes where receivers read no part.
///
/// The sender probably meant a delimiter, but wrote a wrong number of dashes or blanks, or made another mistake.
struct HiddenParts: Sendable {
    /// The boundary without dashes at its ends; empty if the boundary has nothing else.
    let core: [UInt8]
    private let coreSearch: ByteSearch
    private let delimiter: [UInt8]
    private let lineBreak: LineBreak
    /// The number of dashes before ``core`` in a delimiter.
    private let leadingDashes: Int

    /// Searches for the disposition type `form-data`, apart from its first letter, which may be a capital.
    private static let typeSearch = ByteSearch("orm-data".utf8)
    /// The maximum number of bytes before the disposition type on its line.
    private static let reach = 64

    /// A line that resembles a delimiter, or the first line of a header.
    struct Line {
        let start: Int
        let kind: Kind

        enum Kind {
            /// A line that resembles a delimiter and probably begins a part.
            case delimiter
            /// A line that resembles a delimiter, but may be text because no part follows.
            case text
            /// A line that resembles the close delimiter.
            case closeDelimiter
            /// The first line of a part's header. If the line before it begins another form, `end` is the close
            /// delimiter of that form.
            case header(end: [UInt8]?)
        }
    }

    /// Prepares a search in a form. `lineBreak` is the line break of the form, in addition to CRLF.
    init(boundary: [UInt8], delimiter: [UInt8], lineBreak: LineBreak) {
        self.lineBreak = lineBreak
        core = Array(Self.core(of: boundary[...]))
        coreSearch = ByteSearch(core)
        self.delimiter = delimiter
        leadingDashes = delimiter.prefix { $0 == .dash }.count
    }

    /// The dashes that word processors make of two hyphens.
    static let typographicDashes = ["–", "—", "−"].map { Array($0.utf8) }

    /// A line without the dashes and blanks at its ends.
    static func core(of line: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
        var core = line.drop { $0 == .dash || $0.isBlank }
        while let last = core.last {
            if last == .dash || last.isBlank {
                core.removeLast()
            } else if typographicDashes.contains(where: core.suffix(3).elementsEqual) {
                core.removeLast(3)
            } else {
                break
            }
        }
        return core
    }

    /// The recognized lines that begin in a range, in the order of the body.
    ///
    /// The header after a line that resembles a delimiter is not a separate result.
    func lines(in buffer: BodyBuffer, _ range: Range<Int>) -> [Line] {
        var explained: Set<Int> = []
        var found: [Line] = []
        each(coreSearch, in: buffer, range) { index in
            guard let line = nearDelimiter(at: index, in: buffer) else { return }
            let isClose = buffer[index + core.count].map { $0 == .dash || $0 >= 0x80 } == true
            found.append(
                Line(start: line.start, kind: line.isFollowed ? .delimiter : isClose ? .closeDelimiter : .text))
            if line.isFollowed { explained.insert(line.next) }
        }
        each(Self.typeSearch, in: buffer, range) { index in
            guard let start = dispositionStart(before: index, in: buffer), !explained.contains(start) else { return }
            let before = lineBefore(start, in: buffer)
            // Another finding already reports a line that begins like a delimiter.
            if let before, beginsDelimiter(at: before.lowerBound, in: buffer) { return }
            found.append(Line(start: start, kind: .header(end: before.flatMap { formEnd(buffer.bytes[$0]) })))
        }
        return found.sorted { $0.start < $1.start }
    }

    /// The start of the Content-Disposition whose type is at an index. The field may be misspelled. It begins a line,
    /// or follows the boundary on a delimiter's line.
    private func dispositionStart(before index: Int, in buffer: BodyBuffer) -> Int? {
        guard buffer.holds("form-data", at: index - 1) else { return nil }
        var end = index - 1
        while index - end < Self.reach, let byte = buffer[end - 1], byte.isBlank || byte == .colon || byte == .equals {
            end -= 1
        }
        var start = end
        while end - start < Self.reach, let byte = buffer[start - 1], byte.isTokenCharacter || byte >= 0x80 {
            start -= 1
        }
        countSteps(index - start)
        guard end < index - 1, start < end else { return nil }
        let name = end - "content-disposition".utf8.count
        if buffer.holds("content-disposition", at: name), buffer.bytes[..<name].suffix(core.count).elementsEqual(core) {
            return name
        }
        let isField = buffer.bytes[end..<(index - 1)].contains { !$0.isBlank }
        guard isField || buffer.holds("content-disposition", at: start) else { return nil }
        while index - start < 2 * Self.reach, let byte = buffer[start - 1], byte.isBlank { start -= 1 }
        return buffer.lineBreak(before: start) != nil || (start == 0 && buffer.offset == 0) ? start : nil
    }

    private func lineBefore(_ start: Int, in buffer: BodyBuffer) -> Range<Int>? {
        guard let lineBreak = buffer.lineBreak(before: start) else { return nil }
        let end = start - lineBreak.length
        return buffer.lineStart(before: end, atMost: delimiter.count + Self.reach).map { $0..<end }
    }

    /// The close delimiter of another form, derived from its delimiter; `nil` if the line is no delimiter, or may be a
    /// delimiter of this form.
    private func formEnd(_ line: ArraySlice<UInt8>) -> [UInt8]? {
        guard line.starts(with: "--".utf8), (3...Self.reach).contains(line.count), !Self.core(of: line).isEmpty else {
            return nil
        }
        return Array(line) + [.dash, .dash]
    }

    /// Whether a line begins like a delimiter, after a line break of the form's kind. Another finding reports such a
    /// line.
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

    /// The line with the boundary at an index, if the line resembles a delimiter: its dashes or blanks differ, or other
    /// text precedes the delimiter. `next` is the index of the following line, or of the line after a blank line.
    /// `isFollowed` says whether a part seems to begin at `next`.
    private func nearDelimiter(at index: Int, in buffer: BodyBuffer) -> (start: Int, next: Int, isFollowed: Bool)? {
        let coreEnd = index + core.count
        var end = coreEnd
        while end < coreEnd + Self.reach, let byte = buffer[end], byte == .dash || byte.isBlank { end += 1 }
        countSteps(end - index)
        for dash in Self.typographicDashes where buffer.holds(dash, at: end) { end += dash.count }
        guard buffer.lineBreak(at: end) != nil || (buffer.isLast && end == buffer.count) else { return nil }
        let (next, isFollowed) = part(behind: end, in: buffer)
        let whole = index - leadingDashes
        if let start = buffer.lineStart(before: index, atMost: Self.reach),
            buffer.bytes[start..<index].allSatisfy({ $0 == .dash || $0.isBlank })
        {
            return beginsDelimiter(at: start, in: buffer) ? nil : (start, next, isFollowed)
        }
        return buffer.holds(delimiter, at: whole) ? (whole, next, isFollowed) : nil
    }

    /// Skips a line break and one blank line. Returns the next index, and whether a part seems to begin there: after a
    /// blank line or with a header field, but not with a delimiter.
    private func part(behind end: Int, in buffer: BodyBuffer) -> (next: Int, Bool) {
        var next = end + (buffer.lineBreak(at: end)?.length ?? 0)
        let blank = buffer.lineBreak(at: next)
        next += blank?.length ?? 0
        if buffer.holds(delimiter, at: next) || next >= buffer.count { return (next, false) }
        return (next, blank != nil || buffer.isLikeHeader(next..<buffer.lineEnd(from: next, limit: next + Self.reach)))
    }
}

extension BodyBuffer {
    /// The start of the line around an index, or of the body; `nil` if the start is further away than `maximum`.
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

    /// The index of a part's header on the next line, or after a blank line; `nil` if no header begins there.
    func header(behind index: Int) -> Int? {
        guard let lineBreak = lineBreak(at: index) else { return nil }
        let next = index + lineBreak.length
        if beginsHeader(at: next) { return next }
        guard let second = self.lineBreak(at: next), beginsHeader(at: next + second.length) else { return nil }
        return next + second.length
    }
}
