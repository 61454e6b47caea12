import PostcardForm
import PostcardFoundation

/// The lines of a part's header in the body, with any kind of line break.
struct HeaderLines {
    /// The lines without their line breaks, as indices of the buffer.
    private(set) var lines: [Range<Int>] = []
    /// The index at which the content begins.
    private(set) var contentStart = 0
    private(set) var end = End.blankLine
    private(set) var findings: [Finding] = []
    /// The first line that is a field of no part's header, and so may be the content's, if no blank line follows.
    private var otherField: Int?
    /// The first line that is no field, and so may be the content's, even if a blank line follows.
    private var otherLine: Int?

    enum End {
        case blankLine
        /// Content follows directly.
        case content
        /// A delimiter follows directly; there is no content.
        case delimiter
        /// The body ends.
        case body
        /// There is no blank line within any server's limit.
        case limit
    }

    /// Longer than any server's limit.
    static let maximumBytes = 24 << 10
    /// Longer than a line of a header that someone has broken, such as one without its colon.
    private static let maximumOtherBytes = 512

    /// - Returns: `nil` if the buffer is too short.
    init?(in buffer: BodyBuffer, from start: Int, format: DelimiterFormat, partIndex: Int) {
        var index = start
        while true {
            countSteps(1)
            if index - start > Self.maximumBytes {
                finish(.limit, at: index, buffer)
                return
            }
            if index >= buffer.count {
                guard buffer.isLast else { return nil }
                finish(.body, at: index, buffer)
                return
            }
            if !buffer.isLast, buffer.count - index < format.delimiter.count + 8 { return nil }
            if buffer.holds(format.delimiter, at: index), buffer.endsDelimiter(at: index + format.delimiter.count) {
                noteDelimiter(at: index, from: start, buffer, partIndex)
                finish(.delimiter, at: index, buffer)
                return
            }
            if let lineBreak = buffer.lineBreak(at: index) {
                if lineBreak == .crlf || format.lineBreak == lineBreak || lineBreak == .lf {
                    let next = index + lineBreak.length
                    if !lines.isEmpty || !buffer.beginsHeader(at: next) {
                        note(lineBreak, at: index, buffer, partIndex)
                        finish(.blankLine, at: next, buffer)
                        return
                    }
                    findings.append(
                        Finding(
                            .extraBlankLine, at: buffer.offset(of: index), length: lineBreak.length,
                            part: partIndex, "There is a blank line between the delimiter and the part's header.",
                            edits: [Edit(at: buffer.offset(of: index), length: Int64(lineBreak.length), [])]))
                    index = next
                    continue
                }
            }
            // A line that is no field is only looked at as far as it can belong to a header.
            let isField = buffer.isField(index..<buffer.count)
            let limit = isField ? start + Self.maximumBytes : index + Self.maximumOtherBytes
            let end = buffer.lineEnd(
                from: index, endingAtCarriageReturn: format.lineBreak == .cr, limit: limit + 1)
            if end == buffer.count, !buffer.isLast, end - start <= Self.maximumBytes { return nil }
            guard isField || belongs(index..<end, in: buffer, format) else {
                findings.append(missingBlankLine(at: index, buffer, partIndex))
                finish(.content, at: index, buffer)
                return
            }
            if !lines.isEmpty, !buffer.beginsPartField(at: index) {
                if isField { otherField = otherField ?? index } else { otherLine = otherLine ?? index }
            }
            lines.append(index..<end)
            guard let lineBreak = buffer.lineBreak(at: end) else {
                finish(end - start > Self.maximumBytes ? .limit : .body, at: end, buffer)
                return
            }
            note(lineBreak, at: end, buffer, partIndex)
            index = end + lineBreak.length
        }
    }

    private mutating func finish(_ end: End, at index: Int, _ buffer: BodyBuffer) {
        self.end = end
        contentStart = index
        let isEnded = if case .blankLine = end { true } else { false }
        guard let doubtful = [isEnded ? nil : otherField, otherLine].compactMap(\.self).min() else { return }
        // What may be content is not changed.
        for index in findings.indices where findings[index].offset >= buffer.offset(of: doubtful) {
            findings[index].edits = nil
        }
    }

    private mutating func note(_ lineBreak: LineBreak, at index: Int, _ buffer: BodyBuffer, _ partIndex: Int) {
        guard lineBreak != .crlf else { return }
        findings.append(.bareLineBreak(lineBreak, at: buffer.offset(of: index), part: partIndex))
    }

    private mutating func noteDelimiter(at index: Int, from start: Int, _ buffer: BodyBuffer, _ partIndex: Int) {
        let offset = buffer.offset(of: index)
        guard !lines.isEmpty else { return }
        findings.append(
            Finding(
                .missingBlankLine, at: offset, part: partIndex,
                "The next delimiter follows the part's header at once, with no blank line and no content.",
                edits: [Edit(at: offset, "\r\n\r\n".utf8)]))
    }

