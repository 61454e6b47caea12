import PostcardForm

/// How a receiver reads a form, and what is wrong with it.
///
/// `postcard explain --json` prints it as JSON.
public struct Explanation: Sendable {
    /// The Content-Type's boundary; `nil` if it has none that can be used.
    public let boundary: String?

    /// The parts, in the order of the body. If the form is cut off inside a part, that part is the last.
    public let parts: [Part]

    /// What is wrong: root causes, errors before warnings, and the rest in the order of the request.
    public internal(set) var findings: [Finding]

    /// The number of findings that ``findings`` leaves out: it keeps at most 1000.
    public internal(set) var omittedFindings = 0

    /// The corrected `Content-Type` of a body without its request; `nil` if no correction is certain or needed.
    public internal(set) var fixedContentType: String?

    /// The size of the received body, in bytes.
    public internal(set) var bodySize: Int64 = 0

    /// The number of parts, including those that ``parts`` does not describe.
    public internal(set) var partCount = 0

    /// The edits that fix everything that can be fixed without asking the sender, in the order of the request.
    public internal(set) var edits: [Edit] = []

    /// Whether ``edits`` is complete. Beyond 100,000 edits are not kept, and nothing can be fixed.
    var areEditsComplete = true

    /// The head of a raw request; `nil` for a body without a request.
    var head: RequestHead?

    /// What the chosen servers need of a form.
    var needs = ServerNeeds()

    /// What servers need of a form that they would otherwise refuse or read differently.
    struct ServerNeeds: Sendable {
        var fieldsFirst = false
        var fileName: String?
        var fields: [String] = []
        var bracketsForLists = false
    }

    /// The scheme of the request's URL, `http` or `https`; `nil` if the recording does not show it.
    package internal(set) var scheme: String?

    /// The host of the request's URL, with its port if it has one; `nil` if only the head may have it.
    package internal(set) var authority: String?

    /// All findings in one list, each root cause followed by its consequences.
    public var problems: [Finding] { findings.flatMap { [$0] + $0.consequences } }

    /// Whether receivers accept the form and lose nothing of it: there are no errors, only warnings. A form that the
    /// receiver's parser refuses is never valid.
    public var isValid: Bool { findings.allSatisfy { $0.severity != .error } }

    /// Whether the form has neither errors nor warnings.
    public var isWellFormed: Bool { findings.isEmpty }

    /// A part of the form.
    public struct Part: Sendable {
        /// The name of the form's field; empty if the part has none that can be read.
        public let name: String
        /// The name of the file; `nil` if the part is a text field.
        public let filename: String?
        /// The media type, as written in the part's header.
        public let contentType: String?
        /// The offset of the content's first byte, counted from the start of the body.
        public let offset: Int64
        /// The number of bytes of the content.
        public let size: Int64
        /// The SHA-256 digest of the content, in hexadecimal digits.
        public let sha256: String
        /// The header fields as they were on the wire.
        public let headers: [(name: String, value: String)]
        /// The content, if it is a short text.
        package let text: String?
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

    // Written by hand because absent values are null, and the synthesized method would leave them out.
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
    /// The index of its root cause in the list.
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
    /// The problems as written in JSON: a consequence has the index of its cause.
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

extension Explanation: CustomStringConvertible {
    /// What is wrong, one line each: a failed expectation in a test shows it.
    public var description: String {
        if findings.isEmpty { return "a well-formed form of \(parts.count) \(parts.count == 1 ? "part" : "parts")" }
        return findings.map { finding in
            let more = finding.consequenceCount > 0 ? " (and \(finding.consequenceCount) that follow from it)" : ""
            return "\(finding)\(more)"
        }.joined(separator: "\n")
    }
}
