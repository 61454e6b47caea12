/// Checks a form against its rules while it is received.
///
/// It receives the parser's events, and throws at the earliest byte at which a broken rule is certain: an unknown name,
/// one file too many and a claimed type at the part's header; a size at the first byte above it; a file's first bytes
/// as soon as 32 were received, and damage that they show as soon as 256 were; a text at its first character that is
/// not allowed; a missing part at the form's end.
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
/// The problem and its offset do not depend on the chunks. After an error, every further call throws it again. It keeps
/// no values, and at most the first 256 bytes of a file.
public struct FormRuleChecker: Sendable {
    private var check: RuleCheck
    private var failure: FormProblem?

    /// Makes a checker for one form.
    public init(_ rules: FormRules) {
        check = RuleCheck(rules)
    }

    /// Checks what the parser found.
    ///
    /// - Parameters:
    ///   - event: The parser's event.
    ///   - chunk: The chunk that it was found in.
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

    /// A part begins.
    ///
    /// - Parameters:
    ///   - header: The part's header.
    ///   - contentOffset: The offset of the part's content, counted from the start of the body.
    /// - Throws: ``FormProblem`` if its name, number or claimed type breaks a rule.
    public mutating func partBegan(_ header: PartHeader, contentOffset: Int64) throws(FormProblem) {
        try hold { check throws(FormProblem) in try check.partBegan(header, contentOffset: contentOffset) }
    }

    /// More bytes of the part's content are there.
    ///
    /// - Throws: ``FormProblem`` if they break a rule for the part or for all files together.
    public mutating func bytes(_ bytes: RawSpan) throws(FormProblem) {
        try bytes.withUnsafeBytes { buffer throws(FormProblem) in
            try hold { check throws(FormProblem) in try check.bytes(buffer) }
        }
    }

    /// The part's content is complete.
    ///
    /// - Throws: ``FormProblem`` if it is too short, or is not an allowed value.
    public mutating func partEnded() throws(FormProblem) {
        try hold { check throws(FormProblem) in try check.partEnded() }
    }

    /// The form is complete.
    ///
    /// - Parameter offset: The number of the body's bytes.
    /// - Throws: ``FormProblem`` if a part is missing; if there are several, the first field by name, otherwise the
    ///   first file.
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
