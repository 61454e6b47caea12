import PostcardForm

/// The parts of other forms inside the content of a part. A form that also ends inside the content is there on purpose.
struct HiddenForms: Sendable {
    private var forms: [(finding: Finding, end: ByteSearch, isEnded: Bool)] = []
    /// Whether a line of the content resembles the close delimiter of the examined form.
    var holdsClose = false

    /// The maximum number of forms that are recorded for each content.
    private static let maximum = 4

    var isEmpty: Bool { forms.isEmpty }

    /// Records the header of a part of another form in the content. `end` is the close delimiter of that form. The
    /// finding is reported if the content does not contain the close delimiter. Returns `false` if too many forms are
    /// recorded.
    mutating func begin(_ finding: Finding, end: [UInt8]) -> Bool {
        if forms.contains(where: { $0.end.needle == end }) { return true }
        guard forms.count < Self.maximum else { return false }
        forms.append((finding, ByteSearch(end), false))
        return true
    }

    /// Searches more of the content for the close delimiters of the recorded forms.
    mutating func read(_ range: Range<Int>, of buffer: BodyBuffer) {
        for index in forms.indices where !forms[index].isEnded {
            let end = forms[index].end
            var from = max(range.lowerBound - end.needle.count, 0)
            while let found = end.firstIndex(in: buffer.bytes, from: from, end: range.upperBound) {
                from = found + 1
                let next = found + end.needle.count
                let endsLine = next == range.upperBound || buffer.lineBreak(at: next) != nil
                if buffer.lineBreak(before: found) != nil, endsLine { forms[index].isEnded = true }
            }
        }
    }

    /// The findings about the forms that do not end in the content. If the content is cut off, all recorded
    /// forms are reported, because the parts of each may be parts that the sender meant.
    func findings(isCutOff: Bool) -> [Finding] { forms.filter { isCutOff || !$0.isEnded }.map { $0.finding } }
}

extension FormExamination {
    /// Records the lines that may begin parts in the next bytes of a content.
    mutating func noteHiddenParts(in range: Range<Int>, _ format: DelimiterFormat, _ part: OpenPart) {
        let announced = announcedBoundary.map { HiddenParts.core(of: $0[...]) }
        for line in format.hiddenParts.lines(in: buffer, range) {
            let offset = buffer.offset(of: line.start)
            guard offset >= part.offset else { continue }
            switch line.kind {
            case .text:
                break
            case .closeDelimiter:
                openPart?.hidden.holdsClose = true
            case .delimiter:
                add(
                    Finding(
                        .partInContent, at: offset, part: part.index,
                        "A line of the content differs from a delimiter only in its dashes or blanks: receivers read "
                            + "it and what follows as content."))
            case .header(let end):
                var finding = Finding(
                    .partInContent, at: offset, part: part.index,
                    "A line of the content begins a part's header, and no delimiter is before it: receivers read "
                        + "the part as content.")
                finding.excerpt = buffer.excerpt(at: offset)
                let isOther = end.map { HiddenParts.core(of: $0[...]) != announced } ?? false
                guard isOther, let end, openPart?.hidden.begin(finding, end: end) == true else {
                    add(finding)
                    continue
                }
            }
        }
        openPart?.hidden.read(range, of: buffer)
    }
}
