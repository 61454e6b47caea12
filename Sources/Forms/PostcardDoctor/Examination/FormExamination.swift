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
/// The receiver's parser reads the same body and decides whether the form is refused. The examination itself reads the
/// body as the sender meant it: it uses the delimiters and line breaks of the body, and continues after every problem.
/// An examination keeps only short texts of the content, so its memory does not grow with the size of files. At most
/// 5,000 parts are described. After 30,000 lines of delimiters and headers, only the parser continues.
public struct FormExamination: Sendable {
    var buffer = BodyBuffer()
    /// The index in the buffer where reading continues.
    var position = 0
    /// The index in the buffer where the search for delimiters continues.
    var searched = 0
    var phase = Phase.opening
    var findings = FindingList()
    var parts: [Explanation.Part] = []
    var partCount = 0
    var openPart: OpenPart?
    /// Whether a field named `policy` was found.
    var hasPolicy = false
    var frame = FrameEvidence()
    /// The parts other than pictures that end in CRLF. A sender that adds CRLFs adds one to each part but the last.
    var trailingLineBreaks = TrailingLineBreaks()
    private(set) var bodySize: Int64 = 0
    /// The body's first bytes, as the excerpt of findings about the whole body.
    private var beginning = Excerpt(offset: 0, bytes: [])
    private(set) var verdict: Verdict
    let announced: ContentTypeReading?
    let contentType: (value: [UInt8], offset: Int64)?
    /// Whether the head says that the body is compressed.
    let isEncoded: Bool
    /// The number of lines of delimiters and headers that were examined. A long line counts as several.
    var examinedLines = 0
    /// The number of bytes that were added since the buffer was last read.
    private var fresh = 0

    /// The section of the body that the examination has reached.
    enum Phase {
        /// The start of the body, before the delimiters have been recognized.
        case opening
        /// The bytes before the first delimiter, or a part's content. `start` is the offset of the content.
        case content(DelimiterFormat, start: Int64)
        /// The header after a delimiter. `delimiterStart` is the offset of the delimiter.
        case header(DelimiterFormat, delimiterStart: Int64)
        /// The bytes after the line of the close delimiter.
        case epilogue(DelimiterFormat, start: Int64, holding: EpilogueContent)
        /// A body without anything that looks like a delimiter.
        case lost
        /// The rest of a body after too many delimiters and headers. It is not examined.
        case ended
    }

    /// The kind of bytes after the line of the close delimiter.
    enum EpilogueContent {
        /// Only line breaks and blanks, and perhaps a second close delimiter.
        case blank
        case text
        /// Text and a second close delimiter. The first may have been content.
        case textAndCloseDelimiter
        case part

        /// Records bytes after the close delimiter that are not a delimiter.
        mutating func take(_ bytes: ArraySlice<UInt8>) {
            guard case .blank = self, bytes.contains(where: { !$0.isBlank && $0 != .carriageReturn && $0 != .lineFeed })
            else { return }
            self = .text
        }

        /// The kind of the bytes once another close delimiter was found among them.
        var closedAgain: EpilogueContent { self == .text ? .textAndCloseDelimiter : self }
    }

    /// The result of the receiver's parser, or its state while it reads.
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
        /// An excerpt with the part's header and the beginning of its content, for findings about the content's end.
        let opening: Excerpt
    }

    /// The number of bytes to read at once.
    private static let blockBytes = 256 << 10

    /// Begins an examination with a request's `Content-Type`.
    ///
    /// - Parameter contentType: The value of the header field.
    public init(contentType: String) {
        self.init(contentType: Array(contentType.utf8), at: 0)
    }

    /// Begins an examination. `contentType` is the value of `Content-Type` as it was sent, at an offset in the head;
    /// `nil` if the request has none. `isEncoded` says whether the body is compressed according to the head.
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

    /// The limits of the parser. Content is not limited. Headers, which are held in memory, have the default limits.
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

    /// The maximum number of described parts, more than any known server accepts. Further parts are only counted.
    static let maximumDescribedParts = 5_000

    static let maximumExaminedLines = 30_000

    /// The Content-Type's boundary, if it is short enough to search for.
    var announcedBoundary: [UInt8]? {
        announced?.boundary.flatMap { $0.count <= Self.maximumBoundaryBytes ? $0 : nil }
    }

    /// The maximum length of a boundary, in bytes: longer than real ones, and short enough for the bytes read ahead.
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
            // Blocks have a fixed size, so that the result does not depend on the chunks.
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

    /// Ends the body and explains it. `isWhole` says whether the body is complete according to the head; `nil` if the
    /// head does not say.
    package mutating func finish(isWhole: Bool?) -> Explanation {
        buffer.end()
        readBuffer()
        finishVerdict()
        let fixedContentType = fixedContentType
        noteHead()
        finishBody(isWhole: isWhole)
        noteVerdict()
        noteWhole()
        // A sender that writes CRLF before and after each part also begins the body with CRLF.
        findings.subordinate(
            .leadingLineBreak,
            under: [.partsAfterCloseDelimiter, .extraLineBreakBeforeDelimiter])
        // If the sender made other mistakes, a part inside a content is probably a mistake too.
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

    /// Ends an examination without a body, and explains only the head. The message is about the missing body.
    mutating func finish(withoutBody message: String) -> Explanation {
        add(Finding(.bodyNotRecorded, at: 0, message))
        noteHead()
        var explanation = Explanation(boundary: usedBoundary, parts: [], findings: findings.sorted)
        // A request without its body is not worth fixing.
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
        // A finding about LF line breaks in the body follows from the same problem in the head.
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

/// Compares the delimiters and headers of a form with each other. A mistake in only some of them is uncertain.
struct FrameEvidence: Sendable {
    /// The number of delimiters without a line break before them, and with one.
    private var delimiters = (unbroken: 0, broken: 0)
    /// Whether an unusual line break precedes a delimiter: neither CRLF nor the line break of the other lines.
    private var holdsOtherBreak = false

    /// The numbers of parts without a blank line after their header (`unparted`), with a blank line before content
    /// (`parted`), and with a blank line that may itself be content (`doubtful`).
    private var parts = (unparted: 0, parted: 0, doubtful: 0)
    /// Whether the last part's header ends in a blank line, and whether that line may belong to the content.
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
            // A text may begin with a line like a header field, or with another kind of line break.
            let isText = !header.isFile || header.findings.contains { $0.code == .duplicatePartContentType }
            last = (true, (isText && lines.lines.count > 1) || lines.isBlankLineOther)
        case .body, .limit:
            break
        }
    }

    /// Records that the last part has content.
    mutating func takeContent() {
        parts.parted += last.isParted ? 1 : 0
        parts.doubtful += last.isDoubtful ? 1 : 0
    }

    /// The codes of mistakes in only some of the delimiters or headers. Findings with these codes are uncertain.
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
