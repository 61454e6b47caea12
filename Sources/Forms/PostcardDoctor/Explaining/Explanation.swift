import PostcardForm

/// The form as a receiver reads it, and the problems of the form.
///
/// `postcard explain --json` prints an explanation as JSON.
public struct Explanation: Sendable {
    /// The boundary in the Content-Type; `nil` if it is missing or unusable.
    public let boundary: String?

    /// The parts, in the order of the body. If the form is cut off inside a part, that part is the last.
    public let parts: [Part]

    /// The root causes: errors before warnings, and otherwise in the order of the request.
    public internal(set) var findings: [Finding]

    /// The number of findings that are left out of ``findings``, which keeps at most 1000.
    public internal(set) var omittedFindings = 0

    /// The corrected `Content-Type` for a body that was explained without its request; `nil` if no correction is
    /// certain or needed.
    public internal(set) var fixedContentType: String?

    /// The size of the received body, in bytes.
    public internal(set) var bodySize: Int64 = 0

    /// The number of parts, including those that ``parts`` does not describe.
    public internal(set) var partCount = 0

    /// The edits for all problems that can be fixed without asking the sender, in the order of the request.
    public internal(set) var edits: [Edit] = []

    /// Whether ``edits`` is complete. At most 100,000 edits are kept; an incomplete list is not applied.
    var areEditsComplete = true

    /// The head of a raw request; `nil` for a body without a request.
    var head: RequestHead?

    /// The changes that the chosen servers need in the form.
    var needs = ServerNeeds()

    /// The changes that a form needs so that the chosen servers accept it and read it correctly.
    struct ServerNeeds: Sendable {
        var fieldsFirst = false
        var fileName: String?
        var fields: [String] = []
        var bracketsForLists = false
    }

    /// The scheme of the request's URL, `http` or `https`; `nil` if the recording does not show it.
    package internal(set) var scheme: String?

    /// The host and port of the request's URL; `nil` if the recording has no URL, even if it has a `Host` field.
    package internal(set) var authority: String?

    /// All findings in one list, each root cause followed by its consequences.
    public var problems: [Finding] { findings.flatMap { [$0] + $0.consequences } }

    /// Whether receivers accept the form and read all of it: there may be warnings, but no errors. A form that the
    /// parser refuses is never valid.
    public var isValid: Bool { findings.allSatisfy { $0.severity != .error } }

    /// Whether the form has neither errors nor warnings.
    public var isWellFormed: Bool { findings.isEmpty }

    /// A part of the form.
    public struct Part: Sendable {
        /// The name of the form's field; empty if the part has no readable name.
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
        /// The header fields, exactly as they were sent.
        public let headerFields: [(name: String, value: String)]
        /// The content, if it is a short text; `nil` otherwise.
        package let text: String?
    }
}

extension Explanation: CustomStringConvertible {
    /// All findings, one on each line, as shown by a failed expectation of a test.
    public var description: String {
        if findings.isEmpty { return "a well-formed form of \(parts.count) \(parts.count == 1 ? "part" : "parts")" }
        return findings.map { finding in
            let more = finding.consequenceCount > 0 ? " (and \(finding.consequenceCount) that follow from it)" : ""
            return "\(finding)\(more)"
        }.joined(separator: "\n")
    }
}
