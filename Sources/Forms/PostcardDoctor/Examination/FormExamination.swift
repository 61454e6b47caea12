import PostcardForm
import PostcardFoundation
import PostcardPictureFormats

/// Reads the body of a form, chunk by chunk, and explains it.
///
/// ```swift
/// var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
/// examination.read(body.bytes)
/// for finding in examination.finish().findings { print(finding) }
/// ```
///
/// The receiver's parser reads the same body and decides what is refused. Meanwhile the examination reads the body as
/// it was meant: with the delimiters and line breaks that it really has, continuing after every problem. Of the
/// content only short texts are kept, so the memory does not grow with the size of files. The first 5,000 parts are
/// described. After 30,000 lines of delimiters and headers only the parser reads on: no one fixes a form line by line
/// that is so long.
public struct FormExamination: Sendable {
    var buffer = BodyBuffer()
    /// The index in the buffer up to which the body has been read.
    var position = 0
    /// The index up to which no delimiter begins.
    var searched = 0
    var phase = Phase.opening
    var findings = FindingList()
    var parts: [Explanation.Part] = []
    var partCount = 0
    var openPart: OpenPart?
    /// Whether there was a field `policy`.
    var hasPolicy = false
    var frame = FrameEvidence()
    /// The parts other than pictures that end in CRLF, as each but the last does if a form has one CRLF too many.
    var trailingLineBreaks = TrailingLineBreaks()
    private(set) var bodySize: Int64 = 0
    /// The body's first bytes, which much of what is said about the whole points at.
    private var beginning = Excerpt(offset: 0, bytes: [])
    private(set) var verdict: Verdict
    let announced: ContentTypeReading?
    let contentType: (value: [UInt8], offset: Int64)?
    /// Whether the head says that the body is compressed.
    let isEncoded: Bool
    /// How many lines of delimiters and headers were read closely. A long line counts as several.
    var examinedLines = 0
    /// How many bytes were added since the buffer was last read.
    private var fresh = 0

    /// The place in the form that is read next.
    enum Phase {
        /// The beginning: too little was read to recognize the delimiters.
        case opening
        /// Before the first delimiter, or in a part's content, which begins at an offset.
        case content(DelimiterFormat, start: Int64)
        /// After a delimiter's line, which begins at an offset.
        case header(DelimiterFormat, delimiterStart: Int64)
        /// After the close delimiter's line.
        case epilogue(DelimiterFormat, start: Int64, holding: EpilogueContent)
        /// The body has nothing that looks like a delimiter.
        case lost
        /// The rest is not read closely: there were too many delimiters and headers.
        case ended
    }

    /// The bytes after the close delimiter's line.
    enum EpilogueContent {
        /// Only line breaks and blanks, and perhaps the close delimiter again.
        case blank
        case text
        /// After text the form is closed again: what closed it first may be content.
        case textAndCloseDelimiter
        case part

        /// Takes bytes that are not a delimiter into account.
        mutating func take(_ bytes: ArraySlice<UInt8>) {
            guard case .blank = self, bytes.contains(where: { !$0.isBlank && $0 != .carriageReturn && $0 != .lineFeed })
            else { return }
            self = .text
        }

        /// The content after the form was closed again.
        var closedAgain: EpilogueContent { self == .text ? .textAndCloseDelimiter : self }
    }

    /// The receiver's parser, and its result.
    enum Verdict {
        case reading(FormParser)
        case refused(FormProblem)
        case taken
    }

    struct OpenPart {
        let index: Int
        let header: HeaderReading
        let offset: Int64
        var content: PartContent
        var hidden = HiddenForms()
        /// The header and the content's beginning, for the excerpts of what is found at the content's end.
        let opening: Excerpt
    }

    /// The size of a block that is read at once.
    private static let blockBytes = 256 << 10

    /// Begins with a request's `Content-Type`.
    ///
    /// - Parameter contentType: The value of the header field.
    public init(contentType: String) {
        self.init(contentType: Array(contentType.utf8), at: 0)
    }

    /// - Parameters:
    ///   - contentType: The value as it was sent; `nil` if the request has none.
    ///   - offset: The offset of the value in the head.
    ///   - isEncoded: Whether the head says that the body is compressed.
    init(contentType: [UInt8]?, at offset: Int64, isEncoded: Bool = false) {
        self.isEncoded = isEncoded
        self.contentType = contentType.map { ($0, offset) }
        announced = contentType.map { ContentTypeReading($0, at: offset) }
        do {
            verdict = .reading(
                try FormParser(contentType: String(streamSafe: contentType ?? []), limits: Self.limits))
        } catch {
            verdict = .refused(error)
        }
    }

    /// The limits of the parser: none for content, the defaults for everything that is held in memory.
    private static let limits: FormLimits = {
        var limits = FormLimits()
        limits.maximumBodyBytes = .max
        limits.maximumFileBytes = .max
        limits.maximumFieldBytes = .max
        limits.maximumPreambleBytes = .max
        limits.maximumEpilogueBytes = .max
        limits.maximumParts = maximumParts
        return limits
    }()

