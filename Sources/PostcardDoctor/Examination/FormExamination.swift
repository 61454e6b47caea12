import PostcardForm

/// Reads the body of a form, chunk by chunk, and explains it.
///
/// ```swift
/// var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
/// examination.read(body.bytes)
/// for finding in examination.finish().findings { print(finding) }
/// ```
///
/// The receiver's parser reads along and has the last word on what is refused. Beside it the body is read as it was
/// meant: with the delimiters and line breaks that it really has, and on behind every problem. Of the content nothing
/// is kept, so that a body may have any size and needs 2 MiB; of its parts, 100,000 are described.
public struct FormExamination: Sendable {
    var window = BodyWindow()
    /// The index in the window up to which the body has been read.
    var position = 0
    /// The index up to which no delimiter begins.
    var searched = 0
    var phase = Phase.opening
    var findings = FindingList()
    var parts: [Explanation.Part] = []
    var partCount = 0
    var openPart: OpenPart?
    /// Where the parts end that are no pictures and end in CRLF, as each but the last does where one CRLF too many
    /// is written.
    var trailingLineBreaks = TrailingLineBreaks()
    private(set) var bodySize: Int64 = 0
    /// The body's first bytes, which much of what is said about the whole points at.
    private var beginning = Excerpt(offset: 0, bytes: [])
    private(set) var verdict: Verdict
    private let announced: ContentTypeReading?
    private let contentType: (value: [UInt8], offset: Int64)?
    /// How many bytes were added since the window was last read.
    private var fresh = 0

    /// Where in the body the reading stands.
    enum Phase {
        /// Not yet far enough to tell what the delimiters look like.
        case opening
        /// Before the first delimiter, or in a part's content, which begins at an offset.
        case content(Frame, start: Int64)
        /// Behind a delimiter's line, which begins at an offset.
        case header(Frame, delimiterStart: Int64)
        /// Behind the close delimiter's line.
        case epilogue(Frame, start: Int64, foundPart: Bool)
        /// Nothing looks like a delimiter.
        case lost
    }

    /// What the receiver's parser makes of the form.
    enum Verdict {
        case reading(FormParser)
        case refused(FormProblem)
        case taken
    }

    struct OpenPart {
        let index: Int
        let header: ReadHeader
        let offset: Int64
        var content = PartContent()
        /// What was found where the content goes on over a delimiter that is none: the rest follows from that.
        var swallowing: FindingCode?
        /// The header and the content's beginning, for the excerpts of what is found at the content's end.
        let opening: Excerpt
    }

    /// As much as is read at once.
    private static let blockBytes = 256 << 10

    /// Begins with a request's `Content-Type`.
    ///
    /// - Parameter contentType: The value of the header field.
    public init(contentType: String) {
        self.init(contentType: Array(contentType.utf8), at: 0)
    }

    /// - Parameters:
    ///   - contentType: The value as it was sent; `nil` where the request has none.
    ///   - offset: Where the value stands in the head.
    init(contentType: [UInt8]?, at offset: Int64) {
        self.contentType = contentType.map { ($0, offset) }
        announced = contentType.map { ContentTypeReading($0, at: offset) }
        do {
            verdict = .reading(
                try FormParser(contentType: String(decoding: contentType ?? [], as: UTF8.self), limits: Self.limits))
        } catch {
            verdict = .refused(error)
        }
    }

    /// Content of any size; all that is held keeps its limit.
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

    static let maximumParts = 100_000

    var announcedBoundary: [UInt8]? { announced?.boundary }

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
            // Always the same blocks, so that a body is read alike however it is cut.
            let count = min(Self.blockBytes - fresh, chunk.byteCount - start)
            window.append(chunk.extracting(start..<(start + count)))
            start += count
            fresh += count
            if fresh == Self.blockBytes {
                fresh = 0
                readWindow()
            }
        }
    }

    /// Ends the body and explains it.
    public mutating func finish() -> Explanation {
        finish(isWhole: nil)
    }

    /// - Parameter isWhole: Whether the head says that the body has ended; `nil` where it says nothing.
    mutating func finish(isWhole: Bool?) -> Explanation {
        window.end()
        readWindow()
        finishVerdict()
        finishBody(isWhole: isWhole)
        noteHead()
        noteVerdict()
        noteWhole()
        var explanation = Explanation(boundary: usedBoundary, parts: parts, findings: findings.sorted)
        explanation.omittedFindings = findings.omitted
        explanation.bodySize = bodySize
        explanation.partCount = partCount
        explanation.edits = findings.edits
        explanation.areEditsComplete = findings.areEditsComplete
        explanation.mendedContentType = mendedContentType
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

    /// The boundary that the Content-Type names, where a receiver can use it.
    private var usedBoundary: String? {
        guard announced?.problem == nil, let boundary = announced?.boundary else { return nil }
        return String(decoding: boundary, as: UTF8.self)
    }

    /// Adds a finding with the bytes around it.
    mutating func add(_ finding: Finding, under cause: FindingCode? = nil) {
        var finding = finding
        finding.excerpt = finding.excerpt ?? excerpt(of: finding)
        // Where the head has lost its CRs, those of the body went the same way.
        let isInBody = finding.code == .form(.bareLineBreak)
        findings.add(finding, under: cause ?? (isInBody ? .doctor(.bareLineBreakInHead) : nil))
    }

    private func excerpt(of finding: Finding) -> Excerpt? {
        guard finding.place == .body else {
            return contentType.map {
                Excerpt(offset: $0.offset, bytes: Array($0.value.prefix(Excerpt.maximumBytes)))
            }
        }
        if finding.offset >= window.offset { return window.excerpt(at: finding.offset) }
        if let found = beginning.around(finding.offset) { return found }
        guard let openPart else { return nil }
        let content = openPart.content
        let samples = [
            openPart.opening, Excerpt(offset: openPart.offset, bytes: content.start),
            Excerpt(offset: openPart.offset + content.photo.offset, bytes: content.photo.exif),
        ]
        return samples.lazy.compactMap { $0.around(finding.offset) }.first
    }
}

