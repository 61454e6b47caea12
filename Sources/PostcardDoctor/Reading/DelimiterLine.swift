import PostcardForm

/// What stands where the bytes of a delimiter were found.
enum DelimiterLine {
    /// Content, after all.
    case content
    /// Content, on a line of its own that differs from a delimiter only at its end.
    case lookalike
    /// A delimiter for every receiver, and content for whoever wrote it: no part follows.
    case heldByContent
    case delimiter(Delimiter)

    struct Delimiter {
        /// Where the content before it ends.
        let contentEnd: Int
        /// Where the next header begins, or what follows the close delimiter's line.
        let next: Int
        let isClose: Bool
        var findings: [Finding] = []
    }
}

/// Tells delimiters from content, and says what is wrong with them.
struct DelimiterReader {
    let window: BodyWindow
    let frame: Frame
    /// The part whose content is read.
    let partIndex: Int?

    /// - Parameters:
    ///   - index: Where the frame's delimiter stands.
    ///   - isAtStart: Whether it begins the body or a part's content: a line break before it is then imagined.
    func line(at index: Int, isAtStart: Bool) -> DelimiterLine {
        let dashes = isAtStart ? 0 : window.dashes(before: index, atMost: 2 - frame.dashes)
        let start = index - dashes
        let before = isAtStart ? nil : window.lineBreak(before: start)
        let contentEnd = start - (before?.length ?? 0)
        let behind = index + frame.delimiter.count
        let isProper = isAtStart || before == .crlf || (before != nil && before == frame.lineBreak)
        guard var ending = ending(behind, ofLine: isProper) else {
            return isProper && before != nil ? .lookalike : .content
        }
        guard isProper || ending.isCertain else { return .content }
        if !isProper, window.followsDashes(start) { return .lookalike }
        // A frame without dashes is found in any text; only what a part follows is one.
        if frame.dashes == 0, !ending.isCertain, !isAtStart { return .content }
        if isProper, partIndex != nil, !ending.isClose, window.holdsNoHeader(at: ending.next, of: frame) {
            return .heldByContent
        }
        var findings: [Finding] = []
        if let before, before != .crlf {
            findings.append(bareLineBreak(before, at: contentEnd))
        } else if before == nil, !isAtStart {
            findings.append(
                missingLineBreak(
                    at: start,
                    ending.isClose
                        ? "The close delimiter does not begin a line: no CRLF stands between the content and it."
                        : "The delimiter does not begin a line: servers take it, and the part behind it, for content."))
        }
        if frame.dashes + dashes < 2 { findings.append(missingDashes(at: start, frame.dashes + dashes)) }
        ending.findings = findings + ending.findings
        return .delimiter(
            .init(contentEnd: contentEnd, next: ending.next, isClose: ending.isClose, findings: ending.findings))
    }

    private struct Ending {
        let next: Int
        var isClose = false
        /// Whether what follows shows that this is a delimiter, wherever on its line it stands.
        var isCertain = false
        var findings: [Finding] = []
    }

    /// What follows the boundary; `nil` where it is no delimiter's end.
    ///
    /// - Parameter isLine: Whether the delimiter begins a line. Where it does not, text behind it makes it content, and
    ///   nobody needs to look how far that goes.
    private func ending(_ behind: Int, ofLine isLine: Bool) -> Ending? {
        if let close = closing(behind, ofLine: isLine) { return close }
        let padded = window.skippingBlanks(from: behind)
        if let lineBreak = window.lineBreak(at: padded) {
            var ending = Ending(next: padded + lineBreak.length, isCertain: window.beginsPart(behind: padded))
            if padded > behind {
                ending.findings.append(
                    Finding(
                        .doctor(.paddedDelimiter), at: window.offset(of: behind), length: padded - behind,
                        part: partIndex, "The boundary is followed by \(padded - behind) blanks on its line.",
                        edits: [Edit(at: window.offset(of: behind), length: Int64(padded - behind), [])]))
            }
            if lineBreak != .crlf { ending.findings.append(bareLineBreak(lineBreak, at: padded)) }
            return ending
        }
        if window.beginsHeader(at: padded) {
            return Ending(
                next: padded, isCertain: true,
                findings: [
                    Finding(
                        .doctor(.missingLineBreakAfterDelimiter), at: window.offset(of: behind), part: partIndex,
                        "The part's header begins on the delimiter's line.",
                        edits: [Edit(at: window.offset(of: behind), length: Int64(padded - behind), "\r\n".utf8)])
                ])
        }
        guard padded > behind, isLine else { return nil }
        let end = window.lineEnd(from: padded, endingAtCarriageReturn: frame.lineBreak == .cr)
        return Ending(
            next: end + (window.lineBreak(at: end)?.length ?? 0),
            findings: [
                Finding(
                    .form(.malformedDelimiter), at: window.offset(of: padded), length: min(end - padded, 40),
                    part: partIndex, "The delimiter is followed by more than spaces and tabs on its line.")
            ])
    }

