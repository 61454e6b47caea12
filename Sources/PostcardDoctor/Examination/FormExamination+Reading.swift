import PostcardForm

extension FormExamination {
    /// What must follow a place before it can be told what it is: a delimiter's line, and the header behind it.
    private static let lookahead = HeaderLines.maximumBytes + 512

    /// As much as is kept while there is no more.
    private static let keptBytes = 64 << 10

    /// Reads in the window as far as can be told.
    mutating func readWindow() {
        while step() {}
        // A small request stays whole, so that whatever is found in it can be shown.
        guard position >= Self.keptBytes else { return }
        let count = window.forget(before: position)
        position -= count
        searched = max(searched - count, position)
    }

    /// - Returns: Whether there may be more to read.
    private mutating func step() -> Bool {
        switch phase {
        case .opening:
            readOpening()
            return true
        case .content(let frame, let start):
            return readContent(frame, start: start)
        case .header(let frame, let delimiterStart):
            return readHeader(frame, delimiterStart: delimiterStart)
        case .epilogue(let frame, let start, let content):
            readEpilogue(frame, start: start, holding: content)
            return false
        case .lost:
            position = window.count
            return false
        }
    }

    private mutating func readOpening() {
        if !BodyKind.isGzip(window), let frame = Frame(opening: window, announced: announcedBoundary) {
            phase = .content(frame, start: 0)
            return
        }
        let code = BodyKind(window, isEncoded: isEncoded)?.code
        if let code { noteKind(code) }
        if let announcedBoundary, !announcedBoundary.isEmpty, code == nil {
            phase = .content(Frame(boundary: announcedBoundary), start: 0)
        } else {
            phase = .lost
        }
    }

    private mutating func noteKind(_ code: DoctorCode) {
        let what =
            switch code {
            case .jsonBody: "JSON"
            case .urlEncodedBody: "a URL-encoded form"
            case .base64Body: "a form that was encoded in base64 as a whole"
            case .compressedBody: "compressed"
            default: "a form that was percent-encoded as a whole"
            }
        add(Finding(.doctor(code), at: 0, length: min(window.count, 64), "The body is \(what), not a multipart form."))
    }

    // MARK: - Content

    private mutating func readContent(_ frame: Frame, start: Int64) -> Bool {
        let end = window.isLast ? window.count : window.count - Self.lookahead
        guard end > position || window.isLast else { return false }
        let searchEnd = window.isLast ? end : end + frame.delimiter.count - 1
        var from = max(searched, position)
        while from < searchEnd, let found = frame.search.firstIndex(in: window.bytes, from: from, end: searchEnd) {
            let reader = DelimiterReader(window: window, frame: frame, partIndex: openPart?.index)
            let isAtStart = window.offset(of: found) == start || window.holdsByteOrderMark(before: found)
            switch reader.line(at: found, isAtStart: isAtStart) {
            case .content:
                break
            case .lookalike:
                noteLookalike(at: found, frame)
            case .heldByContent:
                noteDelimiterInContent(at: found, frame)
            case .delimiter(let delimiter):
                take(delimiter, at: found, frame)
                return true
            }
            from = found + 1
            searched = from
        }
        if window.isLast, openPart != nil, let close = Self.closeWithoutDashes(window, frame, openPart?.index),
            close.start >= position
        {
            take(close.delimiter, at: close.start, frame)
            return true
        }
        // The line break before a delimiter that begins later is not content.
        let contentEnd = window.isLast ? end : max(end - 2, position)
        take(position..<contentEnd)
        position = contentEnd
        searched = max(end, position)
        return false
    }

    private mutating func take(_ range: Range<Int>) {
        guard openPart != nil, !range.isEmpty else { return }
        window.bytes.withUnsafeBytes { openPart?.content.read(UnsafeRawBufferPointer(rebasing: $0[range])) }
    }

    private mutating func noteLookalike(at index: Int, _ frame: Frame) {
        guard let openPart, frame.dashes == 2 else { return }
        add(
            Finding(
                .doctor(.delimiterInContent), at: window.offset(of: index), length: frame.delimiter.count,
                part: openPart.index,
                "A line of the content begins as a delimiter does: some servers end the content there."))
    }

