import PostcardForm

extension FormExamination {
    /// The number of bytes that must be read ahead to recognize a delimiter: its line, and the header after it.
    private static let lookahead = HeaderLines.maximumBytes + 512

    /// A header counts as a line for each of its lines, and for as many bytes.
    private static let bytesOfLine = 128

    /// The number of a body's bytes that are kept while there are no more.
    private static let keptBytes = 64 << 10

    /// Reads the buffer as far as possible.
    mutating func readBuffer() {
        while step() {
            if examinedLines > Self.maximumExaminedLines { endExamination() }
        }
        // A small request is kept whole, so every finding can show its bytes.
        guard position >= Self.keptBytes else { return }
        let count = buffer.forget(before: position)
        position -= count
        searched = max(searched - count, position)
    }

    /// - Returns: Whether there may be more to read.
    private mutating func step() -> Bool {
        switch phase {
        case .opening:
            readOpening()
            return true
        case .content(let format, let start):
            return readContent(format, start: start)
        case .header(let format, let delimiterStart):
            return readHeader(format, delimiterStart: delimiterStart)
        case .epilogue(let format, let start, let content):
            readEpilogue(format, start: start, holding: content)
            return false
        case .lost, .ended:
            position = buffer.count
            return false
        }
    }

    /// Leaves the rest of the body to the parser.
    private mutating func endExamination() {
        let offset = buffer.offset(of: position)
        add(
            Finding(
                .notExamined, at: offset,
                "\(Self.maximumExaminedLines) lines of delimiters and headers were read before this byte."))
        openPart = nil
        phase = .ended
    }

    private mutating func readOpening() {
        if !BodyKind.isGzip(buffer), let format = DelimiterFormat(opening: buffer, announced: announcedBoundary) {
            phase = .content(format, start: 0)
            return
        }
        let code = BodyKind(buffer, isEncoded: isEncoded)?.code
        if let code { noteKind(code) }
        if let announcedBoundary, !announcedBoundary.isEmpty, code == nil {
            phase = .content(DelimiterFormat(boundary: announcedBoundary), start: 0)
        } else {
            phase = .lost
        }
    }

    private mutating func noteKind(_ code: FormProblem.Code) {
        let what =
            switch code {
            case .jsonBody: "JSON"
            case .urlEncodedBody: "a URL-encoded form"
            case .base64Body: "a form that was encoded in base64 as a whole"
            case .compressedBody: "compressed"
            default: "a form that was percent-encoded as a whole"
            }
        add(Finding(code, at: 0, length: min(buffer.count, 64), "The body is \(what), not a multipart form."))
    }

    // MARK: - Content

    private mutating func readContent(_ format: DelimiterFormat, start: Int64) -> Bool {
        let end = buffer.isLast ? buffer.count : buffer.count - Self.lookahead
        guard end > position || buffer.isLast else { return false }
        let searchEnd = buffer.isLast ? end : end + format.delimiter.count - 1
        var from = max(searched, position)
        while from < searchEnd, let found = format.search.firstIndex(in: buffer.bytes, from: from, end: searchEnd) {
            let reader = DelimiterReader(buffer: buffer, format: format, partIndex: openPart?.index)
            let isAtStart = buffer.offset(of: found) == start || buffer.holdsByteOrderMark(before: found)
            let line = reader.line(at: found, isAtStart: isAtStart)
            if case .content = line {} else { examinedLines += 1 }
            if examinedLines > Self.maximumExaminedLines { return true }
            switch line {
            case .content:
                break
            case .lookalike:
                noteLookalike(at: found, format)
            case .heldByContent:
                noteDelimiterInContent(at: found, format)
            case .delimiter(let delimiter):
                take(delimiter, at: found, format)
                return true
            }
            from = found + 1
            searched = from
        }
        if buffer.isLast, openPart != nil, let close = Self.closeWithoutDashes(buffer, format, openPart?.index),
            close.start >= position
        {
            take(close.delimiter, at: close.start, format)
            return true
        }
        // The line break before a later delimiter is not content.
        let contentEnd = buffer.isLast ? end : max(end - 2, position)
        take(position..<contentEnd)
        position = contentEnd
        searched = max(end, position)
        return false
    }

