public import PostcardFoundation

/// What is wrong with a form that was received: which byte, why, and what to write instead.
///
/// The parser throws it, `explain` lists it, and a receiver responds with it.
public struct FormProblem: Error, Sendable, Hashable, CustomStringConvertible {
    /// The severity of a problem.
    public enum Severity: String, Sendable, Hashable {
        /// The form is refused.
        case error
        /// The form is read, and other receivers may read it otherwise.
        case warning
    }

    /// A limit that the form went over.
    public struct Limit: Sendable, Hashable {
        /// The limit's name, as ``FormLimits`` has it, or its place in the rules.
        public let name: String
        /// The limit that was exceeded, in bytes or as a count.
        public let value: Int64
    }

    /// The kind of problem.
    public let code: Code

    /// The byte at which the form goes wrong, counted from the start of the body. For a fault in the request's
    /// own head it is 0.
    public let offset: Int64

    /// The index of the part in which it goes wrong, from 0; `nil` if it is outside all parts.
    public let partIndex: Int?

    /// What is wrong, in a sentence, without values or bytes of the form's content.
    public let message: String

    /// What to write instead, in a sentence.
    public let advice: String

    /// The limit that the form went over, for the codes that are about one.
    public let limit: Limit?

    /// - Parameter advice: What to write instead. Defaults to what the code says.
    package init(
        _ code: Code, at offset: Int64, part partIndex: Int? = nil, _ message: String, advice: String? = nil,
        limit: Limit? = nil
    ) {
        self.code = code
        self.offset = offset
        self.partIndex = partIndex
        self.message = message
        self.advice = advice ?? code.fix
        self.limit = limit
    }

    /// Whether receivers refuse the form because of the problem, or read it anyway.
    public var severity: Severity { code.status == 200 ? .warning : .error }

    /// The status that a receiver refuses the request with (RFC 9110 §15.5).
    public var status: Int { code.status }

    public var description: String {
        let place = partIndex.map { "part \($0), " } ?? ""
        return "\(message) (\(code), \(place)byte \(offset)) \(advice)"
    }
}

extension FormProblem {
    static func bareLineFeed(at offset: Int64, part partIndex: Int?) -> FormProblem {
        FormProblem(.bareLineBreak, at: offset, part: partIndex, "A line ends in LF without CR.")
    }

    static func bareCarriageReturn(at offset: Int64, part partIndex: Int?) -> FormProblem {
        FormProblem(.bareLineBreak, at: offset, part: partIndex, "A CR is not followed by LF.")
    }

    static func tooManyCombiningMarks(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(
            .tooManyCombiningMarks, at: offset, part: partIndex,
            "A part's header has more than \(CombiningMarks.maximumInARow) combining marks in a row.")
    }

    static func nulInHeader(at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(.nulInHeader, at: offset, part: partIndex, "A part's header contains a NUL.")
    }

    static func malformedParameter(_ reason: String, at offset: Int64, part partIndex: Int) -> FormProblem {
        FormProblem(.malformedParameter, at: offset, part: partIndex, reason)
    }

    static func invalidBoundary(_ fault: String) -> FormProblem {
        FormProblem(.invalidBoundary, at: 0, "The boundary is not allowed: \(fault).")
    }
}

extension FormProblem: LocalizedError {
    public var errorDescription: String? { message }
    public var recoverySuggestion: String? { advice }
}
