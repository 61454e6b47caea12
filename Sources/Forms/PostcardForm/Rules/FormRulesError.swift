import PostcardFoundation

/// The reason why rules cannot be used: an unknown key, a value of a wrong type, a rule that no form can meet.
///
/// The error is about the rules themselves. A form that breaks a rule has a ``FormProblem``.
public struct FormRulesError: PostcardError {
    /// The kind of an error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The text is not JSON, or a value has the wrong type.
        public static let malformed = Code(rawValue: "malformed")
        /// The name of a rule is unknown.
        public static let unknownRule = Code(rawValue: "unknown-rule")
        /// A value has the right type but is not allowed, such as a negative length or an invalid pattern.
        public static let invalidValue = Code(rawValue: "invalid-value")
        /// No form can meet the rules: two rules contradict each other, or a list of allowed values is empty.
        public static let contradiction = Code(rawValue: "contradiction")
    }

    /// The kind of the error.
    public let code: Code

    /// The path of the error in the rules, from the outermost key: `["files", "petImage", "types"]`.
    public let path: [String]

    /// The error, in a sentence.
    public let message: String

    /// The advice on what to write instead, in a sentence.
    public let advice: String?

    /// The decoder's error if the rules are not JSON; otherwise `nil`.
    public let underlyingError: (any Error)?

    init(
        _ code: Code, _ message: String, at path: [String] = [], advice: String?, underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.path = path
        self.message = message
        self.advice = advice
        self.underlyingError = underlyingError
    }

    /// A copy of the error with the keys of the enclosing value before its path.
    func within(_ path: [String]) -> FormRulesError {
        FormRulesError(code, message, at: path + self.path, advice: advice, underlyingError: underlyingError)
    }

    public var description: String {
        let place = path.isEmpty ? "" : path.joined(separator: ".") + ": "
        return advised(place + message)
    }
}