    private func missingBlankLine(at index: Int, _ buffer: BodyBuffer, _ partIndex: Int) -> Finding {
        let offset = buffer.offset(of: index)
        return Finding(
            .missingBlankLine, at: offset, part: partIndex,
            "The content follows the part's header at once: the blank line between them is missing.",
            edits: [Edit(at: offset, "\r\n".utf8)])
    }

    /// Whether a malformed line is part of the header, and not the first line of the content.
    private func belongs(_ line: Range<Int>, in buffer: BodyBuffer, _ format: DelimiterFormat) -> Bool {
        if lines.isEmpty || line.count > Self.maximumOtherBytes {
            return lines.isEmpty && line.count <= Self.maximumOtherBytes
        }
        if buffer.beginsHeader(at: line.lowerBound) { return true }
        // A picture's first line holds control characters, or is not UTF-8.
        let text = buffer.bytes[line]
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == .tab }),
            String(validating: text, as: UTF8.self) != nil
        else { return false }
        guard let lineBreak = buffer.lineBreak(at: line.upperBound) else { return false }
        let next = line.upperBound + lineBreak.length
        if buffer.beginsHeader(at: next) { return true }
        guard let second = buffer.lineBreak(at: next) else { return false }
        // A blank line follows, and then content rather than a delimiter.
        return !buffer.holds(format.delimiter, at: next + second.length)
    }
}

extension BodyBuffer {
    /// Whether the line is a field or continues one.
    fileprivate func isField(_ line: Range<Int>) -> Bool {
        guard let first = self[line.lowerBound] else { return false }
        if first.isBlank { return true }
        var index = line.lowerBound
        let end = min(line.upperBound, index + Self.maximumNameBytes)
        while index < end, bytes[index].isTokenCharacter { index += 1 }
        countSteps(index - line.lowerBound)
        guard index > line.lowerBound else { return false }
        return self[skippingBlanks(from: index)] == .colon
    }

    /// Whether a field begins here that is known in parts' headers, or an extension of one.
    fileprivate func beginsPartField(at index: Int) -> Bool { holds("content-", at: index) || holds("x-", at: index) }

    /// Whether a delimiter is followed by no header, not even a malformed one, up to a blank line or another delimiter.
    /// `false` if the body ends before that.
    func holdsNoHeader(at start: Int, of format: DelimiterFormat) -> Bool {
        var index = start
        for number in 0..<Self.maximumLines {
            if index >= count { return !isLast }
            if lineBreak(at: index) != nil || holds(format.delimiter, at: index) { return number > 0 }
            let end = lineEnd(from: index, endingAtCarriageReturn: format.lineBreak == .cr)
            let line = index..<min(end, index + 1024)
            if (number == 0 && isField(line)) || isLikeHeader(line) { return false }
            index = end + (lineBreak(at: end)?.length ?? 0)
        }
        return true
    }

    /// Longer than the name of any field.
    private static let maximumNameBytes = 100

    /// More lines than a real part's header has.
    private static let maximumLines = 16

    /// Whether a line looks like part of a header, even if it is malformed.
    private func isLikeHeader(_ line: Range<Int>) -> Bool {
        beginsHeader(at: line.lowerBound) || line.contains { holds("form-data", at: $0) }
    }

    /// Whether a delimiter's line ends here, or closes the form.
    func endsDelimiter(at index: Int) -> Bool {
        if self[index] == .dash, self[index + 1] == .dash { return true }
        let padded = skippingBlanks(from: index)
        return lineBreak(at: padded) != nil || (isLast && padded == count)
    }
}

/// A part's header in well-formed lines, with the offset of each byte in the body.
///
/// Its problems are fixed here one by one, so that the parser can find the next one.
struct HeaderText {
    private(set) var bytes: [UInt8] = []
    /// The offset of each byte in the body, and one more for the end.
    private var places: [Int64] = []
    /// The offset of the header, even if bytes are removed from it.
    let start: Int64

    init(_ lines: HeaderLines, in buffer: BodyBuffer) {
        start = buffer.offset(of: lines.lines.first?.lowerBound ?? lines.contentStart)
        for line in lines.lines {
            bytes += buffer.bytes[line]
            places += line.lazy.map { buffer.offset(of: $0) }
            bytes += "\r\n".utf8
            places += [buffer.offset(of: line.upperBound), buffer.offset(of: line.upperBound)]
        }
        places.append(buffer.offset(of: lines.lines.last?.upperBound ?? lines.contentStart))
    }

    /// The offset of a byte in the body.
    func offset(of index: Int) -> Int64 { places[min(max(index, 0), places.count - 1)] }

