import PostcardForm

/// The delimiters of a body as the body writes them. They may differ from what the Content-Type says.
struct DelimiterFormat: Sendable {
    /// The boundary that the body uses.
    let boundary: [UInt8]
    /// The number of dashes before the boundary in the body. A correct body has two.
    let dashes: Int
    /// The line break of delimiters and headers, taken from the first such line.
    let lineBreak: LineBreak
    let search: ByteSearch
    /// Searches for lines that may have been meant as delimiters.
    let hiddenParts: HiddenParts

    var delimiter: [UInt8] { search.needle }

    /// Whether every server reads the boundary the same way.
    var isBoundaryCertain: Bool { boundary.allSatisfy { $0.isBoundaryCharacter } && boundary.count <= 70 }

    init(boundary: some Sequence<UInt8>, dashes: Int = 2, lineBreak: LineBreak = .crlf) {
        self.boundary = Array(boundary)
        self.dashes = dashes
        self.lineBreak = lineBreak
        search = ByteSearch(Array(repeating: .dash, count: dashes) + self.boundary)
        hiddenParts = HiddenParts(boundary: self.boundary, delimiter: search.needle, lineBreak: lineBreak)
    }

    /// The number of bytes to search for the first delimiter.
    static let opening = 64 << 10

    /// Recognizes the format by the first bytes of a body and the announced boundary; `nil` if nothing looks like a
    /// delimiter.
    init?(opening buffer: BodyBuffer, announced: [UInt8]?) {
        if let announced, !announced.isEmpty, let format = DelimiterFormat(announced: announced, in: buffer),
            !format.isCloseDelimiterOfAnother(in: buffer)
        {
            self = format.formatBefore(in: buffer) ?? format
            return
        }
        var start = 0
        var lines = 0
        while start < min(buffer.count, Self.opening), lines < 200 {
            let end = buffer.lineEnd(from: start, endingAtCarriageReturn: true)
            if let format = DelimiterFormat(line: start..<end, of: buffer, announced: announced) {
                self = format
                return
            }
            guard let lineBreak = buffer.lineBreak(at: end) else { break }
            start = end + lineBreak.length
            lines += 1
        }
        return nil
    }

    /// Makes the format with the Content-Type's boundary; `nil` if the body has no delimiters with it.
    private init?(announced: [UInt8], in buffer: BodyBuffer) {
        let format = DelimiterFormat(boundary: announced)
        var index = 0
        while let found = format.search.firstIndex(in: buffer.bytes, from: index, end: buffer.count) {
            let behind = found + format.delimiter.count
            let padded = buffer.skippingBlanks(from: behind)
            let beginsLine =
                found == 0 || buffer.lineBreak(before: found) != nil || buffer.holdsByteOrderMark(before: found)
            if beginsLine {
                if let lineBreak = buffer.lineBreak(at: padded) {
                    self.init(boundary: announced, lineBreak: lineBreak)
                    return
                }
                let isClose = buffer[behind] == .dash && buffer[behind + 1] == .dash
                let isPadded = padded > behind
                if isClose || isPadded || buffer.beginsHeader(at: behind) || behind == buffer.count {
                    self = format
                    return
                }
            } else if buffer.beginsPart(behind: behind), !buffer.followsDashes(found) {
                self = format
                return
            }
            index = found + 1
        }
        return nil
    }

    /// Whether the Content-Type's boundary wrongly includes the dashes of the close delimiter.
    private func isCloseDelimiterOfAnother(in buffer: BodyBuffer) -> Bool {
        guard boundary.count > 2, boundary.suffix(2).elementsEqual("--".utf8) else { return false }
        let shorter = DelimiterFormat(boundary: boundary.dropLast(2))
        guard let first = shorter.search.firstIndex(in: buffer.bytes, from: 0, end: buffer.count) else { return false }
        return buffer.lineBreak(at: first + shorter.delimiter.count) != nil
    }

