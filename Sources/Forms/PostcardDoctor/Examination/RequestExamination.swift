import PostcardForm

/// Reads a raw HTTP/1.1 request, head and body, chunk by chunk, and explains its form.
///
/// ```swift
/// var examination = RequestExamination()
/// while let chunk = try file.read(upToCount: 1 << 20) { examination.read(chunk.bytes) }
/// let explanation = examination.finish()
/// ```
///
/// All bytes after the head belong to the body, even beyond its Content-Length. A chunked body ends with its last
/// chunk. Use ``InputExamination`` if several requests may follow each other. Offsets in the head count from the start
/// of the request. Offsets in the body count from its start, without the lines between chunks (RFC 9112 §7.1).
public struct RequestExamination: Sendable {
    private var state = State.head
    /// The bytes of the head. They are kept outside of ``state``, so that a read can append bytes without a copy.
    private var headBytes: [UInt8] = []
    private var form = FormExamination(contentType: nil, at: 0)

    private enum State {
        case head
        case body(RequestHead, Framing)
        case refused(Finding)
    }

    /// How the end of the body is found.
    fileprivate enum Framing {
        case end(received: Int64, contentLength: Int64?)
        case chunks(ChunkedBody)
    }

    /// The maximum size of a head: as much as common servers accept.
    private static let maximumHeadBytes = 64 << 10

    /// Begins an examination.
    public init() {}

    /// Reads the next bytes of the request.
    ///
    /// - Parameter chunk: Any number of bytes.
    public mutating func read(_ chunk: RawSpan) {
        switch state {
        case .refused:
            break
        case .body(let head, let framing):
            readBody(chunk, head, framing)
        case .head:
            let known = headBytes.count
            chunk.withUnsafeBytes { headBytes.append(contentsOf: $0.prefix(Self.maximumHeadBytes - known)) }
            guard let end = RequestHead.end(in: headBytes, from: known) else {
                if headBytes.count >= Self.maximumHeadBytes { state = .refused(.headTooLarge) }
                return
            }
            headBytes.removeSubrange(end...)
            begin()
            if case .body(let head, let framing) = state {
                readBody(chunk.extracting((end - known)...), head, framing)
            }
        }
    }

    /// Ends the request and explains it.
    public mutating func finish() -> Explanation {
        switch state {
        case .head:
            return refusal(headBytes.isEmpty ? .emptyInput : .headWithoutEnd)
        case .refused(let finding):
            return refusal(finding)
        case .body(let head, let framing):
            if form.bodySize > 0, let finding = head.methodWithoutContent { form.add(excerpted(finding)) }
            if let finding = framing.finding(head) {
                // Each CRLF that lost its CR makes the body a byte shorter than its Content-Length.
                form.add(
                    excerpted(finding), under: framing.isWhole == false ? .bareLineBreakInHead : nil)
            }
            var explanation = excerpted(form.finish(isWhole: framing.isWhole))
            explanation.head = head
            addEdits(to: &explanation, head, framing)
            return explanation
        }
    }

    /// Ends an examination whose recording lacks the body, and explains only the head. The message is about the missing
    /// body.
    mutating func finish(withoutBody message: String) -> Explanation {
        guard case .body = state else { return finish() }
        return excerpted(form.finish(withoutBody: message))
    }

    /// Parses the head and prepares to read the body.
    private mutating func begin() {
        do {
            let head = try RequestHead(headBytes)
            let type = head.contentType
            // The line breaks of a folded value count as blanks.
            form = FormExamination(
                contentType: type.map { headBytes[$0.valueRange].map { $0 < .space ? .space : $0 } },
                at: Int64(type?.valueStart ?? head.end),
                isEncoded: head.isEncoded)
            for finding in head.findings { form.add(excerpted(finding)) }
            let framing: Framing =
                head.isChunked ? .chunks(ChunkedBody()) : .end(received: 0, contentLength: head.contentLength)
            state = .body(head, framing)
        } catch {
            state = .refused(error.finding)
        }
    }

    private mutating func readBody(_ chunk: RawSpan, _ head: RequestHead, _ framing: Framing) {
        switch framing {
        case .end(let received, let contentLength):
            form.read(chunk)
            state = .body(
                head, .end(received: received + Int64(chunk.byteCount), contentLength: contentLength))
        case .chunks(var body):
            body.read(chunk) { form.read($0) }
            state = .body(head, .chunks(body))
        }
    }

    private func refusal(_ finding: Finding) -> Explanation {
        Explanation(boundary: nil, parts: [], findings: [excerpted(finding)])
    }

    private func excerpted(_ explanation: Explanation) -> Explanation {
        var explanation = explanation
        explanation.findings = explanation.findings.map { finding in
            var finding = excerpted(finding)
            finding.consequences = finding.consequences.map(excerpted)
            return finding
        }
        return explanation
    }

    /// The finding about the head, with the bytes around it as its excerpt.
    private func excerpted(_ finding: Finding) -> Finding {
        guard finding.place == .head else { return finding }
        var finding = finding
        finding.excerpt = Excerpt(offset: 0, bytes: headBytes).around(finding.offset)
        return finding
    }

