import PostcardForm

/// The lines of a part's header as they stand in the body, whatever they end in.
struct HeaderLines {
    /// The lines without their line breaks, as indices of the window.
    private(set) var lines: [Range<Int>] = []
    /// Where the content begins.
    private(set) var contentStart = 0
    private(set) var end = End.blankLine
    private(set) var findings: [Finding] = []

    enum End {
        case blankLine
        /// Content follows at once.
        case content
        /// A delimiter follows at once; there is no content.
        case delimiter
        /// The body ends.
        case body
        /// No blank line comes for longer than any server would read.
        case limit
    }

    /// Longer than any server's limit.
    static let maximumBytes = 24 << 10

    /// - Returns: `nil` where the window does not reach far enough.
    init?(in window: BodyWindow, from start: Int, frame: Frame, partIndex: Int) {
        var index = start
        while true {
            if index - start > Self.maximumBytes {
                finish(.limit, at: index)
                return
            }
            if index >= window.count {
                guard window.isLast else { return nil }
                finish(.body, at: index)
                return
            }
            if !window.isLast, window.count - index < frame.delimiter.count + 8 { return nil }
            if window.holds(frame.delimiter, at: index), window.endsDelimiter(at: index + frame.delimiter.count) {
                finish(.delimiter, at: index)
                noteDelimiter(at: index, from: start, window, partIndex)
                return
            }
            if let lineBreak = window.lineBreak(at: index) {
                if lineBreak == .crlf || frame.lineBreak == lineBreak || lineBreak == .lf {
                    let next = index + lineBreak.length
                    if !lines.isEmpty || !window.beginsHeader(at: next) {
                        note(lineBreak, at: index, window, partIndex)
                        finish(.blankLine, at: next)
                        return
                    }
                    findings.append(
                        Finding(
                            .doctor(.extraBlankLine), at: window.offset(of: index), length: lineBreak.length,
                            part: partIndex, "A blank line stands between the delimiter and the part's header.",
                            edits: [Edit(at: window.offset(of: index), length: Int64(lineBreak.length), [])]))
                    index = next
                    continue
                }
            }
            let end = window.lineEnd(from: index, endingAtCarriageReturn: frame.lineBreak == .cr)
            if end == window.count, !window.isLast, end - start <= Self.maximumBytes { return nil }
            guard window.isField(index..<end) || belongs(index..<end, in: window, frame) else {
                findings.append(missingBlankLine(at: index, window, partIndex))
                finish(.content, at: index)
                return
            }
            lines.append(index..<end)
            guard let lineBreak = window.lineBreak(at: end) else {
                finish(end - start > Self.maximumBytes ? .limit : .body, at: end)
                return
            }
            note(lineBreak, at: end, window, partIndex)
            index = end + lineBreak.length
        }
    }

    private mutating func finish(_ end: End, at index: Int) {
        self.end = end
        contentStart = index
    }

    private mutating func note(_ lineBreak: LineBreak, at index: Int, _ window: BodyWindow, _ partIndex: Int) {
        guard lineBreak != .crlf else { return }
        findings.append(.bareLineBreak(lineBreak, at: window.offset(of: index), part: partIndex))
    }

    private mutating func noteDelimiter(at index: Int, from start: Int, _ window: BodyWindow, _ partIndex: Int) {
        let offset = window.offset(of: index)
        guard !lines.isEmpty else { return }
        findings.append(
            Finding(
                .doctor(.missingBlankLine), at: offset, part: partIndex,
                "The next delimiter follows the part's header at once, with no blank line and no content.",
                edits: [Edit(at: offset, "\r\n\r\n".utf8)]))
    }

    private func missingBlankLine(at index: Int, _ window: BodyWindow, _ partIndex: Int) -> Finding {
        let offset = window.offset(of: index)
        return Finding(
            .doctor(.missingBlankLine), at: offset, part: partIndex,
            "The content follows the part's header at once: the blank line between them is missing.",
            edits: [Edit(at: offset, "\r\n".utf8)])
    }

    /// Whether a line that is no field is one that was written wrongly, and not the content's first.
    private func belongs(_ line: Range<Int>, in window: BodyWindow, _ frame: Frame) -> Bool {
        if lines.isEmpty || line.count > 1024 { return lines.isEmpty && line.count <= 1024 }
        if window.beginsHeader(at: line.lowerBound) { return true }
        guard let lineBreak = window.lineBreak(at: line.upperBound) else { return false }
        let next = line.upperBound + lineBreak.length
        if window.beginsHeader(at: next) { return true }
        guard let second = window.lineBreak(at: next) else { return false }
        // The blank line follows, and behind it content rather than a delimiter.
        return !window.holds(frame.delimiter, at: next + second.length)
    }
}

extension BodyWindow {
    /// Whether the line is a field, or goes on with one.
    fileprivate func isField(_ line: Range<Int>) -> Bool {
        guard let first = self[line.lowerBound] else { return false }
        if first.isBlank { return true }
        var index = line.lowerBound
        while index < line.upperBound, bytes[index].isTokenCharacter { index += 1 }
        guard index > line.lowerBound else { return false }
        return self[skippingBlanks(from: index)] == .colon
    }

    /// Whether what follows a delimiter is no header, not even one that was written wrongly, up to a blank line or
    /// another delimiter. Where the body ends before that, nobody can tell.
    func holdsNoHeader(at start: Int, of frame: Frame) -> Bool {
        var index = start
        for number in 0..<Self.maximumLines {
            if index >= count { return !isLast }
            if lineBreak(at: index) != nil || holds(frame.delimiter, at: index) { return number > 0 }
            let end = lineEnd(from: index, endingAtCarriageReturn: frame.lineBreak == .cr)
            let line = index..<min(end, index + 1024)
            if (number == 0 && isField(line)) || isLikeHeader(line) { return false }
            index = end + (lineBreak(at: end)?.length ?? 0)
        }
        return true
    }

    /// More lines than a part's header has.
    private static let maximumLines = 16

    /// Whether a line looks like one of a part's header, whatever is wrong with it.
    private func isLikeHeader(_ line: Range<Int>) -> Bool {
        beginsHeader(at: line.lowerBound) || line.contains { holds("form-data", at: $0) }
    }

    /// Whether a boundary's line ends here, or closes the form.
    func endsDelimiter(at index: Int) -> Bool {
        if self[index] == .dash, self[index + 1] == .dash { return true }
        let padded = skippingBlanks(from: index)
        return lineBreak(at: padded) != nil || (isLast && padded == count)
    }
}