    /// The format of a delimiter with another boundary at the start of the body; `nil` if there is no such delimiter.
    private func formatBefore(in buffer: BodyBuffer) -> DelimiterFormat? {
        var start = 0
        while let lineBreak = buffer.lineBreak(at: start) { start += lineBreak.length }
        let end = buffer.lineEnd(from: start, endingAtCarriageReturn: true)
        let line = buffer.bytes[start..<end]
        // A line with the same boundary does not count: only its dashes are wrong.
        guard line.starts(with: "--".utf8), !HiddenParts.core(of: line).elementsEqual(hiddenParts.core),
            !buffer.holds(delimiter, at: start)
        else { return nil }
        return DelimiterFormat(line: start..<end, of: buffer, announced: boundary)
    }

    /// Makes the format of a line that is the first delimiter; `nil` if no part's header follows the line.
    private init?(line: Range<Int>, of buffer: BodyBuffer, announced: [UInt8]?) {
        guard (1...200).contains(line.count), let lineBreak = buffer.lineBreak(at: line.upperBound) else { return nil }
        guard buffer.beginsPart(behind: line.upperBound) else { return nil }
        var text = buffer.bytes[line]
        if text.starts(with: [0xEF, 0xBB, 0xBF]) { text = text.dropFirst(3) }
        while let last = text.last, last.isBlank { text.removeLast() }
        guard text.allSatisfy({ $0 >= 0x20 && $0 != 0x7F }), !text.isEmpty else { return nil }
        if text.starts(with: "--".utf8), text.count > 2 {
            self.init(boundary: text.dropFirst(2), lineBreak: lineBreak)
            return
        }
        let bare = text.drop { $0 == .dash }
        guard !bare.isEmpty, !bare.contains(.colon) || announced.map({ bare.elementsEqual($0) }) == true else {
            return nil
        }
        self.init(boundary: bare, dashes: text.count - bare.count, lineBreak: lineBreak)
    }
}

/// The meaning of bytes that look like a delimiter.
enum DelimiterLine {
    /// The bytes are content.
    case content
    /// The bytes are content. Their line differs from a delimiter only after the boundary.
    case lookalike
    /// No part follows the bytes, so the sender meant content. Every receiver still reads them as a delimiter.
    case heldByContent
    case delimiter(Delimiter)

    struct Delimiter {
        let contentEnd: Int
        /// The index after the delimiter's line: the start of the next header, or of the bytes after the form.
        let next: Int
        let isClose: Bool
        /// The line break before the delimiter; `nil` if there is none.
        var before: LineBreak?
        var findings: [Finding] = []
    }
}

/// Distinguishes delimiters from content, and finds mistakes in delimiters.
struct DelimiterReader {
    let buffer: BodyBuffer
    let format: DelimiterFormat
    /// The index of the part whose content is being read.
    let partIndex: Int?

    /// Decides whether the bytes at an index are a delimiter or content. `isAtStart` says whether the body or a part's
    /// content begins there, so that a delimiter needs no line break before it.
    func line(at index: Int, isAtStart: Bool) -> DelimiterLine {
        let dashes = isAtStart ? 0 : buffer.dashes(before: index, atMost: 2 - format.dashes)
        let start = index - dashes
        let before = isAtStart ? nil : buffer.lineBreak(before: start)
        let contentEnd = start - (before?.length ?? 0)
        let behind = index + format.delimiter.count
        let isProper = isAtStart || before == .crlf || (before != nil && before == format.lineBreak)
        guard var ending = ending(behind, ofLine: isProper) else {
            return isProper && before != nil ? .lookalike : .content
        }
        guard isProper || ending.isCertain else { return .content }
        if !isProper, buffer.followsDashes(start) { return .content }
        // Any text may contain a boundary without dashes. It is a delimiter only if a part follows.
        if format.dashes == 0, !ending.isCertain, !isAtStart { return .content }
        if isProper, partIndex != nil, !ending.isClose, buffer.holdsNoHeader(at: ending.next, of: format) {
            return .heldByContent
        }
        var findings: [Finding] = []
        if let before, before != .crlf {
            var finding = bareLineBreak(before, at: contentEnd)
            // If no other line ends in a lone CR, this CR may be content.
            let isDoubtful =
                before == .cr
                ? format.lineBreak != .cr && !buffer.endsPicture(at: contentEnd) : buffer.endsInStrayByte(contentEnd)
            if isDoubtful { finding.edits = nil }
            findings.append(finding)
        } else if before == nil, !isAtStart {
            findings.append(
                missingLineBreak(
                    at: start,
                    ending.isClose
                        ? "The close delimiter does not begin a line: there is no CRLF between the content and it."
                        : "The delimiter does not begin a line: servers read it, and the part after it, as content."))
        }
        if format.dashes + dashes < 2 {
            var finding = missingDashes(at: start, format.dashes + dashes)
            // At the start of a part's content, the boundary may itself be the content.
            if isAtStart, partIndex != nil { finding.edits = nil }
            findings.append(finding)
        }
        ending.findings = findings + ending.findings
        return .delimiter(
            .init(
                contentEnd: contentEnd, next: ending.next, isClose: ending.isClose, before: before,
                findings: ending.findings))
    }

