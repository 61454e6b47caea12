import PostcardForm
import PostcardFoundation

/// The lines of a part's header in the body, with any kind of line break.
struct HeaderLines {
    /// The lines without their line breaks, as indices of the buffer.
    private(set) var lines: [Range<Int>] = []
    /// The index at which the content begins.
    private(set) var contentStart = 0
    private(set) var end = End.blankLine
    /// Whether the blank line is of a line break that other lines do not end in.
    private(set) var isBlankLineOther = false
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
                        isBlankLineOther = lineBreak != .crlf && lineBreak != format.lineBreak
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
            if !lines.isEmpty, let next = noteBlanks(at: index, buffer, format, partIndex) {
                finish(.blankLine, at: next, buffer)
                return
            }
            // A line that is no field is only looked at as far as it can belong to a header.
            let isField = buffer.isField(index..<buffer.count)
            let limit = isField ? start + Self.maximumBytes : index + Self.maximumOtherBytes
            let end = buffer.lineEnd(
                from: index, endingAtCarriageReturn: format.lineBreak == .cr, limit: limit + 1)
            if end == buffer.count, !buffer.isLast, end - start <= Self.maximumBytes { return nil }
            guard isField || belongs(index..<end, in: buffer, format) else {
                findings.append(missingBlankLine(at: index, buffer, format, partIndex))
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
            index = end + lineBreak.length
            let isFolded = buffer[index]?.isBlank == true && buffer.endOfBlankLine(at: index) == nil
            note(lineBreak, at: end, buffer, partIndex, isFolded: isFolded)
        }
    }

    private mutating func finish(_ end: End, at index: Int, _ buffer: BodyBuffer) {
        self.end = end
        contentStart = index
        let isEnded = if case .blankLine = end { true } else { false }
        guard let doubtful = [isEnded ? nil : otherField, otherLine].compactMap({ $0 }).min() else { return }
        // What may be content is not changed.
        for index in findings.indices where findings[index].offset >= buffer.offset(of: doubtful) {
            findings[index].edits = nil
        }
    }

    /// - Parameter isFolded: Whether the next line continues the field, and a blank takes the place of the line break.
    private mutating func note(
        _ lineBreak: LineBreak, at index: Int, _ buffer: BodyBuffer, _ partIndex: Int, isFolded: Bool = false
    ) {
        guard lineBreak != .crlf else { return }
        var finding = Finding.bareLineBreak(lineBreak, at: buffer.offset(of: index), part: partIndex)
        if isFolded { finding.edits = [] }
        findings.append(finding)
    }

    /// Notes a line of blanks, which is the blank line with something in it.
    ///
    /// - Returns: The index of the next line; `nil` if the line has more than blanks.
    private mutating func noteBlanks(
        at index: Int, _ buffer: BodyBuffer, _ format: DelimiterFormat, _ partIndex: Int
    ) -> Int? {
        guard let end = buffer.endOfBlankLine(at: index), let lineBreak = buffer.lineBreak(at: end) else { return nil }
        let next = end + lineBreak.length
        let offset = buffer.offset(of: index)
        // A field or a blank line may end the header only after it.
        var isCertain = !buffer.isField(next..<buffer.count)
        if let second = buffer.lineBreak(at: next) {
            isCertain = buffer.holds(format.delimiter, at: next + second.length)
        }
        findings.append(
            Finding(
                .missingBlankLine, at: offset, length: end - index, part: partIndex,
                "The line between the part's header and its content is not blank: it holds \(end - index) blanks.",
                fix: "Write CRLF twice, with nothing in between.",
                edits: isCertain ? [Edit(at: offset, length: Int64(end - index), [])] : nil))
        note(lineBreak, at: end, buffer, partIndex)
        return next
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

    private func missingBlankLine(
        at index: Int, _ buffer: BodyBuffer, _ format: DelimiterFormat, _ partIndex: Int
    ) -> Finding {
        let offset = buffer.offset(of: index)
        return Finding(
            .missingBlankLine, at: offset, part: partIndex,
            "The content follows the part's header at once: the blank line between them is missing.",
            edits: buffer.mayBelongToHeader(at: index, format) ? nil : [Edit(at: offset, "\r\n".utf8)])
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

    /// The end of a line that has blanks and nothing else; `nil` if it is no such line.
    fileprivate func endOfBlankLine(at index: Int) -> Int? {
        let end = skippingBlanks(from: index)
        return end > index && lineBreak(at: end) != nil ? end : nil
    }

    /// Whether what seems to be the content, because no blank line is before it, may be a damaged line of the header: a
    /// field with a wrong byte in its name, or a blank line with one in it.
    fileprivate func mayBelongToHeader(at index: Int, _ format: DelimiterFormat) -> Bool {
        if self[index] == .carriageReturn { return true }
        if let byte = self[index], let lineBreak = lineBreak(at: index + 1),
            lineBreak == .lf || !(byte.isLetter || byte.isDigit),
            !holds(format.delimiter, at: index + 1 + lineBreak.length)
        {
            return true
        }
        return Self.fields.contains { name in
            holdsPiece(of: name, near: index)
                && [0, 1, -1].contains { difference in
                    let found = bytes[index..<min(index + name.count + difference, count)]
                    return Self.distance(found.map { $0.asciiLowercased }, name) <= 2
                }
        }
    }

    /// Whether a third of a name is at an index or up to two bytes from its place: two wrong bytes leave one as it was.
    /// Comparing more takes a hundred times as long.
    private func holdsPiece(of name: [UInt8], near index: Int) -> Bool {
        let length = name.count / 3
        countSteps(15)
        return (0..<3).contains { third in
            let piece = name[(third * length)..<((third + 1) * length)]
            return (-2...2).contains { shift in
                let start = index + third * length + shift
                guard start >= index, start + length <= count else { return false }
                return bytes[start..<(start + length)].lazy.map { $0.asciiLowercased }.elementsEqual(piece)
            }
        }
    }

    private static let fields = [
        "content-type", "content-length", "content-disposition", "content-transfer-encoding",
    ].map { Array($0.utf8) }

    /// How many bytes are inserted, removed or changed between two texts; a large number if they are more than three.
    private static func distance(_ one: [UInt8], _ other: [UInt8]) -> Int {
        let (most, many) = (3, 99)
        countSteps((2 * most + 1) * one.count)
        var row = (0...other.count).map { $0 <= most ? $0 : many }
        for (index, byte) in one.enumerated() {
            let low = max(index - most, 0)
            guard low < other.count else { return many }
            var diagonal = row[low]
            row[low] = low == 0 ? index + 1 : many
            for place in low...min(index + most, other.count - 1) {
                let changed = diagonal + (byte == other[place] ? 0 : 1)
                diagonal = row[place + 1]
                row[place + 1] = min(changed, diagonal + 1, row[place] + 1)
            }
        }
        return row[other.count]
    }

    /// Longer than the name of any field.
    private static let maximumNameBytes = 100

    /// More lines than a real part's header has.
    private static let maximumLines = 16

    /// Whether a line looks like part of a header, even if it is malformed.
    func isLikeHeader(_ line: Range<Int>) -> Bool {
        beginsHeader(at: line.lowerBound) || line.contains { holds("form-data", at: $0) }
    }

    /// Whether a delimiter's line ends here, or closes the form.
    func endsDelimiter(at index: Int) -> Bool {
        if self[index] == .dash, self[index + 1] == .dash { return true }
        let padded = skippingBlanks(from: index)
        return lineBreak(at: padded) != nil || (isLast && padded == count)
    }
}