    private mutating func take(_ range: Range<Int>) {
        guard openPart != nil, !range.isEmpty else { return }
        buffer.bytes.withUnsafeBytes { openPart?.content.read(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    private mutating func noteLookalike(at index: Int, _ format: DelimiterFormat) {
        guard let openPart, format.dashes == 2 else { return }
        add(
            Finding(
                .delimiterInContent, at: buffer.offset(of: index), length: format.delimiter.count,
                part: openPart.index,
                "A line of the content begins as a delimiter does: some servers end the content there."))
    }

    private mutating func noteDelimiterInContent(at index: Int, _ format: DelimiterFormat) {
        add(
            Finding(
                .delimiterInContent, at: buffer.offset(of: index), length: format.delimiter.count,
                part: openPart?.index,
                "A line of the content is a delimiter, and no part's header follows: servers end the content there."))
    }

    /// The last line, if it is the close delimiter without the dashes before its boundary.
    private static func closeWithoutDashes(
        _ buffer: BodyBuffer, _ format: DelimiterFormat, _ partIndex: Int?
    ) -> (start: Int, delimiter: DelimiterLine.Delimiter)? {
        guard format.dashes == 2, let line = buffer.lastLine else { return nil }
        let text = buffer.bytes[line]
        let dashes = text.first == .dash ? 1 : 0
        guard text.dropFirst(dashes).elementsEqual(format.boundary + [.dash, .dash]) else { return nil }
        let reader = DelimiterReader(buffer: buffer, format: format, partIndex: partIndex)
        let before = buffer.lineBreak(before: line.lowerBound)
        let contentEnd = line.lowerBound - (before?.length ?? 0)
        let offset = buffer.offset(of: line.lowerBound)
        var edits = [Edit(at: offset, Array(repeating: .dash, count: 2 - dashes))]
        if line.upperBound == buffer.count { edits.append(Edit(at: buffer.offset(of: buffer.count), "\r\n".utf8)) }
        var findings = [
            Finding(
                .wrongCloseDelimiter, at: offset, length: line.count, part: partIndex,
                "The last delimiter has \(dashes == 0 ? "no dashes" : "one dash") before its boundary: it is content.",
                edits: edits)
        ]
        if let before, before != .crlf { findings.append(reader.bareLineBreak(before, at: contentEnd)) }
        return (
            line.lowerBound, .init(contentEnd: contentEnd, next: buffer.count, isClose: true, findings: findings)
        )
    }

    private mutating func take(_ delimiter: DelimiterLine.Delimiter, at index: Int, _ format: DelimiterFormat) {
        var isPreambleRemoved = false
        if openPart == nil {
            // Once: a body may begin with any number of delimiters that no part follows.
            if case .content(_, start: 0) = phase { isPreambleRemoved = notePreamble(upTo: index) }
        } else {
            take(position..<max(delimiter.contentEnd, position))
            closePart(isCutOff: false)
        }
        for var finding in delimiter.findings {
            // Without the preamble, the delimiter begins the body.
            let isFixed = isPreambleRemoved && finding.code == .missingLineBreakBeforeDelimiter
            if isFixed { finding.edits = [] }
            add(finding)
        }
        let start = buffer.offset(of: index)
        let next = buffer.offset(of: delimiter.next)
        phase =
            delimiter.isClose
            ? .epilogue(format, start: next, holding: .blank) : .header(format, delimiterStart: start)
        position = delimiter.next
        searched = position
    }

    /// Notes what comes before the first delimiter.
    ///
    /// - Returns: Whether it is removed.
    private mutating func notePreamble(upTo index: Int) -> Bool {
        let end = buffer.offset(of: index)
        guard end > 0 else { return false }
        let isWhole = buffer.offset == 0
        let holdsPart = (0..<index).contains { buffer.holds("content-disposition", at: $0) }
        let edits = isWhole && !holdsPart ? [Edit(at: 0, length: end, [])] : nil
        if isWhole, index == 3, buffer.holdsByteOrderMark(before: index) {
            add(
                Finding(
                    .byteOrderMark, at: 0, length: 3,
                    "The body begins with a byte order mark, before the first delimiter.", edits: edits))
        } else if isWhole, buffer.bytes[..<index].allSatisfy({ $0 == .carriageReturn || $0 == .lineFeed }) {
            add(
                Finding(
                    .leadingLineBreak, at: 0, length: index,
                    "The body begins with a line break, before the first delimiter.", edits: edits))
        } else {
            let header = holdsPart ? ", and they include a part's header" : ""
            let preamble = Finding(
                .preamble, at: 0, length: min(index, 64),
                "There are \(end) bytes before the first delimiter\(header).", edits: edits)
            add(holdsPart ? preamble.weighing(.error) : preamble)
        }
        return edits != nil
    }

    // MARK: - Headers

    private mutating func readHeader(_ format: DelimiterFormat, delimiterStart: Int64) -> Bool {
        guard let lines = HeaderLines(in: buffer, from: position, format: format, partIndex: partCount) else {
            return false
        }
        let start = position
        position = lines.contentStart
        searched = position
        examinedLines += lines.lines.count + (position - start) / Self.bytesOfLine
        for finding in lines.findings { add(finding) }
        if case .body = lines.end {
            // If the body ends inside a header there is no part, as the parser reports.
            return false
        }
        if case .delimiter = lines.end, lines.lines.isEmpty {
            let length = buffer.offset(of: start) - delimiterStart
            add(
                Finding(
                    .missingContentDisposition, at: buffer.offset(of: start), part: partCount,
                    "A delimiter is followed by another: there is no part between them.",
                    edits: [Edit(at: delimiterStart, length: length, [])]))
            phase = .content(format, start: buffer.offset(of: start))
            return true
        }
        openPart(lines, from: start)
        phase = .content(format, start: buffer.offset(of: position))
        return true
    }

    private mutating func openPart(_ lines: HeaderLines, from start: Int) {
        let offset = buffer.offset(of: position)
        let header = HeaderReading(
            HeaderText(lines, in: buffer), partIndex: partCount, offset: buffer.offset(of: start))
        if case .limit = lines.end {
            add(
                Finding(
                    .headerTooLarge, at: offset, part: partCount,
                    "The part's header has more than \(HeaderLines.maximumBytes) bytes without a blank line."))
        }
        for finding in header.findings { add(finding) }
        for finding in HeaderChecks(header: header, partIndex: partCount).findings { add(finding) }
        let range = max(start - Excerpt.reach, 0)..<min(position + Excerpt.reach, buffer.count)
        // A form has one policy. Of further ones, no more is kept than of other texts.
        let isPolicy = !hasPolicy && !header.isFile && header.name.lowercased() == "policy"
        hasPolicy = hasPolicy || isPolicy
        openPart = OpenPart(
            index: partCount, header: header, offset: offset, content: PartContent(isPolicy: isPolicy),
            opening: Excerpt(offset: buffer.offset(of: range.lowerBound), bytes: Array(buffer.bytes[range])))
        partCount += 1
    }

    /// Describes the part whose content has been read.
    mutating func closePart(isCutOff: Bool) {
        guard let part = openPart else { return }
        let checks = ContentChecks(
            header: part.header, content: part.content, offset: part.offset, partIndex: part.index, isCutOff: isCutOff)
        for finding in checks.findings { add(finding) }
        if !isCutOff { trailingLineBreaks.take(part, isPicture: checks.lineBreakBehindPicture != nil) }
        openPart = nil
        guard parts.count == part.index, parts.count < Self.maximumDescribedParts else { return }
        parts.append(
            Explanation.Part(
                name: part.header.name, filename: part.header.filename, contentType: part.header.contentType,
                offset: part.offset, size: part.content.size, sha256: part.content.sha256,
                headers: part.header.fields, text: part.content.text))
    }

    // MARK: - Behind the close delimiter

    private mutating func readEpilogue(_ format: DelimiterFormat, start: Int64, holding content: EpilogueContent) {
        var content = content
        let end = buffer.isLast ? buffer.count : max(buffer.count - Self.lookahead, position)
        var from = position
        var read = position
        while content != .part, from < end,
            let found = format.search.firstIndex(
                in: buffer.bytes, from: from, end: min(end + format.delimiter.count, buffer.count))
        {
            from = found + 1
            content.take(buffer.bytes[min(read, found)..<found])
            let next = found + format.delimiter.count
            let isClose = buffer.holds("--", at: next)
            read = isClose ? next + 2 : next
            guard buffer.beginsPart(behind: buffer.skippingBlanks(from: next)) else {
                if isClose { content = content.closedAgain }
                continue
            }
            content = .part
            add(
                Finding(
                    .partsAfterCloseDelimiter, at: buffer.offset(of: found), length: format.delimiter.count,
                    "Another part follows the close delimiter, where most servers look for none."))
        }
        content.take(buffer.bytes[min(read, end)..<end])
        phase = .epilogue(format, start: start, holding: content)
        position = max(read, end)
    }
}
