public import PostcardForm

/// What a receiver makes of a form, and what is wrong with it.
///
/// Encoded as JSON it is what `postcard explain --json` prints.
public struct Explanation: Sendable {
    /// The boundary that the Content-Type names; `nil` where it names none that can be used.
    public let boundary: String?

    /// The parts, in the order in which they came. Where the form breaks off inside one it is the last, with as
    /// much of it as there was.
    public let parts: [Part]

    /// What is wrong: errors before warnings, and the root cause first.
    public let problems: [FormProblem]

    /// Whether a receiver takes the form: there is no error, though there may be warnings.
    public var isValid: Bool { problems.allSatisfy { $0.severity != .error } }

    /// A part of the form.
    public struct Part: Sendable {
        /// The name of the form's field.
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
        case valid, boundary, parts, problems
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(isValid, forKey: .valid)
        try container.encode(boundary, forKey: .boundary)
        try container.encode(parts, forKey: .parts)
        try container.encode(problems.map { EncodableProblem(problem: $0) }, forKey: .problems)
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

private struct EncodableProblem: Encodable {
    let problem: FormProblem

    private enum CodingKeys: String, CodingKey {
        case code, severity, offset, part, message, fix
    }

    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: CodingKeys.self)
        try container.encode(problem.code, forKey: .code)
        try container.encode(problem.severity, forKey: .severity)
        try container.encode(problem.offset, forKey: .offset)
        try container.encode(problem.partIndex, forKey: .part)
        try container.encode(problem.message, forKey: .message)
        try container.encode(problem.fix, forKey: .fix)
    }
}
