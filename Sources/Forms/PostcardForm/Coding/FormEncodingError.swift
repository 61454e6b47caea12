public import PostcardFoundation

/// Why a value cannot be encoded as a form.
///
/// ```swift
/// do {
///     form = try MultipartForm(encoding: pet)
/// } catch let error as FormEncodingError {
///     print(error.path, error.message)
/// }
/// ```
///
/// The value is in ``value`` and in the debug description. ``description`` leaves it out, so that it can be logged.
public struct FormEncodingError: Error, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// What kind of error it is; stable across versions.
    public struct Code: RawRepresentable, Sendable, Hashable, CustomStringConvertible {
        public let rawValue: String

        public init(rawValue: String) {
            self.rawValue = rawValue
        }

        /// The value has no named properties, so its field would have no name.
        public static let unnamedValue = Code(rawValue: "unnamed-value")
        /// A key is empty or contains a square bracket, and could not be decoded again.
        public static let invalidKey = Code(rawValue: "invalid-key")
        /// The value cannot be written as a text: an infinity, a date of the year 10000.
        public static let invalidValue = Code(rawValue: "invalid-value")
        /// The URL of a file on disk: only its text would be sent, not the file.
        public static let fileURL = Code(rawValue: "file-url")
        /// A list contains `nil` or an empty list, which a form cannot express.
        public static let emptyElement = Code(rawValue: "empty-element")
        /// A value encodes itself as two things at once, such as a text and a list.
        public static let contradictoryShapes = Code(rawValue: "contradictory-shapes")
        /// The value is nested more deeply than ``FormEncoder/maximumDepth``.
        public static let tooDeep = Code(rawValue: "too-deep")

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// The name of the field as the form would write it, such as `pet[name]`; empty for the value as a whole.
    public let path: String

    /// The value that could not be written, as a text.
    public let value: String?

    /// What is wrong, in a sentence, without the value.
    public let message: String

    /// What to do, in a sentence.
    public let advice: String

    /// The error of the value's own encoding, if there is one.
    public let underlyingError: (any Error)?

    /// - Parameters:
    ///   - wrong: What is wrong with the field, as the end of a sentence that begins with its name.
    ///   - advice: What to do.
    init(
        _ code: Code, at path: some Sequence<String>, value: String? = nil, _ wrong: String, advice: String,
        underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.path = FieldName.name(of: path)
        self.value = value
        message = "\(FieldDescription.of(self.path)) \(wrong)"
        self.advice = advice
        self.underlyingError = underlyingError
    }

    public var description: String { "\(message) \(advice)" }

    public var debugDescription: String {
        FieldDescription.debugDescription(description, value: value, underlyingError: underlyingError)
    }
}

extension FormEncodingError: LocalizedError {
    public var errorDescription: String? { message }
    public var recoverySuggestion: String? { advice }
}

extension FormEncodingError {
    /// What a type that encodes itself has thrown.
    init(_ error: EncodingError) {
        switch error {
        case .invalidValue(let value, let context):
            self.init(
                .invalidValue, at: context.codingPath.map(\.stringValue), value: String(describing: value),
                "has a value that its type refuses to encode.", advice: "Use another value.", underlyingError: error)
        @unknown default:
            self.init(
                .invalidValue, at: [], "cannot be encoded.", advice: "Use another value.", underlyingError: error)
        }
    }

    static func unnamedValue() -> FormEncodingError {
        FormEncodingError(
            .unnamedValue, at: [], "is a list or a single value, but a field needs a name.",
            advice: "Encode a structure or a dictionary.")
    }

    static func invalidKey(_ key: String, in path: [String]) -> FormEncodingError {
        FormEncodingError(
            .invalidKey, at: path, value: key, "has a key that is empty or contains a square bracket.",
            advice: "Give it another, for example in CodingKeys.")
    }

    static func invalidValue(
        _ value: String, at path: [String], _ wrong: String, underlyingError: (any Error)? = nil
    ) -> FormEncodingError {
        FormEncodingError(
            .invalidValue, at: path, value: value, wrong, advice: "Use another value.",
            underlyingError: underlyingError)
    }

    static func fileURL(_ url: String, at path: [String]) -> FormEncodingError {
        FormEncodingError(
            .fileURL, at: path, value: url, "is the URL of a file, and only its text would be sent.",
            advice: "Use FormFile(at:) to send the content.")
    }

    static func emptyElement(at path: [String]) -> FormEncodingError {
        FormEncodingError(
            .emptyElement, at: path, "is nil or an empty list within a list, which a form cannot express.",
            advice: "Leave it out.")
    }

    static func contradictoryShapes(at path: [String]) -> FormEncodingError {
        FormEncodingError(
            .contradictoryShapes, at: path, "is encoded as two things at once.",
            advice: "Encode one value, one list or one set of keys.")
    }

    static func tooDeep(at path: [String], maximum: Int) -> FormEncodingError {
        FormEncodingError(
            .tooDeep, at: path, "is nested more than \(maximum) keys deep.",
            advice: "Make the value flatter, or raise maximumDepth.")
    }
}

/// How errors describe fields and their values.
enum FieldDescription {
    static func of(_ path: String) -> String {
        path.isEmpty ? "The value" : clipped(path)
    }

    static func debugDescription(_ message: String, value: String?, underlyingError: (any Error)?) -> String {
        var description = message
        if let value { description += " Its value is \(clipped(value))." }
        if let underlyingError { description += " (\(String(reflecting: underlyingError)))" }
        return description
    }

    private static func clipped(_ text: String) -> String {
        text.clipped.map { "\($0.debugDescription)…" } ?? text.debugDescription
    }
}
