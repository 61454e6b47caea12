/// Reads the body of a form chunk by chunk, and checks it against the form's rules.
///
/// Everything that receives forms reads them through it: parts one by one, forms in memory, and the upload routes.
package struct CheckedFormParser: Sendable {
    private var parser: FormParser
    private var rules: FormRuleChecker?

    /// Makes a parser for the body of a request.
    ///
    /// - Throws: ``FormProblem`` if the Content-Type is not that of a form.
    package init(contentType: String, limits: FormLimits, rules: FormRules? = nil) throws(FormProblem) {
        self.init(try FormParser(contentType: contentType, limits: limits), rules: rules)
    }

    init(_ parser: FormParser, rules: FormRules? = nil) {
        self.parser = parser
        self.rules = rules.map(FormRuleChecker.init)
    }

    /// The number of bytes of the body that have been read.
    package var offset: Int64 { parser.offset }

    /// The next event in a chunk of the body, as ``FormParser/nextEvent(in:at:)`` returns it.
    ///
    /// - Throws: ``FormProblem`` if the body is malformed, exceeds a limit or breaks a rule.
    package mutating func nextEvent(in chunk: RawSpan, at position: inout Int) throws(FormProblem) -> FormEvent? {
        let event = try parser.nextEvent(in: chunk, at: &position)
        if let event { try rules?.check(event, in: chunk, readBy: parser) }
        return event
    }

    /// Ends the body.
    ///
    /// - Throws: ``FormProblem`` if it must not end here, or a part is missing.
    package mutating func finish() throws(FormProblem) {
        try parser.finish()
        try rules?.formEnded(at: parser.offset)
    }

    /// The bytes of an event in the chunk that it was found in.
    package func piece<Chunk: FormChunk>(_ bytes: FormBytes, of chunk: Chunk) -> Chunk {
        switch bytes {
        case .chunk(let range): chunk.formChunkPiece(range)
        case .held(let range): Chunk(formChunk: parser.heldBytes[range])
        }
    }
}
