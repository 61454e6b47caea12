import PostcardForm

/// What a receiver makes of a form, and what is wrong with it.
///
/// Encoded as JSON it is what `postcard explain --json` prints.
public struct Explanation: Sendable {
    /// The boundary that the Content-Type names; `nil` where it names none that can be used.
    public let boundary: String?

    /// The parts, in the order in which they came. Where the form breaks off inside one it is the last, with as
    /// much of it as there was.
    public let parts: [Part]

    /// What is wrong: root causes, errors before warnings, and the rest in the order of the request.
    public internal(set) var findings: [Finding]

    /// How many findings there are beside ``findings``, which keep at most 1000.
    public internal(set) var omittedFindings = 0

    /// The request's `Content-Type` as it should be, where the one that came is fixed; for a body that came alone,
    /// whose head no edit can reach.
    public internal(set) var fixedContentType: String?

    /// The number of the body's bytes, as far as they came.
    public internal(set) var bodySize: Int64 = 0

    /// The number of parts, those that ``parts`` does not describe included.
    public internal(set) var partCount = 0

    /// What fixes everything that can be fixed without asking the sender, in the order of the request.
    public internal(set) var edits: [Edit] = []

    /// Whether ``edits`` are all; beyond 100,000 they are not kept, and nothing can be fixed.
    var areEditsComplete = true

    /// Where things stand in the head of a raw request; `nil` for a body that came alone.
    var head: RequestHead?

    /// All findings in one list, each root cause followed by its consequences.
    public var problems: [Finding] { findings.flatMap { [$0] + $0.consequences } }

    /// Whether receivers accept the form and lose or alter nothing of it: there is no error, though there may be
    /// warnings.
    public var isValid: Bool { findings.allSatisfy { $0.severity != .error } }

    /// A part of the form.
    public struct Part: Sendable {
        /// The name of the form's field; empty where the part has none that can be read.
        public let name: String
        /// The name of the file; `nil` where the part is a text field.
        public let filename: String?
        /// The media type, as it stands in the part's header.
        public let contentType: String?
        /// Where the content begins, counted from the start of the body.
        public let offset: Int64
        /// The number of bytes of the content.
        public let size: Int64
        /// The SHA-256 digest of the content, in hexadecimal digits.
        public let sha256: String
        /// The header fields as they were on the wire.
        public let headers: [(name: String, value: String)]
    }
}

// MARK: - JSON

extension Explanation: Encodable {
    private enum CodingKeys: String, CodingKey {
        case valid, boundary, parts, partCount, problems
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isValid, forKey: .valid)
        try container.encode(boundary, forKey: .boundary)
        try container.encode(parts, forKey: .parts)
        try container.encode(partCount, forKey: .partCount)
        try container.encode(encodableProblems, forKey: .problems)
    }
}

extension Explanation.Part: Encodable {
    private enum CodingKeys: String, CodingKey {
        case name, filename, contentType, offset, size, sha256, headers
    }

    // Written out because what is absent is null, which the synthesized method would leave out.
    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(name, forKey: .name)
        try container.encode(filename, forKey: .filename)
        try container.encode(contentType, forKey: .contentType)
        try container.encode(offset, forKey: .offset)
        try container.encode(size, forKey: .size)
        try container.encode(sha256, forKey: .sha256)
        try container.encode(headers.map { [$0.name, $0.value] }, forKey: .headers)
    }
}

private struct EncodableFinding: Encodable {
    let finding: Finding
    /// The place of its root cause in the list.
    let cause: Int?

    private enum CodingKeys: String, CodingKey {
        case code, severity, place, offset, length, part, message, fix, reason, swift, cause, consequences
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(finding.code.rawValue, forKey: .code)
        try container.encode(finding.severity, forKey: .severity)
        try container.encode(finding.place, forKey: .place)
        try container.encode(finding.offset, forKey: .offset)
        try container.encode(finding.length, forKey: .length)
        try container.encode(finding.partIndex, forKey: .part)
        try container.encode(finding.message, forKey: .message)
        try container.encode(finding.fix, forKey: .fix)
        try container.encode(finding.reason, forKey: .reason)
        try container.encode(finding.swift, forKey: .swift)
        try container.encode(cause, forKey: .cause)
        try container.encode(finding.consequenceCount, forKey: .consequences)
    }
}

extension Explanation {
    /// The problems as JSON has them: a consequence names the place of its cause.
    private var encodableProblems: [EncodableFinding] {
        var all: [EncodableFinding] = []
        for finding in findings {
            let cause = all.count
            all.append(EncodableFinding(finding: finding, cause: nil))
            all += finding.consequences.map { EncodableFinding(finding: $0, cause: cause) }
        }
        return all
    }
}

extension Explanation {
    /// Explains a request that a program made, before it is sent.
    ///
    /// In a test of an uploader it says which byte of its request is wrong:
    ///
    /// ```swift
    /// let explanation = Explanation(headerFields: request.allHTTPHeaderFields, body: request.httpBody ?? Data())
    /// #expect(explanation.isWellFormed)
    /// ```
    ///
    /// - Parameters:
    ///   - headerFields: The request's header fields, as `URLRequest.allHTTPHeaderFields` has them. Where they tell no
    ///     length, the body's own is taken, as the libraries that send it do.
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

    /// Explains a body and the `Content-Type` it is sent with.
    ///
    /// - Parameters:
    ///   - contentType: The value of the header field; `nil` where the request has none.
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

    /// Whether there is nothing to say about the form: neither an error nor a warning.
    public var isWellFormed: Bool { findings.isEmpty }
}

extension Explanation: CustomStringConvertible {
    /// What is wrong, a line each: what a failed expectation of a test shows.
    public var description: String {
        if findings.isEmpty { return "a well-formed form of \(parts.count) \(parts.count == 1 ? "part" : "parts")" }
        return findings.map { finding in
            let more = finding.consequenceCount > 0 ? " (and \(finding.consequenceCount) that follow from it)" : ""
            return "\(finding)\(more)"
        }.joined(separator: "\n")
    }
}
