import PostcardForm

/// Writes a corrected request or body. Only problems are fixed whose correction is certain according to the
/// explanation.
///
/// The input is read a second time, because a fix at its beginning may only be known at its end.
///
/// ```swift
/// var fixer = RequestFixer(explanation)
/// while let chunk = try file.read(upToCount: 1 << 20) { try fixer.read(chunk.bytes) { output.append($0) } }
/// fixer.finish { output.append($0) }
/// ```
///
/// A raw request gets the Content-Length of its fixed body. A body without a request stays a body; if its Content-Type
/// is wrong, send it with ``Explanation/fixedContentType``.
public struct RequestFixer: Sendable {
    private var splitter: RequestSplitter
    private let headEdits: [Edit]
    private var bodyEdits: ArraySlice<Edit>
    private let head: RequestHead?
    private let fixedBodySize: Int64
    /// The number of bytes of the body that were read.
    private var offset: Int64 = 0

    /// Makes a fixer. The explanation must be of the same input.
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

    /// Ends the input, and passes on the bytes that are inserted at its end.
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
            // The bytes to skip may continue in the next chunk.
            let passed = offset - edit.offset
            let replacement = edit.replacement[...]
            if passed == 0, !replacement.isEmpty { try handOn(replacement.span.bytes) }
            let skipped = min(edit.length - passed, Int64(chunk.byteCount - index))
            index += Int(clamping: skipped)
            offset += skipped
            if passed + skipped == edit.length { bodyEdits.removeFirst() }
        }
    }

    /// The head with its edits, and with the length of the fixed body.
    private func fixedHead(_ head: RequestHead, _ headBytes: [UInt8]) -> [UInt8] {
        var edits = headEdits
        let lengths = head.all("content-length")
        let replaced = lengths + head.all("transfer-encoding")
        let touched = Set(edits.map { $0.offset })
        let line = Array("Content-Length: \(fixedBodySize)\r\n".utf8)
        var isWritten = false
        for field in replaced.sorted(by: { $0.line.lowerBound < $1.line.lowerBound })
        where !touched.contains(Int64(field.line.lowerBound)) {
            // The whole line is written again, which replaces all other edits of the line.
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
    /// The edits in the head or in the body, in order.
    fileprivate func orderedEdits(_ place: Finding.Place) -> [Edit] {
        areEditsComplete ? Self.ordered(edits.filter { $0.place == place }) : []
    }

    /// The edits in the order of the input. At the same byte, an insertion is before a replacement. Of overlapping
    /// edits, only the first is kept.
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

    /// The size of the fixed body, in bytes.
    fileprivate var fixedBodySize: Int64 {
        orderedEdits(.body).reduce(bodySize) { $0 - $1.length + Int64($1.replacement.count) }
    }

    /// Removes the edit of a last delimiter without dashes, unless closing the form gives its body the right length.
    mutating func leaveLastDelimiter(unlessLengthIs contentLength: Int64?) {
        guard contentLength != fixedBodySize,
            let index = findings.firstIndex(where: { $0.code == .wrongCloseDelimiter && $0.length == 0 }),
            let removed = findings[index].edits
        else { return }
        edits.removeAll { removed.contains($0) }
        findings[index].edits = nil
    }

    /// Makes a wrong Content-Length a consequence of the finding whose edits give the body that length.
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

    /// The number of bytes missing in a truncated body. The Content-Length of the fixed head includes them.
    fileprivate var missingBytes: Int64 {
        let mismatch = FormProblem.Code.contentLengthMismatch
        let isCutOff = findings.flatMap { [$0] + $0.consequences }.contains {
            ($0.code == mismatch && $0.edits == nil) || $0.code == .bodyNotSent
        }
        return isCutOff ? max((head?.contentLength ?? 0) - bodySize, 0) : 0
    }

    /// The findings that ``RequestFixer`` fixes, each with the consequences that are also fixed.
    ///
    /// If a problem is fixed at some places only, ``unfixable`` has it too, with the other places.
    public var fixable: [Finding] { areEditsComplete ? findings.flatMap { $0.findings(thatAreFixed: true) } : [] }

    /// The findings that only the sender can fix, each with the consequences that are not fixed.
    public var unfixable: [Finding] {
        areEditsComplete ? findings.flatMap { $0.findings(thatAreFixed: false) } : findings
    }

    /// Whether an explanation of the fixed request shows the same contents. A content that an edit touches must be as
    /// the edit makes it.
    package func keepsContents(in fixed: Explanation) -> Bool {
        guard fixed.partCount == partCount, fixed.parts.count == parts.count else { return false }
        var edits = orderedEdits(.body)[...]
        return zip(parts, fixed.parts).allSatisfy { part, fixed in
            while let edit = edits.first, edit.offset + edit.length < part.offset { edits.removeFirst() }
            let isTouched = edits.first.map { $0.offset <= part.offset + part.size } ?? false
            return isTouched || part.sha256 == fixed.sha256
        }
    }

    /// The findings that were fixed and those that were not, judged by an explanation of the fixed request. An error
    /// that is found there again does not count as fixed.
    package func outcome(reading fixed: Explanation) -> (fixed: [Finding], left: [Finding]) {
        let left = unfixable
        let known = Set(left.lazy.filter { $0.severity == .error }.map { $0.code })
        let new = fixed.findings.filter { $0.severity == .error && !known.contains($0.code) }
        let again = Set(new.map { $0.code })
        return (fixable.filter { !again.contains($0.code) }, left.filter { !again.contains($0.code) } + new)
    }
}

/// Splits a request into its head and its body, and joins the chunks of a chunked body. A body without a request is
/// passed on unchanged.
package struct RequestSplitter: Sendable {
    private enum State {
        case head([UInt8])
        case body
        case chunks(ChunkedBody)
    }

    private let head: RequestHead?
    private var state: State

    /// - Parameter explanation: The explanation of the same input.
    package init(_ explanation: Explanation) {
        head = explanation.head
        state = head == nil ? .body : .head([])
    }

    /// Reads the next bytes of the input.
    ///
    /// - Parameters:
    ///   - handOnHead: Receives the whole head, once.
    ///   - handOnBody: Receives the bytes of the body.
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
            // The state is emptied first, because an array with two owners is copied when it grows.
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