    private mutating func noteDelimiterInContent(at index: Int, _ frame: Frame) {
        add(
            Finding(
                .doctor(.delimiterInContent), at: window.offset(of: index), length: frame.delimiter.count,
                part: openPart?.index,
                "A line of the content is a delimiter, and no part's header follows: servers end the content there."))
    }

    /// A last line that is the close delimiter but for the dashes before its boundary.
    private static func closeWithoutDashes(
        _ window: BodyWindow, _ frame: Frame, _ partIndex: Int?
    ) -> (start: Int, delimiter: DelimiterLine.Delimiter)? {
        guard frame.dashes == 2, let line = window.lastLine else { return nil }
        let text = window.bytes[line]
        let dashes = text.first == .dash ? 1 : 0
        guard text.dropFirst(dashes).elementsEqual(frame.boundary + [.dash, .dash]) else { return nil }
        let reader = DelimiterReader(window: window, frame: frame, partIndex: partIndex)
        let before = window.lineBreak(before: line.lowerBound)
        let contentEnd = line.lowerBound - (before?.length ?? 0)
        let offset = window.offset(of: line.lowerBound)
        var edits = [Edit(at: offset, Array(repeating: .dash, count: 2 - dashes))]
        if line.upperBound == window.count { edits.append(Edit(at: window.offset(of: window.count), "\r\n".utf8)) }
        var findings = [
            Finding(
                .doctor(.wrongCloseDelimiter), at: offset, length: line.count, part: partIndex,
                "The last delimiter has \(dashes == 0 ? "no dashes" : "one dash") before its boundary: it is content.",
                edits: edits)
        ]
        if let before, before != .crlf { findings.append(reader.bareLineBreak(before, at: contentEnd)) }
        return (
            line.lowerBound, .init(contentEnd: contentEnd, next: window.count, isClose: true, findings: findings)
        )
    }

    private mutating func take(_ delimiter: DelimiterLine.Delimiter, at index: Int, _ frame: Frame) {
        var isPreambleRemoved = false
        if openPart == nil {
            if partCount == 0 { isPreambleRemoved = notePreamble(upTo: index) }
        } else {
            take(position..<max(delimiter.contentEnd, position))
            closePart(isCutOff: false)
        }
        for var finding in delimiter.findings {
            // Without the preamble the delimiter begins the body.
            let isMended = isPreambleRemoved && finding.code == .doctor(.missingLineBreakBeforeDelimiter)
            if isMended { finding.edits = [] }
            add(finding)
        }
        let start = window.offset(of: index)
        let next = window.offset(of: delimiter.next)
        phase =
            delimiter.isClose
            ? .epilogue(frame, start: next, holding: .blank) : .header(frame, delimiterStart: start)
        position = delimiter.next
        searched = position
    }

    /// What stands before the first delimiter.
    ///
    /// - Returns: Whether it is taken away.
    private mutating func notePreamble(upTo index: Int) -> Bool {
        let end = window.offset(of: index)
        guard end > 0 else { return false }
        let isWhole = window.offset == 0
        let holdsPart = (0..<index).contains { window.holds("content-disposition", at: $0) }
        let edits = isWhole && !holdsPart ? [Edit(at: 0, length: end, [])] : nil
        if isWhole, index == 3, window.holdsByteOrderMark(before: index) {
            add(
                Finding(
                    .doctor(.byteOrderMark), at: 0, length: 3,
                    "The body begins with a byte order mark, before the first delimiter.", edits: edits))
        } else if isWhole, window.bytes[..<index].allSatisfy({ $0 == .carriageReturn || $0 == .lineFeed }) {
            add(
                Finding(
                    .doctor(.leadingLineBreak), at: 0, length: index,
                    "The body begins with a line break, before the first delimiter.", edits: edits))
        } else {
            let header = holdsPart ? ", and a part's header is among them" : ""
            let preamble = Finding(
                .doctor(.preamble), at: 0, length: min(index, 64),
                "\(end) bytes stand before the first delimiter\(header).", edits: edits)
            add(holdsPart ? preamble.weighing(.error) : preamble)
        }
        return edits != nil
    }

