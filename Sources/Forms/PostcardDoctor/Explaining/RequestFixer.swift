import PostcardForm

/// Writes a corrected request or body. Fixes only problems with a certain correction.
///
/// The input is read a second time, because the correction of its beginning may depend on its end.
///
/// ```swift
/// var fixer = RequestFixer(explanation)
/// while let chunk = try file.read(upToCount: 1 << 20) { try fixer.read(chunk.bytes) { output.append($0) } }
/// fixer.finish { output.append($0) }
/// ```
///
/// A raw request gets the Content-Length of its fixed body. For a body without a request, only the body is written:
/// send it with ``Explanation/fixedContentType`` if its Content-Type is wrong.
public struct RequestFixer: Sendable {
    private var splitter: RequestSplitter
    private let headEdits: [Edit]
    private var bodyEdits: ArraySlice<Edit>
    private let head: RequestHead?
    private let fixedBodySize: Int64
    /// The number of bytes of the body read so far.
    private var offset: Int64 = 0

    /// Makes a fixer for the input that the explanation describes.
    public init(_ explanation: Explanation) {
        head = explanation.head
        headEdits = explanation.orderedEdits(.head)
        bodyEdits = explanation.orderedEdits(.body)[...]
        fixedBodySize =
            explanation.fixedBodySize.addingReportingOverflow(explanation.missingBytes).partialValue
        splitter = RequestSplitter(explanation)
    }

    /// Reads the next bytes of the input.
    ///
    /// - Parameters:
    ///   - chunk: The next bytes of the input, any number of them.
    ///   - handOn: Receives the bytes of the fixed request or body.
    public mutating func read(_ chunk: RawSpan, handOn: (RawSpan) throws -> Void) rethrows {
        var splitter = splitter
        defer { self.splitter = splitter }
        try splitter.read(chunk) { bytes in
            guard let head else { return }
            let fixed = fixedHead(head, bytes)[...]
            try handOn(fixed.span.bytes)
        } handOnBody: { bytes in
            try readBody(bytes, handOn)
        }
    }

    /// Ends the input and passes on the bytes to insert at its end.
    public mutating func finish(handOn: (RawSpan) throws -> Void) rethrows {
        for edit in bodyEdits {
            let replacement = edit.replacement[...]
            try handOn(replacement.span.bytes)
        }
        bodyEdits = []
    }

    private mutating func readBody(_ chunk: RawSpan, _ handOn: (RawSpan) throws -> Void) rethrows {
        var index = 0
        while index < chunk.byteCount {
            guard let edit = bodyEdits.first, edit.offset < offset + Int64(chunk.byteCount - index) else {
                try handOn(chunk.extracting(index...))
                offset += Int64(chunk.byteCount - index)
                return
            }
            if edit.offset > offset {
                let count = Int(clamping: edit.offset - offset)
                try handOn(chunk.extracting(index..<(index + count)))
                index += count
                offset += Int64(count)
            }
            // The replaced bytes may continue in the next chunk.
            let passed = offset - edit.offset
            let replacement = edit.replacement[...]
            if passed == 0, !replacement.isEmpty { try handOn(replacement.span.bytes) }
            let skipped = min(edit.length - passed, Int64(chunk.byteCount - index))
            index += Int(clamping: skipped)
            offset += skipped
            if passed + skipped == edit.length { bodyEdits.removeFirst() }
        }
    }

    /// The head with all edits and the length of the fixed body.
    private func fixedHead(_ head: RequestHead, _ headBytes: [UInt8]) -> [UInt8] {
        var edits = headEdits
        let lengths = head.all("content-length")
        let replaced = lengths + head.all("transfer-encoding")
        let touched = Set(edits.map { $0.offset })
        let line = Array("Content-Length: \(fixedBodySize)\r\n".utf8)
        var isWritten = false
        for field in replaced.sorted(by: { $0.line.lowerBound < $1.line.lowerBound })
        where !touched.contains(Int64(field.line.lowerBound)) {
            // The whole line is rewritten, so its other edits do not apply.
            edits.removeAll { field.line.contains(Int(clamping: $0.offset)) }
            edits.append(
                Edit(
                    in: .head, at: Int64(field.line.lowerBound), length: Int64(field.line.count),
                    isWritten ? [] : line))
            isWritten = true
        }
        if !isWritten { edits.append(Edit(in: .head, at: Int64(head.end), line)) }
        var bytes = headBytes
        for edit in Explanation.ordered(edits).reversed() {
            bytes.replaceSubrange(
                Int(clamping: edit.offset)..<Int(clamping: edit.offset + edit.length), with: edit.replacement)
        }
        return bytes
    }
}

extension Explanation {
    /// The edits of the head or of the body, in order.
    fileprivate func orderedEdits(_ place: Finding.Place) -> [Edit] {
        areEditsComplete ? Self.ordered(edits.filter { $0.place == place }) : []
    }

    /// The edits, sorted by offset. At the same offset, insertions precede replacements. Of overlapping edits, only the
    /// first is kept.
    fileprivate static func ordered(_ edits: [Edit]) -> [Edit] {
        let sorted = edits.enumerated().sorted {
            ($0.element.offset, min($0.element.length, 1), $0.offset)
                < ($1.element.offset, min($1.element.length, 1), $1.offset)
        }.map { $0.element }
        var kept: [Edit] = []
        var end: Int64 = 0
        for edit in sorted where edit.offset >= end {
            kept.append(edit)
            end = edit.offset + edit.length
        }
        return kept
    }

