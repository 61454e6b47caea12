/// Holds a form to its rules while it comes in.
///
/// It is told what the parser finds, and throws at the earliest byte at which a breach is certain: a name that no
/// rule has, one file too many and a claimed type at the part's header; a size at the byte over it; a file's first
/// bytes as soon as 32 are there; a text at its first character that is too many or that nothing allowed goes on
/// with; what is missing at the form's end.
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
/// However the body is cut into chunks, the problem and its offset are the same. What was thrown once is thrown
/// again. Of the form it holds no value, and of a file at most its first 32 bytes.
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
    ///   - parser: The parser, as it stands after the event.
    /// - Throws: ``FormProblem`` where a rule is broken.
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
    ///   - header: Its header.
    ///   - contentOffset: Where its content begins, counted from the start of the body.
    /// - Throws: ``FormProblem`` where its name, number, or claimed type breaks a rule.
    public mutating func partBegan(_ header: PartHeader, contentOffset: Int64) throws(FormProblem) {
        try hold { check throws(FormProblem) in try check.partBegan(header, contentOffset: contentOffset) }
    }

    /// More bytes of the part's content are there.
    ///
    /// - Throws: ``FormProblem`` where they break a rule for the part or for all files together.
    public mutating func bytes(_ bytes: RawSpan) throws(FormProblem) {
        try bytes.withUnsafeBytes { buffer throws(FormProblem) in
            try hold { check throws(FormProblem) in try check.bytes(buffer) }
        }
    }

    /// The part's content is complete.
    ///
    /// - Throws: ``FormProblem`` where it is too short, or is not what it would have had to become.
    public mutating func partEnded() throws(FormProblem) {
        try hold { check throws(FormProblem) in try check.partEnded() }
    }

    /// The form is complete.
    ///
    /// - Parameter offset: The number of the body's bytes.
    /// - Throws: ``FormProblem`` where a part is missing; of several, the first field by its name, else the first
    ///   file.
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