    private static let maximumParts = 100_000

    /// More than any known server's limit. Further parts are only counted.
    static let maximumDescribedParts = 5_000

    static let maximumExaminedLines = 30_000

    /// The Content-Type's boundary, if it can be searched for.
    var announcedBoundary: [UInt8]? {
        announced?.boundary.flatMap { $0.count <= Self.maximumBoundaryBytes ? $0 : nil }
    }

    /// Longer than any that a sender makes. A longer one would not fit what is read ahead, and take long to search for.
    private static let maximumBoundaryBytes = 256

    /// Reads the next chunk of the body.
    ///
    /// - Parameter chunk: Any number of bytes.
    public mutating func read(_ chunk: RawSpan) {
        let missing = Excerpt.maximumBytes - beginning.bytes.count
        if missing > 0 { chunk.extracting(first: missing).withUnsafeBytes { beginning = beginning.appending($0) } }
        bodySize += Int64(chunk.byteCount)
        judge(chunk)
        var start = 0
        while start < chunk.byteCount {
            // Blocks of a fixed size, so the result does not depend on the chunks.
            let count = min(Self.blockBytes - fresh, chunk.byteCount - start)
            buffer.append(chunk.extracting(start..<(start + count)))
            start += count
            fresh += count
            if fresh == Self.blockBytes {
                fresh = 0
                readBuffer()
            }
        }
    }

    /// Ends the body and explains it.
    public mutating func finish() -> Explanation {
        finish(isWhole: nil)
    }

    /// - Parameter isWhole: Whether the body is complete by the head; `nil` if the head does not say.
    package mutating func finish(isWhole: Bool?) -> Explanation {
        buffer.end()
        readBuffer()
        finishVerdict()
        let fixedContentType = fixedContentType
        noteHead()
        finishBody(isWhole: isWhole)
        noteVerdict()
        noteWhole()
        // If each part is written with CRLF before and after it, the body begins with one.
        findings.subordinate(
            .leadingLineBreak,
            under: [.partsAfterCloseDelimiter, .extraLineBreakBeforeDelimiter])
        // A sender that makes other mistakes meant this part too.
        if !findings.edits.isEmpty || findings.holdsError { findings.weigh(.partInContent, .error) }
        var explanation = Explanation(boundary: usedBoundary, parts: parts, findings: findings.sorted)
        explanation.omittedFindings = findings.omitted
        explanation.bodySize = bodySize
        explanation.partCount = partCount
        explanation.edits = findings.edits
        explanation.areEditsComplete = findings.areEditsComplete && examinedLines <= Self.maximumExaminedLines
        explanation.fixedContentType = fixedContentType
        return explanation
    }

    /// Explains the head alone.
    ///
    /// - Parameter message: The message about the missing body.
    mutating func finish(withoutBody message: String) -> Explanation {
        add(Finding(.bodyNotRecorded, at: 0, message))
        noteHead()
        var explanation = Explanation(boundary: usedBoundary, parts: [], findings: findings.sorted)
        // Half a request is not worth fixing.
        explanation.findings = explanation.findings.map { $0.withoutEdits }
        return explanation
    }

    private mutating func judge(_ chunk: RawSpan) {
        guard case .reading(var parser) = verdict else { return }
        do {
            var position = 0
            while try parser.nextEvent(in: chunk, at: &position) != nil {}
            verdict = .reading(parser)
        } catch {
            verdict = .refused(error)
        }
    }

    private mutating func finishVerdict() {
        guard case .reading(var parser) = verdict else { return }
        do {
            try parser.finish()
            verdict = .taken
        } catch {
            verdict = .refused(error)
        }
    }

    /// The Content-Type's boundary, if a receiver can use it.
    private var usedBoundary: String? {
        guard announced?.problem == nil, let boundary = announced?.boundary else { return nil }
        return String(streamSafe: boundary)
    }

    /// Adds a finding with the bytes around it.
    mutating func add(_ finding: Finding, under cause: FormProblem.Code? = nil) {
        var finding = finding
        finding.excerpt = finding.excerpt ?? excerpt(of: finding)
        // If the head lost its CRs, so did the body.
        let isInBody = finding.code == .bareLineBreak
        findings.add(finding, under: cause ?? (isInBody ? .bareLineBreakInHead : nil))
    }

    private func excerpt(of finding: Finding) -> Excerpt? {
        guard finding.place == .body else {
            return contentType.map {
                Excerpt(offset: $0.offset, bytes: Array($0.value.prefix(Excerpt.maximumBytes)))
            }
        }
        if finding.offset >= buffer.offset { return buffer.excerpt(at: finding.offset) }
        if let found = beginning.around(finding.offset) { return found }
        guard let openPart else { return nil }
        let content = openPart.content
        let samples = [
            openPart.opening, Excerpt(offset: openPart.offset, bytes: content.start),
            Excerpt(offset: openPart.offset + content.picture.exifOffset, bytes: content.picture.exif),
        ]
        return samples.lazy.compactMap { $0.around(finding.offset) }.first
    }
}

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