    /// The first delimiter, if only the dashes or blanks before its boundary differ from other delimiters.
    ///
    /// - Parameter start: The index of the body's first line.
    func firstLine(at start: Int) -> DelimiterLine.Delimiter? {
        let prefix = Array(repeating: UInt8.dash, count: 2) + format.boundary.prefix { $0 == .dash }
        var index = start
        while index - start < 80, let byte = buffer[index], byte == .dash || byte.isBlank { index += 1 }
        let core = format.hiddenParts.core
        guard format.dashes == 2, !core.isEmpty, buffer.holds(core, at: index),
            !buffer.bytes[start..<index].elementsEqual(prefix),
            var ending = ending(index + format.boundary.count - (prefix.count - 2), ofLine: true), ending.isCertain,
            !ending.isClose
        else { return nil }
        let offset = buffer.offset(of: start)
        let edits = [Edit(at: offset, length: Int64(index - start), prefix)]
        let isShort = index - start < prefix.count
        ending.findings.insert(
            Finding(
                isShort ? .delimiterWithoutDashes : .extraDashes, at: offset, length: index - start + core.count,
                part: partIndex,
                isShort
                    ? "The first delimiter has fewer dashes before its boundary than the others."
                    : "The first delimiter has more dashes or blanks before its boundary than the others.",
                edits: edits), at: 0)
        return .init(contentEnd: start, next: ending.next, isClose: false, findings: ending.findings)
    }

    private struct Ending {
        let next: Int
        var isClose = false
        /// Whether the bytes after the boundary prove that it is part of a delimiter, even in the middle of a line.
        var isCertain = false
        var findings: [Finding] = []
    }

    /// The end of a delimiter's line, read from the index `behind` the boundary; `nil` if the line is content. `isLine`
    /// says whether the delimiter begins a line. Otherwise, text after the boundary makes the line content.
    private func ending(_ behind: Int, ofLine isLine: Bool) -> Ending? {
        if let close = closing(behind, ofLine: isLine) { return close }
        let padded = buffer.skippingBlanks(from: behind)
        if let lineBreak = buffer.lineBreak(at: padded) {
            var ending = Ending(next: padded + lineBreak.length, isCertain: buffer.beginsPart(behind: padded))
            if padded > behind {
                ending.findings.append(
                    Finding(
                        .paddedDelimiter, at: buffer.offset(of: behind), length: padded - behind,
                        part: partIndex, "\(padded - behind) blanks follow the boundary on the same line.",
                        edits: [Edit(at: buffer.offset(of: behind), length: Int64(padded - behind), [])]))
            }
            if lineBreak != .crlf { ending.findings.append(bareLineBreak(lineBreak, at: padded)) }
            return ending
        }
        if buffer.beginsHeader(at: padded) {
            return Ending(
                next: padded, isCertain: true,
                findings: [
                    Finding(
                        .missingLineBreakAfterDelimiter, at: buffer.offset(of: behind), part: partIndex,
                        "The part's header begins on the delimiter's line.",
                        edits: [Edit(at: buffer.offset(of: behind), length: Int64(padded - behind), "\r\n".utf8)])
                ])
        }
        guard padded > behind, isLine else { return nil }
        let end = buffer.lineEnd(from: padded, endingAtCarriageReturn: format.lineBreak == .cr)
        return Ending(
            next: end + (buffer.lineBreak(at: end)?.length ?? 0),
            findings: [
                Finding(
                    .malformedDelimiter, at: buffer.offset(of: padded), length: min(end - padded, 40),
                    part: partIndex, "More than spaces and tabs follow the delimiter on the same line.")
            ])
    }