    /// What follows the boundary where it is the last delimiter, well written or not.
    private func closing(_ behind: Int, ofLine isLine: Bool) -> Ending? {
        if window[behind] == .dash, window[behind + 1] == .dash {
            let padded = window.skippingBlanks(from: behind + 2)
            if let lineBreak = window.lineBreak(at: padded) {
                let next = padded + lineBreak.length
                var ending = Ending(next: next, isClose: true, isCertain: window.isLast && next == window.count)
                if lineBreak != .crlf { ending.findings.append(bareLineBreak(lineBreak, at: padded)) }
                return ending
            }
            if padded == window.count, window.isLast { return Ending(next: padded, isClose: true, isCertain: true) }
            return isLine ? Ending(next: padded, isClose: true, findings: [textBehind(padded)]) : nil
        }
        guard window.isLast, partIndex != nil, let length = wrongDashes(behind) else { return nil }
        let end = window.offset(of: window.count)
        let found = window.offset(of: behind)
        return Ending(
            next: window.count, isClose: true, isCertain: true,
            findings: [
                Finding(
                    .doctor(.wrongCloseDelimiter), at: found, length: length, part: partIndex,
                    length == 0
                        ? "The last delimiter has no dashes behind its boundary: another part is awaited."
                        : "The last delimiter does not end in two hyphens.",
                    edits: [Edit(at: found, length: end - found, "--\r\n".utf8)])
            ])
    }

    /// How long what stands in the place of the close delimiter's dashes is, where nothing but a line break follows.
    private func wrongDashes(_ behind: Int) -> Int? {
        let rest = window.bytes[min(behind, window.count)...]
        guard rest.count <= 8 else { return nil }
        var dashes = Array(rest)
        while let last = dashes.last, last.isBlank || last == .carriageReturn || last == .lineFeed {
            dashes.removeLast()
        }
        let typographic: [[UInt8]] = [[], [.dash], Array("–".utf8), Array("—".utf8), Array("−".utf8), Array("——".utf8)]
        return typographic.contains(dashes) ? dashes.count : nil
    }

    private func textBehind(_ index: Int) -> Finding {
        let offset = window.offset(of: index)
        let end = window.lineEnd(from: index, endingAtCarriageReturn: frame.lineBreak == .cr)
        let rest = window.offset(of: window.count) - offset
        let isRest = window.isLast && frame.search.firstIndex(in: window.bytes, from: index, end: window.count) == nil
        return Finding(
            .form(.textAfterCloseDelimiter), at: offset, length: min(end - index, 40),
            "The close delimiter is followed by text on its line.",
            edits: isRest ? [Edit(at: offset, length: rest, "\r\n".utf8)] : nil)
    }

    private func missingLineBreak(at index: Int, _ message: String) -> Finding {
        let offset = window.offset(of: index)
        return Finding(
            .doctor(.missingLineBreakBeforeDelimiter), at: offset, part: partIndex, message,
            edits: [Edit(at: offset, "\r\n".utf8)])
    }

    private func missingDashes(at index: Int, _ count: Int) -> Finding {
        let offset = window.offset(of: index)
        return Finding(
            .doctor(.delimiterWithoutDashes), at: offset, length: count + frame.boundary.count, part: partIndex,
            "The delimiter has \(count == 0 ? "no dashes" : "one dash") before its boundary.",
            edits: [Edit(at: offset, Array(repeating: .dash, count: 2 - count))])
    }

    func bareLineBreak(_ lineBreak: LineBreak, at index: Int) -> Finding {
        .bareLineBreak(lineBreak, at: window.offset(of: index), part: partIndex)
    }
}

extension Finding {
    static func bareLineBreak(_ lineBreak: LineBreak, at offset: Int64, part partIndex: Int?) -> Finding {
        Finding(
            .form(.bareLineBreak), at: offset, length: 1, part: partIndex,
            lineBreak == .lf
                ? "A line of the form's frame ends in LF without CR."
                : "A line of the form's frame ends in CR without LF.",
            edits: [Edit(at: offset, length: 1, "\r\n".utf8)])
    }
}