    // MARK: - Headers

    private mutating func readHeader(_ frame: Frame, delimiterStart: Int64) -> Bool {
        guard let lines = HeaderLines(in: window, from: position, frame: frame, partIndex: partCount) else {
            return false
        }
        let start = position
        position = lines.contentStart
        searched = position
        for finding in lines.findings { add(finding) }
        if case .body = lines.end {
            // Where the body ends inside a header there is no part; the parser says so.
            return false
        }
        if case .delimiter = lines.end, lines.lines.isEmpty {
            let length = window.offset(of: start) - delimiterStart
            add(
                Finding(
                    .form(.missingContentDisposition), at: window.offset(of: start), part: partCount,
                    "A delimiter is followed by another: there is no part between them.",
                    edits: [Edit(at: delimiterStart, length: length, [])]))
            phase = .content(frame, start: window.offset(of: start))
            return true
        }
        openPart(lines, from: start)
        phase = .content(frame, start: window.offset(of: position))
        return true
    }

    private mutating func openPart(_ lines: HeaderLines, from start: Int) {
        let offset = window.offset(of: position)
        let header = ReadHeader(
            HeaderText(lines, in: window), partIndex: partCount, offset: window.offset(of: start))
        if case .limit = lines.end {
            add(
                Finding(
                    .form(.headerTooLarge), at: offset, part: partCount,
                    "The part's header has more than \(HeaderLines.maximumBytes) bytes without a blank line."))
        }
        for finding in header.findings { add(finding) }
        for finding in HeaderChecks(header: header, partIndex: partCount).findings { add(finding) }
        let range = max(start - Excerpt.reach, 0)..<min(position + Excerpt.reach, window.count)
        openPart = OpenPart(
            index: partCount, header: header, offset: offset,
            opening: Excerpt(offset: window.offset(of: range.lowerBound), bytes: Array(window.bytes[range])))
        partCount += 1
    }

    /// Describes the part whose content has gone by.
    mutating func closePart(isCutOff: Bool) {
        guard let part = openPart else { return }
        let checks = ContentChecks(
            header: part.header, content: part.content, offset: part.offset, partIndex: part.index, isCutOff: isCutOff)
        for finding in checks.findings { add(finding) }
        if !isCutOff { trailingLineBreaks.take(part, isPicture: checks.lineBreakBehindPicture != nil) }
        openPart = nil
        let isDescribed = parts.count == part.index && parts.count < Self.maximumDescribedParts
        guard isDescribed, describedHeaderBytes < Self.maximumDescribedHeaderBytes else { return }
        describedHeaderBytes += part.header.fields.reduce(0) { $0 + $1.name.utf8.count + $1.value.utf8.count }
        parts.append(
            Explanation.Part(
                name: part.header.name, filename: part.header.filename, contentType: part.header.contentType,
                offset: part.offset, size: part.content.size, sha256: part.content.sha256,
                headers: part.header.fields))
    }

    // MARK: - Behind the close delimiter

    private mutating func readEpilogue(_ frame: Frame, start: Int64, holding content: EpilogueContent) {
        var content = content
        let end = window.isLast ? window.count : max(window.count - Self.lookahead, position)
        var from = position
        var read = position
        while content != .part, from < end,
            let found = frame.search.firstIndex(
                in: window.bytes, from: from, end: min(end + frame.delimiter.count, window.count))
        {
            from = found + 1
            content.take(window.bytes[min(read, found)..<found])
            let next = found + frame.delimiter.count
            let isClose = window.holds("--", at: next)
            read = isClose ? next + 2 : next
            guard window.beginsPart(behind: window.skippingBlanks(from: next)) else {
                if isClose { content = content.closedAgain }
                continue
            }
            content = .part
            add(
                Finding(
                    .doctor(.partsAfterCloseDelimiter), at: window.offset(of: found), length: frame.delimiter.count,
                    "Another part follows the close delimiter, where most servers look for none."))
        }
        content.take(window.bytes[min(read, end)..<end])
        phase = .epilogue(frame, start: start, holding: content)
        position = max(read, end)
    }
}