    /// The edit of the body that corresponds to ``replace(_:with:)``.
    func edit(_ range: Range<Int>, with replacement: [UInt8]) -> Edit {
        let start = offset(of: range.lowerBound)
        return Edit(at: start, length: offset(of: range.upperBound) - start, replacement)
    }

    mutating func replace(_ range: Range<Int>, with replacement: [UInt8]) {
        let place = offset(of: range.lowerBound)
        countSteps(bytes.count)
        bytes.replaceSubrange(range, with: replacement)
        places.replaceSubrange(range, with: repeatElement(place, count: replacement.count))
    }

    /// Separates the combining marks of which there are too many in a row.
    ///
    /// - Returns: `false` if there are none.
    mutating func separateCombiningMarks() -> Bool {
        countSteps(bytes.count)
        let excesses = CombiningMarks.excesses(in: bytes)
        var separated: [UInt8] = []
        var separatedPlaces: [Int64] = []
        var start = 0
        for end in excesses + [bytes.count] {
            separated += bytes[start..<end]
            separatedPlaces += places[start..<end]
            guard end < bytes.count else { break }
            separated += CombiningMarks.separator
            separatedPlaces += repeatElement(places[end], count: CombiningMarks.separator.count)
            start = end
        }
        bytes = separated
        places = separatedPlaces + [places[places.count - 1]]
        return !excesses.isEmpty
    }

    /// The fields, each with its folded lines.
    var fields: [Field] {
        countSteps(bytes.count)
        var fields: [Field] = []
        var start = 0
        while start < bytes.count {
            let end = lineEnd(from: start)
            defer { start = end + 2 }
            if bytes[start].isBlank, !fields.isEmpty {
                fields[fields.count - 1].value = fields[fields.count - 1].value.lowerBound..<end
                continue
            }
            guard let colon = bytes[start..<end].firstIndex(of: .colon) else {
                fields.append(Field(line: start, name: start..<start, value: start..<end))
                continue
            }
            var value = colon + 1
            while value < end, bytes[value].isBlank { value += 1 }
            fields.append(Field(line: start, name: start..<colon, value: value..<end))
        }
        return fields
    }

    /// The indices of the lines that begin with a blank, and so continue the field before them.
    var foldedLines: [Int] {
        countSteps(bytes.count)
        var folded: [Int] = []
        var start = lineEnd(from: 0) + 2
        while start < bytes.count {
            if bytes[start].isBlank { folded.append(start) }
            start = lineEnd(from: start) + 2
        }
        return folded
    }

    /// The header with spaces for the line breaks within fields, so that all other bytes keep their index.
    var unfoldedBytes: [UInt8] {
        var unfolded = bytes
        for line in foldedLines { unfolded.replaceSubrange((line - 2)..<line, with: [.space, .space]) }
        return unfolded
    }

    struct Field {
        let line: Int
        let name: Range<Int>
        var value: Range<Int>
    }

    func field(_ lowercase: String) -> Field? {
        fields.first { isNamed($0, lowercase) }
    }

    func isNamed(_ field: Field, _ lowercase: String) -> Bool {
        var name = bytes[field.name]
        while let last = name.last, last.isBlank { name.removeLast() }
        return name.isEqualIgnoringCase(lowercase)
    }

    /// The end of the line at an index.
    func lineEnd(from index: Int) -> Int {
        var end = index
        while end + 1 < bytes.count, bytes[end] != .carriageReturn || bytes[end + 1] != .lineFeed { end += 1 }
        return end
    }

    func text(_ range: Range<Int>) -> String {
        var bytes = self.bytes[range]
        while let last = bytes.last, last.isBlank { bytes.removeLast() }
        return String(streamSafe: bytes)
    }

    /// Parses the header with the receiver's parser.
    ///
    /// - Throws: ``FormProblem`` whose offset is an index of ``bytes``.
    func parsed() throws(FormProblem) -> PartHeader? {
        countSteps(bytes.count)
        return try Self.parsed(bytes)
    }

    /// Parses the lines of a header with the receiver's parser.
    ///
    /// - Throws: ``FormProblem`` whose offset is an index of `lines`.
    static func parsed(_ lines: [UInt8]) throws(FormProblem) -> PartHeader? {
        var parser = try FormParser(boundary: "B")
        for piece in [Array("--B\r\n".utf8)[...], lines[...], Array("\r\n".utf8)[...]] {
            var position = 0
            let event: FormEvent?
            do {
                event = try parser.nextEvent(in: piece.span.bytes, at: &position)
            } catch {
                throw FormProblem(
                    error.code, at: error.offset - 5, part: error.partIndex, error.message, advice: error.advice,
                    limit: error.limit)
            }
            if case .partBegan(let header)? = event { return header }
        }
        return nil
    }
}
