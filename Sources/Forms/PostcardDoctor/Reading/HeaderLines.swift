import PostcardForm
import PostcardFoundation

/// The lines of a part's header in the body, with line breaks of any kind.
struct HeaderLines {
    /// The ranges of the lines in the buffer, without their line breaks.
    private(set) var lines: [Range<Int>] = []
    private(set) var contentStart = 0
    private(set) var end = End.blankLine
    /// Whether the blank line has another kind of line break than all other lines.
    private(set) var isBlankLineOther = false
    private(set) var findings: [Finding] = []
    /// The index of the first field that is unusual for a part. Without a blank line after it, the field may be
    /// content.
    private var otherField: Int?
    /// The index of the first line that is not a field. Such a line may be content, even before a blank line.
    private var otherLine: Int?

    enum End {
        case blankLine
        /// The header ends without a blank line before the content.
        case content
        /// The header ends at a delimiter, and the part has no content.
        case delimiter
        /// The header ends at the end of the body.
        case body
        /// The header is longer than any server accepts.
        case limit
    }

    /// The maximum size of a header, in bytes: larger than any server's limit.
    static let maximumBytes = 24 << 10
    /// The maximum size of a broken header line, such as a line without its colon, in bytes.
    private static let maximumOtherBytes = 512

    /// Reads the lines of a header. `nil` if the buffer ends before the header does.
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
            if let lineBreak = buffer.lineBreak(at: index),
                lineBreak == .crlf || format.lineBreak == lineBreak || lineBreak == .lf
            {
                let next = index + lineBreak.length
                if !lines.isEmpty || !buffer.beginsHeader(at: next) {
                    note(lineBreak, at: index, buffer, partIndex)
                    isBlankLineOther = lineBreak != .crlf && lineBreak != format.lineBreak
                    finish(.blankLine, at: next, buffer)
                    return
                }
                noteExtraBlankLine(lineBreak, at: buffer.offset(of: index), partIndex)
                index = next
                continue
            }
            if !lines.isEmpty, let next = noteBlanks(at: index, buffer, format, partIndex) {
                finish(.blankLine, at: next, buffer)
                return
            }
            // A line that is not a field is read only up to the maximum for broken lines.
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

    private mutating func noteExtraBlankLine(_ lineBreak: LineBreak, at offset: Int64, _ partIndex: Int) {
        findings.append(
            Finding(
                .extraBlankLine, at: offset, length: lineBreak.length, part: partIndex,
                "There is a blank line between the delimiter and the part's header.",
                edits: [Edit(at: offset, length: Int64(lineBreak.length), [])]))
    }

    private mutating func finish(_ end: End, at index: Int, _ buffer: BodyBuffer) {
        self.end = end
        contentStart = index
        let isEnded = if case .blankLine = end { true } else { false }
        guard let doubtful = [isEnded ? nil : otherField, otherLine].compactMap({ $0 }).min() else { return }
        // Lines that may be content are left unchanged.
        for index in findings.indices where findings[index].offset >= buffer.offset(of: doubtful) {
            findings[index].edits = nil
        }
    }

    /// Adds a finding about a line break other than CRLF. If the next line continues the field (`isFolded`), the
    /// finding has no edits, because another edit replaces the line break with a blank.
    private mutating func note(
        _ lineBreak: LineBreak, at index: Int, _ buffer: BodyBuffer, _ partIndex: Int, isFolded: Bool = false
    ) {
        guard lineBreak != .crlf else { return }
        var finding = Finding.bareLineBreak(lineBreak, at: buffer.offset(of: index), part: partIndex)
        if isFolded { finding.edits = [] }
        findings.append(finding)
    }

    /// Adds a finding about a line that has only blanks and should be empty. Returns the index of the next line; `nil`
    /// if the line has other bytes.
    private mutating func noteBlanks(
        at index: Int, _ buffer: BodyBuffer, _ format: DelimiterFormat, _ partIndex: Int
    ) -> Int? {
        guard let end = buffer.endOfBlankLine(at: index), let lineBreak = buffer.lineBreak(at: end) else { return nil }
        let next = end + lineBreak.length
        let offset = buffer.offset(of: index)
        // A field or blank line after the blanks may still belong to the header.
        var isCertain = !buffer.isField(next..<buffer.count)
        if let second = buffer.lineBreak(at: next) {
            isCertain = buffer.holds(format.delimiter, at: next + second.length)
        }
        findings.append(
            Finding(
                .missingBlankLine, at: offset, length: end - index, part: partIndex,
                "The line between the part's header and its content is not blank: it holds \(end - index) blanks.",
                advice: "Write CRLF twice, with nothing in between.",
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

    /// Whether a malformed line belongs to the header. Otherwise it is the first line of the content.
    private func belongs(_ line: Range<Int>, in buffer: BodyBuffer, _ format: DelimiterFormat) -> Bool {
        if lines.isEmpty || line.count > Self.maximumOtherBytes {
            return lines.isEmpty && line.count <= Self.maximumOtherBytes
        }
        if buffer.beginsHeader(at: line.lowerBound) { return true }
        // The first line of a picture has control characters, or is not UTF-8.
        let text = buffer.bytes[line]
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F || $0 == .tab }),
            String(validating: text, as: UTF8.self) != nil
        else { return false }
        guard let lineBreak = buffer.lineBreak(at: line.upperBound) else { return false }
        let next = line.upperBound + lineBreak.length
        if buffer.beginsHeader(at: next) { return true }
        guard let second = buffer.lineBreak(at: next) else { return false }
        // The line must precede a blank line and content, not a delimiter.
        return !buffer.holds(format.delimiter, at: next + second.length)
    }
}

extension BodyBuffer {
    /// Whether a line is a field, or continues the field before it.
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

    /// Whether a field begins at an index, with the prefix `Content-` or `X-` of fields in parts.
    fileprivate func beginsPartField(at index: Int) -> Bool { holds("content-", at: index) || holds("x-", at: index) }

    /// Whether lines follow a delimiter and none of them looks like a header field, up to a blank line or the next
    /// delimiter. `false` if the body ends earlier.
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

    /// The end of a line that has only blanks; `nil` if the line is empty or has other bytes.
    fileprivate func endOfBlankLine(at index: Int) -> Int? {
        let end = skippingBlanks(from: index)
        return end > index && lineBreak(at: end) != nil ? end : nil
    }

    /// Whether the first line of the content may be a damaged line of the header: a field with a wrong byte in its
    /// name, or a blank line with a stray byte.
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

    /// Whether any third of a name is within two bytes of its usual index. If at most two bytes of the name are wrong,
    /// one third is intact. This test is a hundred times faster than a full comparison.
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

    /// The number of inserted, removed or changed bytes between two texts. The result is exact only up to three.
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

    /// The maximum length of a field's name, in bytes, longer than any real name.
    private static let maximumNameBytes = 100

    /// The maximum number of lines to search, more than any real header has.
    private static let maximumLines = 16

    /// Whether a line looks like part of a header, even if it is malformed.
    func isLikeHeader(_ line: Range<Int>) -> Bool {
        beginsHeader(at: line.lowerBound) || line.contains { holds("form-data", at: $0) }
    }

    /// Whether the byte after a boundary ends the line of a delimiter, or begins the dashes that close the form.
    func endsDelimiter(at index: Int) -> Bool {
        if self[index] == .dash, self[index + 1] == .dash { return true }
        let padded = skippingBlanks(from: index)
        return lineBreak(at: padded) != nil || (isLast && padded == count)
    }
}