    /// The end of a close delimiter after its boundary, even with mistakes; `nil` if the delimiter does not close.
    private func closing(_ behind: Int, ofLine isLine: Bool) -> Ending? {
        if buffer[behind] == .dash, buffer[behind + 1] == .dash {
            let padded = buffer.skippingBlanks(from: behind + 2)
            if let lineBreak = buffer.lineBreak(at: padded) {
                let next = padded + lineBreak.length
                var ending = Ending(next: next, isClose: true, isCertain: buffer.isLast && next == buffer.count)
                if lineBreak != .crlf { ending.findings.append(bareLineBreak(lineBreak, at: padded)) }
                return ending
            }
            if padded == buffer.count, buffer.isLast { return Ending(next: padded, isClose: true, isCertain: true) }
            return isLine ? Ending(next: padded, isClose: true, findings: [textBehind(padded)]) : nil
        }
        guard buffer.isLast, partIndex != nil, let length = wrongDashes(behind) else { return nil }
        let end = buffer.offset(of: buffer.count)
        let found = buffer.offset(of: behind)
        return Ending(
            next: buffer.count, isClose: true, isCertain: true,
            findings: [
                Finding(
                    .wrongCloseDelimiter, at: found, length: length, part: partIndex,
                    length == 0
                        ? "The last delimiter has no dashes after its boundary: servers wait for another part."
                        : "The last delimiter does not end in two hyphens.",
                    edits: [Edit(at: found, length: end - found, "--\r\n".utf8)])
            ])
    }

    /// The length of wrong dashes in a close delimiter before the final line break; `nil` for any other bytes.
    private func wrongDashes(_ behind: Int) -> Int? {
        let rest = buffer.bytes[min(behind, buffer.count)...]
        guard rest.count <= 8 else { return nil }
        var dashes = Array(rest)
        while let last = dashes.last, last.isBlank || last == .carriageReturn || last == .lineFeed {
            dashes.removeLast()
        }
        let typographic = HiddenParts.typographicDashes + [[], [.dash], Array("——".utf8)]
        return typographic.contains(dashes) ? dashes.count : nil
    }

    private func textBehind(_ index: Int) -> Finding {
        let offset = buffer.offset(of: index)
        let end = buffer.lineEnd(from: index, endingAtCarriageReturn: format.lineBreak == .cr)
        let rest = buffer.offset(of: buffer.count) - offset
        let isRest = buffer.isLast && format.search.firstIndex(in: buffer.bytes, from: index, end: buffer.count) == nil
        return Finding(
            .textAfterCloseDelimiter, at: offset, length: min(end - index, 40),
            "Text follows the close delimiter on the same line.",
            edits: isRest ? [Edit(at: offset, length: rest, "\r\n".utf8)] : nil)
    }

    private func missingLineBreak(at index: Int, _ message: String) -> Finding {
        let offset = buffer.offset(of: index)
        return Finding(
            .missingLineBreakBeforeDelimiter, at: offset, part: partIndex, message,
            // Dashes and blanks before the boundary may belong to the content.
            edits: format.dashes < 2 || buffer.isIndented(index) || buffer.endsInStrayByte(index)
                ? nil : [Edit(at: offset, "\r\n".utf8)])
    }

    private func missingDashes(at index: Int, _ count: Int) -> Finding {
        let offset = buffer.offset(of: index)
        return Finding(
            .delimiterWithoutDashes, at: offset, length: count + format.boundary.count, part: partIndex,
            "The delimiter has \(count == 0 ? "no dashes" : "one dash") before its boundary.",
            edits: [Edit(at: offset, Array(repeating: .dash, count: 2 - count))])
    }

    func bareLineBreak(_ lineBreak: LineBreak, at index: Int) -> Finding {
        .bareLineBreak(lineBreak, at: buffer.offset(of: index), part: partIndex)
    }
}

extension Finding {
    static func bareLineBreak(_ lineBreak: LineBreak, at offset: Int64, part partIndex: Int?) -> Finding {
        Finding(
            .bareLineBreak, at: offset, length: 1, part: partIndex,
            lineBreak == .lf
                ? "A delimiter or header line ends in LF without CR."
                : "A delimiter or header line ends in CR without LF.",
            edits: [Edit(at: offset, length: 1, "\r\n".utf8)])
    }
}
