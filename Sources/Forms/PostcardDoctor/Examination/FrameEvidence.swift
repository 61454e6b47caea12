import PostcardForm

/// How the form's parts are framed, where one part shows how another was meant.
struct FrameEvidence: Sendable {
    /// The delimiters without a line break before them, and those with one.
    private var delimiters = (unbroken: 0, broken: 0)
    /// Whether a line break before a delimiter is none that other lines have.
    private var holdsOtherBreak = false

    /// The parts without a blank line, those with one and a content, and those of them whose blank line may as well be in
    /// the content.
    private var parts = (unparted: 0, parted: 0, doubtful: 0)
    /// Whether the last part has a blank line, and whether that may be in its content.
    private var last: (isParted: Bool, isDoubtful: Bool) = (false, false)

    mutating func take(_ delimiter: DelimiterLine.Delimiter, _ format: DelimiterFormat) {
        if delimiter.findings.contains(where: { $0.code == .missingLineBreakBeforeDelimiter }) {
            delimiters.unbroken += 1
        } else if let before = delimiter.before {
            delimiters.broken += 1
            if before != .crlf, before != format.lineBreak { holdsOtherBreak = true }
        }
    }

    mutating func take(_ lines: HeaderLines, _ header: HeaderReading) {
        last = (false, false)
        switch lines.end {
        case .content, .delimiter:
            parts.unparted += 1
        case .blankLine:
            // A text may begin as a header does, or with a line break of another kind.
            let isText = !header.isFile || header.findings.contains { $0.code == .duplicatePartContentType }
            last = (true, (isText && lines.lines.count > 1) || lines.isBlankLineOther)
        case .body, .limit:
            break
        }
    }

    /// Notes that the last part has a content.
    mutating func takeContent() {
        parts.parted += last.isParted ? 1 : 0
        parts.doubtful += last.isDoubtful ? 1 : 0
    }

    /// What is not certain to be wrong where it was found, because elsewhere the same would not be seen.
    var doubtful: [FormProblem.Code] {
        var codes: [FormProblem.Code] = []
        if (delimiters.unbroken > 1 && delimiters.broken > 0) || (delimiters.unbroken > 0 && holdsOtherBreak) {
            codes.append(.missingLineBreakBeforeDelimiter)
        }
        let areAllDoubtful = parts.doubtful > 0 && parts.doubtful == parts.parted
        if parts.unparted > 1 ? parts.parted > 0 : parts.unparted == 1 && areAllDoubtful {
            codes.append(.missingBlankLine)
        }
        return codes
    }
}
