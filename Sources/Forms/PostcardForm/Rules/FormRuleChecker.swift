/// Checks a form against its rules while it is received.
///
/// The checker receives the parser's events, and throws as soon as a broken rule is certain. An unknown name, an extra
/// file or a refused type is certain at the part's header; a maximum size at the first byte too many; a file's format
/// after 32 bytes, and damage after 256 bytes; a text at the first wrong character; and a missing part at the form's
/// end.
///
/// ```swift
/// var checker = FormRuleChecker(rules)
/// while let event = try parser.nextEvent(in: chunk.bytes, at: &position) {
///     try checker.check(event, in: chunk.bytes, readBy: parser)
/// }
/// // and when the body has ended
/// try parser.finish()
/// try checker.formEnded(at: parser.offset)
/// ```
///
/// The problem and its offset do not depend on the chunks. After an error, every further call throws the same error.
/// The checker keeps no values, and at most the first 256 bytes of a file.
public struct FormRuleChecker: Sendable {
    private var check: RuleCheck
    private var failure: FormProblem?

    /// Makes a checker for one form.
    public init(_ rules: FormRules) {
        check = RuleCheck(rules)
    }

    /// Checks an event of the parser.
    ///
    /// - Parameters:
    ///   - event: The parser's event.
    ///   - chunk: The chunk in which the parser found the event.
    ///   - parser: The parser, after the event.
    /// - Throws: ``FormProblem`` if a rule is broken.
    public mutating func check(
        _ event: FormEvent, in chunk: RawSpan, readBy parser: FormParser
    ) throws(FormProblem) {
        switch event {
        case .partBegan(let header):
            try partBegan(header, contentOffset: parser.offset)
        case .bytes(.chunk(let range)):
            try bytes(chunk.extracting(range))
        case .bytes(.held(let range)):
            try bytes(parser.heldBytes[range].span.bytes)
        case .partEnded:
            try partEnded()
        }
    }

    /// Checks the header of a part that begins.
    ///
    /// - Parameters:
    ///   - header: The part's header.
    ///   - contentOffset: The offset of the part's content, counted from the start of the body.
    /// - Throws: ``FormProblem`` if the part's name, number or claimed type breaks a rule.
    public mutating func partBegan(_ header: PartHeader, contentOffset: Int64) throws(FormProblem) {
        try hold { check throws(FormProblem) in try check.partBegan(header, contentOffset: contentOffset) }
    }

    /// Checks the next bytes of the part's content.
    ///
    /// - Throws: ``FormProblem`` if the bytes break a rule for the part or for all files together.
    public mutating func bytes(_ bytes: RawSpan) throws(FormProblem) {
        try bytes.withUnsafeBytes { buffer throws(FormProblem) in
            try hold { check throws(FormProblem) in try check.bytes(buffer) }
        }
    }

    /// Checks the part after its content is complete.
    ///
    /// - Throws: ``FormProblem`` if the content is too short, or is not an allowed value.
    public mutating func partEnded() throws(FormProblem) {
        try hold { check throws(FormProblem) in try check.partEnded() }
    }

    /// Checks the complete form for missing parts.
    ///
    /// - Parameter offset: The size of the body, in bytes.
    /// - Throws: ``FormProblem`` if a part is missing: the first missing field by name, or else the first missing file.
    public mutating func formEnded(at offset: Int64) throws(FormProblem) {
        try hold { check throws(FormProblem) in
            if let problem = check.missing(at: offset).first { throw problem }
        }
    }

    private mutating func hold(
        _ body: (inout RuleCheck) throws(FormProblem) -> Void
    ) throws(FormProblem) {
        if let failure { throw failure }
        do {
            try body(&check)
        } catch {
            failure = error
            throw error
        }
    }
}