    /// Decides the edits of the Content-Type, the Content-Length and the last delimiter, once the request has ended.
    private func addEdits(to explanation: inout Explanation, _ head: RequestHead, _ framing: Framing) {
        let mismatch = FormProblem.Code.contentLengthMismatch
        if !form.isClosed, let index = explanation.findings.firstIndex(where: { $0.code == mismatch }) {
            explanation.findings[index].edits = nil
            if framing.isWhole == false {
                explanation.findings[index] = explanation.findings[index].advising(
                    "If the length is right, the body was cut off on its way: send all of it. Otherwise let the library "
                        + "that sends the body count it, or count its bytes, not its characters.")
            }
        }
        // If the body was cut off, its last delimiter need not be the close delimiter.
        if framing.isWhole != true { explanation.leaveLastDelimiter(unlessLengthIs: head.contentLength) }
        explanation.subordinateMismatch(to: head.contentLength)
        let missing = FormProblem.Code.missingContentType
        guard let index = explanation.findings.firstIndex(where: { $0.code == missing && $0.edits == nil }),
            let boundary = form.foundBoundary
        else { return }
        let edit = Edit(
            in: .head, at: Int64(head.end), "Content-Type: multipart/form-data; boundary=\(boundary)\r\n".utf8)
        explanation.findings[index].edits = [edit]
        explanation.edits.append(edit)
    }
}

extension RequestHead {
    fileprivate var announcesForm: Bool {
        all("content-type").first?.value.utf8.prefix(10).map { $0.asciiLowercased } == Array("multipart/".utf8)
    }
}

extension RequestExamination.Framing {
    /// Whether the whole body was received; `nil` if the head does not say.
    fileprivate var isWhole: Bool? {
        switch self {
        case .chunks(let body): body.problem == nil
        case .end(_, nil): nil
        case .end(let received, .some(let contentLength)): received >= contentLength
        }
    }

    /// The finding about the framing of the body, once the request has ended.
    fileprivate func finding(_ head: RequestHead) -> Finding? {
        switch self {
        case .chunks(let body):
            if let problem = body.problem { return Finding(problem) }
            if body.length == 0, head.announcesForm {
                return .bodyNotSent("The first chunk is the last one, and the Content-Type announces a form.")
            }
            return !body.isExcessBlank ? .bytesBehindLastChunk(of: body) : nil
        case .end(let received, let contentLength):
            guard let contentLength else {
                let isMissing = received > 0 && !head.isFramed && head.all("content-length").isEmpty
                return isMissing ? .missingLength(head) : nil
            }
            if contentLength == 0, received == 0, head.announcesForm {
                return .bodyNotSent("The Content-Length is 0, and the Content-Type announces a form.")
            }
            guard received != contentLength else { return nil }
            guard received > 0 else {
                return .bodyNotSent("The Content-Length is \(contentLength), and no byte of the body follows the head.")
            }
            let difference =
                received > contentLength
                ? "\(received - contentLength) more" : "\(contentLength - received) fewer"
            return Finding(
                .contentLengthMismatch, at: min(received, contentLength),
                "The Content-Length is \(contentLength) and \(received) bytes follow the head: \(difference).",
                edits: [])
        }
    }
}

extension Finding {
    private static let inputFix =
        "Pass the request as it was sent, or only the body, with its Content-Type in --content-type."

    fileprivate static func missingLength(_ head: RequestHead) -> Finding {
        Finding(
            .missingLength, in: .head, at: Int64(head.end),
            "The head has neither a Content-Length nor a Transfer-Encoding: servers read no body.", edits: [])
    }

    fileprivate static func bodyNotSent(_ message: String) -> Finding { Finding(.bodyNotSent, at: 0, message) }

    fileprivate static func bytesBehindLastChunk(of body: ChunkedBody) -> Finding {
        Finding(
            .malformedChunk, at: body.length,
            "\(body.excess) bytes follow the last chunk, which servers read as another request.",
            advice: "End the request with the chunk of length 0 and its blank line.", edits: [])
    }

    fileprivate static var headTooLarge: Finding {
        .malformedRequest(
            at: 0, "The input has no blank line in its first 64 KiB, where a request's head ends.", advice: inputFix)
    }

    fileprivate static var headWithoutEnd: Finding {
        .malformedRequest(at: 0, "The input is not an HTTP request: no blank line ends its head.", advice: inputFix)
    }

    fileprivate static var emptyInput: Finding {
        .malformedRequest(at: 0, "The input is empty.", advice: inputFix)
    }
}

extension Explanation {
    /// Explains a request before it is sent.
    ///
    /// A test of an uploader shows which byte of its request is wrong:
    ///
    /// ```swift
    /// let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: request.httpBody ?? Data())
    /// #expect(explanation.isWellFormed)
    /// ```
    ///
    /// - Parameters:
    ///   - headerFields: The request's header fields, as in `URLRequest.allHTTPHeaderFields`. A missing length defaults
    ///     to that of the body, as in HTTP libraries.
    ///   - body: The request's body.
    public init(headerFields: [String: String]?, body: some Sequence<UInt8>) {
        let bytes = Array(body)
        var head = "POST / HTTP/1.1\r\n"
        let fields = (headerFields ?? [:]).sorted { $0.key < $1.key }
        for field in fields { head += "\(field.key): \(field.value)\r\n" }
        let tellsLength = fields.contains { ["content-length", "transfer-encoding"].contains($0.key.lowercased()) }
        if !tellsLength { head += "Content-Length: \(bytes.count)\r\n" }
        self.init(request: Array((head + "\r\n").utf8) + bytes)
    }

    /// Explains a body together with its `Content-Type`.
    ///
    /// - Parameters:
    ///   - contentType: The value of the header field; `nil` if the request has none.
    ///   - body: The request's body.
    public init(contentType: String?, body: some Sequence<UInt8>) {
        self.init(headerFields: contentType.map { ["Content-Type": $0] }, body: body)
    }

    /// Explains a request as it was sent.
    ///
    /// - Parameter request: The bytes of a raw HTTP/1.1 request: its head, a blank line, and its body.
    public init(request: some Sequence<UInt8>) {
        let bytes = ContiguousArray(request)
        var examination = RequestExamination()
        examination.read(bytes.span.bytes)
        self = examination.finish()
    }
}