// MARK: - The head

extension FormExamination {
    /// The frame that was found, if any.
    private var frame: Frame? {
        switch phase {
        case .content(let frame, _): partCount > 0 ? frame : nil
        case .header(let frame, _), .epilogue(let frame, _, _): frame
        case .opening, .lost: nil
        }
    }

    /// The boundary of the delimiters that were found, as a parameter's value.
    var foundBoundary: String? {
        frame.flatMap { $0.isBoundaryCertain ? Self.parameterValue($0.boundary) : nil }
    }

    /// Whether the close delimiter came, or was put in its place.
    var isClosed: Bool {
        if case .epilogue = phase { return true }
        return findings.holds(.doctor(.missingCloseDelimiter))
    }

    private var mendedContentType: String? {
        guard let frame, announced?.problem != nil || announced?.boundary != frame.boundary else { return nil }
        let mended = "multipart/form-data; boundary=\(Self.parameterValue(frame.boundary))"
        return frame.isBoundaryCertain && (try? FormParser(contentType: mended)) != nil ? mended : nil
    }

    private static func parameterValue(_ boundary: [UInt8]) -> String {
        let text = String(decoding: boundary, as: UTF8.self)
        return boundary.allSatisfy(\.isTokenCharacter) ? text : "\"\(text)\""
    }

    /// What is wrong with the Content-Type, by itself and against the body.
    private mutating func noteHead() {
        guard let announced, let contentType else { return }
        let edits = mendedContentType.map {
            [Edit(in: .head, at: contentType.offset, length: Int64(contentType.value.count), $0.utf8)]
        }
        var cause: FindingCode?
        for finding in announced.findings {
            var finding = finding
            if finding.code == .doctor(.duplicateContentType) {
                finding.edits = edits
                cause = finding.code
            }
            add(finding)
        }
        if let problem = announced.problem {
            var finding = Finding(problem, in: .head, at: contentType.offset, length: contentType.value.count)
            if cause == nil { finding.edits = edits }
            add(inView(ofBody: finding), under: cause)
            cause = cause ?? finding.code
        }
        noteBoundary(announced, contentType, under: cause, edits)
    }

    /// What is wrong with the Content-Type, with what the body shows of how it was meant.
    private func inView(ofBody finding: Finding) -> Finding {
        guard partCount > 0, let frame else { return finding }
        switch finding.code {
        case .form(.notFormData):
            return finding.saying("\(finding.message) The body is a form all the same.")
        case .form(.missingBoundary):
            let used = String(decoding: frame.boundary, as: UTF8.self)
            return finding.saying("\(finding.message) The body uses \(used.debugDescription).")
        default:
            return finding
        }
    }

    private mutating func noteBoundary(
        _ announced: ContentTypeReading, _ contentType: (value: [UInt8], offset: Int64), under cause: FindingCode?,
        _ edits: [Edit]?
    ) {
        guard let boundary = announced.boundary, let frame, frame.boundary != boundary else { return }
        let code = FindingCode.doctor(ContentTypeReading.difference(boundary, frame.boundary))
        let used = String(decoding: frame.boundary, as: UTF8.self)
        let named = String(decoding: boundary, as: UTF8.self)
        let value = contentType.value
        let place = ByteSearch(boundary).firstIndex(in: value, from: 0, end: value.count) ?? 0
        add(
            Finding(
                code, in: .head, at: contentType.offset + Int64(place), length: boundary.count,
                "The Content-Type names the boundary \(named.debugDescription), and the body uses \(used.debugDescription).",
                edits: cause == nil ? edits : nil),
            under: cause)
    }

    /// What the parser says where nothing that was found says it better.
    private mutating func noteVerdict() {
        guard case .refused(let problem) = verdict else { return }
        if announced == nil {
            // The request has no Content-Type, which stands first among what was found.
            return
        }
        if announced?.problem != nil { return }
        let boundaryCodes: [DoctorCode] = [
            .boundaryMismatch, .boundaryWithDashes, .boundaryQuotes, .boundarySpaces, .boundaryCase,
            .delimiterWithoutDashes,
        ]
        let causes = boundaryCodes + [.jsonBody, .urlEncodedBody, .base64Body, .percentEncodedBody]
        if problem.code == .delimiterNotFound, let cause = causes.first(where: { findings.holds(.doctor($0)) }) {
            add(Finding(problem), under: .doctor(cause))
        } else if !findings.holdsError {
            add(Finding(problem))
        }
    }
}

extension Excerpt {
    func appending(_ new: UnsafeRawBufferPointer) -> Excerpt { Excerpt(offset: offset, bytes: bytes + new) }

    /// As much of it as is shown of a place; `nil` where the place lies outside.
    func around(_ place: Int64) -> Excerpt? {
        guard place >= offset, place <= offset + Int64(bytes.count) else { return nil }
        let index = Int(place - offset)
        let range = max(index - Self.reach, 0)..<min(index + Self.reach, bytes.count)
        return Excerpt(offset: offset + Int64(range.lowerBound), bytes: Array(bytes[range]))
    }
}
