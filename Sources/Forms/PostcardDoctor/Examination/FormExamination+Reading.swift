import PostcardForm

extension FormExamination {
    /// The number of bytes to read ahead to recognize a delimiter: its line and the header after it.
    private static let lookahead = HeaderLines.maximumBytes + 512

    /// The number of header bytes that count as one line towards the limit on examined lines.
    private static let bytesOfLine = 128

    /// The maximum size of a body that is kept whole, in bytes.
    private static let keptBytes = 64 << 10

    /// Reads the buffer as far as possible.
    mutating func readBuffer() {
        while step() {
            if examinedLines > Self.maximumExaminedLines { endExamination() }
        }
        // A small request is kept whole, so that every finding can show its bytes.
        guard position >= Self.keptBytes else { return }
        let count = buffer.forget(before: position)
        position -= count
        searched = max(searched - count, position)
    }

    /// Reads the next piece of the body. Returns whether there may be more to read.
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

    /// Ends the examination early. The parser still reads the rest of the body.
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
        if let kind = BodyKind(lineOf: buffer) {
            noteKind(kind.code)
            phase = .lost
            return
        }
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
            case .withoutLineBreaks: "a form without its line breaks"
            case .escapedLineBreaks: "a form whose line breaks are written as escapes"
            default: "a form that was percent-encoded as a whole"
            }
        add(Finding(code, at: 0, length: min(buffer.count, 64), "The body is \(what), not a multipart form."))
    }

    // MARK: - Content

    private mutating func readContent(_ format: DelimiterFormat, start: Int64) -> Bool {
        let end = buffer.isLast ? buffer.count : buffer.count - Self.lookahead
        guard end > position || buffer.isLast else { return false }
        if start == 0, openPart == nil, takeFirstLine(format) { return true }
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
                // A delimiter without its dashes must begin a line.
                if format.dashes == 0, buffer.lineBreak(before: found) != nil { noteLookalike(at: found, format) }
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
        if buffer.isLast, let openPart, let close = Self.closeWithOtherDashes(buffer, format, openPart),
            close.start >= position
        {
            take(close.delimiter, at: close.start, format)
            return true
        }
        // The last two bytes may be the line break before a delimiter, so they are not read as content yet.
        let contentEnd = buffer.isLast ? end : max(end - 2, position)
        take(position..<contentEnd, format)
        position = contentEnd
        searched = max(end, position)
        return false
    }

    /// Accepts the first line of the body as a delimiter if only the dashes or blanks before its boundary differ.
    private mutating func takeFirstLine(_ format: DelimiterFormat) -> Bool {
        guard position == 0, buffer.offset == 0 else { return false }
        var start = 0
        while let lineBreak = buffer.lineBreak(at: start) { start += lineBreak.length }
        countSteps(start)
        guard let delimiter = DelimiterReader(buffer: buffer, format: format, partIndex: nil).firstLine(at: start)
        else { return false }
        take(delimiter, at: start, format)
        return true
    }

    private mutating func take(_ range: Range<Int>, _ format: DelimiterFormat) {
        guard let openPart, !range.isEmpty else { return }
        buffer.bytes.withUnsafeBytes { self.openPart?.content.read(UnsafeRawBufferPointer(rebasing: $0[range])) }
        noteHiddenParts(in: range, format, openPart)
    }

    private mutating func noteLookalike(at index: Int, _ format: DelimiterFormat) {
        guard let openPart else { return }
        if buffer.holds("--", at: index + format.delimiter.count) { self.openPart?.hidden.holdsClose = true }
        let lineEnd = buffer.lineEnd(from: index, limit: index + Excerpt.reach)
        let holdsPart = buffer.beginsPart(behind: lineEnd)
        guard format.dashes == 2 || holdsPart else { return }
        add(
            Finding(
                holdsPart ? .partInContent : .delimiterInContent, at: buffer.offset(of: index),
                length: format.delimiter.count, part: openPart.index,
                holdsPart
                    ? "A line of the content begins as a delimiter does, and a part's header follows: receivers read "
                        + "both as content."
                    : "A line of the content begins as a delimiter does: some servers end the content there."))
    }

    private mutating func noteDelimiterInContent(at index: Int, _ format: DelimiterFormat) {
        add(
            Finding(
                .delimiterInContent, at: buffer.offset(of: index), length: format.delimiter.count,
                part: openPart?.index,
                "A line of the content is a delimiter, and no part's header follows: servers end the content there."))
    }

    /// The last line of the body, if it is a close delimiter with other dashes before its boundary.
    private static func closeWithOtherDashes(
        _ buffer: BodyBuffer, _ format: DelimiterFormat, _ part: OpenPart
    ) -> (start: Int, delimiter: DelimiterLine.Delimiter)? {
        guard format.dashes == 2, let line = buffer.lastLine else { return nil }
        let text = buffer.bytes[line]
        let dashes = text.prefix { $0 == .dash }.count - format.boundary.prefix { $0 == .dash }.count
        guard dashes != 2, text.count == dashes + format.boundary.count + 2,
            text.suffix(format.boundary.count + 2).elementsEqual(format.boundary + [.dash, .dash])
        else { return nil }
        let reader = DelimiterReader(buffer: buffer, format: format, partIndex: part.index)
        let before = buffer.lineBreak(before: line.lowerBound)
        let contentEnd = line.lowerBound - (before?.length ?? 0)
        let offset = buffer.offset(of: line.lowerBound)
        var edits = [
            Edit(at: offset, length: Int64(max(dashes - 2, 0)), Array(repeating: .dash, count: max(2 - dashes, 0)))
        ]
        if line.upperBound == buffer.count { edits.append(Edit(at: buffer.offset(of: buffer.count), "\r\n".utf8)) }
        var findings = [
            Finding(
                .wrongCloseDelimiter, at: offset, length: line.count, part: part.index,
                "The last delimiter has \(dashes == 0 ? "no dashes" : dashes == 1 ? "one dash" : "\(dashes) dashes") "
                    + "before its boundary: it is content.",
                // A line at the start of the content may itself be content, so it is not changed.
                edits: offset == part.offset ? nil : edits)
        ]
        if let before, before != .crlf { findings.append(reader.bareLineBreak(before, at: contentEnd)) }
        return (
            line.lowerBound,
            .init(contentEnd: contentEnd, next: buffer.count, isClose: true, before: before, findings: findings)
        )
    }

    private mutating func take(_ delimiter: DelimiterLine.Delimiter, at index: Int, _ format: DelimiterFormat) {
        var isPreambleRemoved = false
        if openPart == nil {
            // A preamble is only before the first delimiter. No part is open at some later delimiters either.
            if case .content(_, start: 0) = phase { isPreambleRemoved = notePreamble(upTo: index, format) }
        } else {
            take(position..<max(delimiter.contentEnd, position), format)
            closePart(isCutOff: false)
            frame.take(delimiter, format)
        }
        for var finding in delimiter.findings {
            // Once the preamble is removed, the delimiter begins the body and needs no line break.
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

    /// Adds a finding about bytes before the first delimiter. Returns whether an edit removes these bytes.
    private mutating func notePreamble(upTo index: Int, _ format: DelimiterFormat) -> Bool {
        let end = buffer.offset(of: index)
        guard end > 0 else { return false }
        let isWhole = buffer.offset == 0
        let holdsPart = (0..<index).contains { buffer.holds("content-disposition", at: $0) }
        // The bytes may also hold a delimiter with a mistake, or a header without Content-Disposition.
        let mayHoldPart = holdsPart || (0..<index).contains { buffer.mayBeginPart(at: $0, before: index, format) }
        let edits = isWhole && !mayHoldPart ? [Edit(at: 0, length: end, [])] : nil
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
            let what =
                holdsPart
                ? ", and they include a part's header"
                : mayHoldPart ? ", and they may be a part whose delimiter is not one" : ""
            let preamble = Finding(
                .preamble, at: 0, length: min(index, 64),
                "There are \(end) bytes before the first delimiter\(what).", edits: edits)
            add(mayHoldPart ? preamble.weighing(.error) : preamble)
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
            // A body that ends inside a header has no further part. The parser reports the truncation.
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
        // Only the first field named `policy` is kept whole.
        let isPolicy = !hasPolicy && !header.isFile && header.name.utf8.isEqualIgnoringCase("policy")
        hasPolicy = hasPolicy || isPolicy
        let content = PartContent(
            contentType: HeaderChecks.meantType(of: header), filename: header.filename, isPolicy: isPolicy)
        frame.take(lines, header)
        openPart = OpenPart(
            index: partCount, header: header, offset: offset, content: content,
            opening: Excerpt(offset: buffer.offset(of: range.lowerBound), bytes: Array(buffer.bytes[range])))
        partCount += 1
    }

    /// Describes the part whose content has been read.
    mutating func closePart(isCutOff: Bool) {
        guard let part = openPart else { return }
        let checks = ContentChecks(
            header: part.header, content: part.content, offset: part.offset, partIndex: part.index, isCutOff: isCutOff)
        for finding in checks.findings { add(finding) }
        for finding in part.hidden.findings(isCutOff: isCutOff) { add(finding) }
        if part.content.size > 0 { frame.takeContent() }
        if !isCutOff { trailingLineBreaks.take(part, isPicture: checks.lineBreakBehindPicture != nil) }
        openPart = nil
        guard parts.count == part.index, parts.count < Self.maximumDescribedParts else { return }
        parts.append(
            Explanation.Part(
                name: part.header.name, filename: part.header.filename, contentType: part.header.contentType,
                offset: part.offset, size: part.content.size, sha256: part.content.sha256,
                headerFields: part.header.fields, text: part.content.text))
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
        if content != .part, position < end,
            let line = format.hiddenParts.lines(in: buffer, position..<end).first(where: { $0.start >= position })
        {
            content = .part
            add(
                Finding(
                    .partsAfterCloseDelimiter, at: buffer.offset(of: line.start),
                    "A line after the close delimiter resembles a delimiter or a part's header, where most servers "
                        + "look for none."))
        }
        phase = .epilogue(format, start: start, holding: content)
        position = max(read, end)
    }
}

extension BodyBuffer {
    /// Whether the line that begins at an index may be a delimiter with a mistake, or a part's header.
    fileprivate func mayBeginPart(at index: Int, before limit: Int, _ format: DelimiterFormat) -> Bool {
        guard index == 0 || lineBreak(before: index) != nil else { return false }
        if self[index] == .dash || beginsHeader(at: index) { return true }
        let core = format.hiddenParts.core
        let end = lineEnd(from: index, endingAtCarriageReturn: true, limit: limit)
        return !core.isEmpty && ByteSearch(core).firstIndex(in: bytes, from: index, end: end) != nil
    }
}