    fileprivate var fixedBodySize: Int64 {
        orderedEdits(.body).reduce(bodySize) { $0 - $1.length + Int64($1.replacement.count) }
    }

    /// Removes the edit that adds missing dashes to the last delimiter, unless the fixed body has this Content-Length.
    mutating func leaveLastDelimiter(unlessLengthIs contentLength: Int64?) {
        guard contentLength != fixedBodySize,
            let index = findings.firstIndex(where: { $0.code == .wrongCloseDelimiter && $0.length == 0 }),
            let removed = findings[index].edits
        else { return }
        edits.removeAll { removed.contains($0) }
        findings[index].edits = nil
    }

    /// Makes a wrong Content-Length a consequence of another finding whose fix gives the body this length.
    mutating func subordinateMismatch(to contentLength: Int64?) {
        let mismatch = FormProblem.Code.contentLengthMismatch
        guard let contentLength, contentLength == fixedBodySize,
            let index = findings.firstIndex(where: { $0.code == mismatch && $0.consequences.isEmpty }),
            let cause = findings.firstIndex(where: { finding in
                finding.place == .body && finding.code != mismatch && finding.edits?.isEmpty == false
            })
        else { return }
        findings[cause].append(findings[index])
        findings.remove(at: index)
    }

    /// The number of bytes missing from a truncated body. The Content-Length of the fixed head includes them.
    fileprivate var missingBytes: Int64 {
        let mismatch = FormProblem.Code.contentLengthMismatch
        let isCutOff = findings.flatMap { [$0] + $0.consequences }.contains {
            ($0.code == mismatch && $0.edits == nil) || $0.code == .bodyNotSent
        }
        return isCutOff ? max((head?.contentLength ?? 0) - bodySize, 0) : 0
    }

    /// The findings that ``RequestFixer`` fixes, each with its fixed consequences.
    ///
    /// A problem that is fixed only at some places is also in ``unfixable``, with the remaining places.
    public var fixable: [Finding] { areEditsComplete ? findings.flatMap { $0.findings(thatAreFixed: true) } : [] }

    /// The findings that only the sender can fix, each with its consequences that are not fixed.
    public var unfixable: [Finding] {
        areEditsComplete ? findings.flatMap { $0.findings(thatAreFixed: false) } : findings
    }

    /// Whether the parts of the fixed request have the same contents, apart from the changes that edits make.
    package func keepsContents(in fixed: Explanation) -> Bool {
        guard fixed.partCount == partCount, fixed.parts.count == parts.count else { return false }
        var edits = orderedEdits(.body)[...]
        return zip(parts, fixed.parts).allSatisfy { part, fixed in
            while let edit = edits.first, edit.offset + edit.length < part.offset { edits.removeFirst() }
            let isTouched = edits.first.map { $0.offset <= part.offset + part.size } ?? false
            return isTouched || part.sha256 == fixed.sha256
        }
    }

    /// The fixed findings and the remaining ones, according to an explanation of the fixed request. An error that is
    /// found again is not fixed.
    package func outcome(reading fixed: Explanation) -> (fixed: [Finding], left: [Finding]) {
        let left = unfixable
        let known = Set(left.lazy.filter { $0.severity == .error }.map { $0.code })
        let new = fixed.findings.filter { $0.severity == .error && !known.contains($0.code) }
        let again = Set(new.map { $0.code })
        return (fixable.filter { !again.contains($0.code) }, left.filter { !again.contains($0.code) } + new)
    }
}

/// Splits a request into head and body, and joins the chunks of a chunked body. A body without a request is passed on
/// unchanged.
package struct RequestSplitter: Sendable {
    private enum State {
        case head([UInt8])
        case body
        case chunks(ChunkedBody)
    }

    private let head: RequestHead?
    private var state: State

    /// Makes a splitter for the input that this explanation is about.
    package init(_ explanation: Explanation) {
        head = explanation.head
        state = head == nil ? .body : .head([])
    }

    /// Reads the next bytes of the input. `handOnHead` receives the whole head, once. `handOnBody` receives the next
    /// bytes of the body.
    package mutating func read(
        _ chunk: RawSpan, handOnHead: ([UInt8]) throws -> Void = { _ in }, handOnBody: (RawSpan) throws -> Void
    ) rethrows {
        switch state {
        case .body: try handOnBody(chunk)
        case .chunks(var body):
            var pieces: [UInt8] = []
            body.read(chunk) { piece in piece.withUnsafeBytes { pieces += $0 } }
            state = .chunks(body)
            let bytes = pieces[...]
            try handOnBody(bytes.span.bytes)
        case .head(var bytes):
            guard let head else { return }
            // Emptying the state first leaves the array with one owner, so that appending copies nothing.
            state = .body
            let count = min(head.length - bytes.count, chunk.byteCount)
            chunk.extracting(first: count).withUnsafeBytes { bytes += $0 }
            guard bytes.count == head.length else {
                state = .head(bytes)
                return
            }
            if head.isChunked { state = .chunks(ChunkedBody()) }
            try handOnHead(bytes)
            try read(chunk.extracting(count...), handOnHead: handOnHead, handOnBody: handOnBody)
        }
    }
}
