/// Why a value cannot be made a form.
///
/// ```swift
/// do {
///     form = try MultipartForm(encoding: pet)
/// } catch let error as FormEncodingError {
///     print(error.path, error.message)
/// }
/// ```
///
/// The value is in ``value`` and in the debug description; ``description`` leaves it out, so that it can be logged.
public struct FormEncodingError: Error, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// What kind of error it is. The raw value is stable.
    public enum Code: String, Sendable, Hashable, CaseIterable, CustomStringConvertible {
        /// The value has no named properties, so that nothing would have a name.
        case unnamedValue = "unnamed-value"
        /// A key is empty or holds a square bracket, and could not be read back.
        case invalidKey = "invalid-key"
        /// The value cannot be written as a text: an infinity, a date of the year 10000.
        case invalidValue = "invalid-value"
        /// A URL of a file on disk, which is no way to send the file.
        case fileURL = "file-url"
        /// A list holds `nil` or an empty list, which a form cannot say.
        case emptyElement = "empty-element"
        /// A value encodes itself as two things at once, such as a text and a list.
        case contradictoryShapes = "contradictory-shapes"
        /// The value is nested more deeply than ``FormEncoder/maximumDepth``.
        case tooDeep = "too-deep"

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// The name of the field as the form would write it, such as `pet[name]`; empty for the value as a whole.
    public let path: String

    /// The value that could not be written, as a text.
    public let value: String?

    /// What happened and what to do, in a sentence or two, without the value.
    public let message: String

    /// What the value's own coding said, where it spoke.
    public let underlying: (any Error)?

    init(
        _ code: Code, at path: some Sequence<String>, value: String? = nil, _ message: String,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.path = FieldName.name(of: path)
        self.value = value
        self.message = "\(FieldDescription.of(self.path)) \(message)"
        self.underlying = underlying
    }

    public var description: String { message }

    public var debugDescription: String {
        FieldDescription.debugDescription(message, value: value, underlying: underlying)
    }
}

extension FormEncodingError {
    /// What a type that encodes itself has thrown.
    init(_ error: EncodingError) {
        switch error {
        case .invalidValue(let value, let context):
            self.init(
                .invalidValue, at: context.codingPath.map(\.stringValue), value: String(describing: value),
                "has a value that its type refuses to encode.", underlying: error)
        @unknown default:
            self.init(.invalidValue, at: [], "cannot be written.", underlying: error)
        }
    }

    static func unnamedValue() -> FormEncodingError {
        FormEncodingError(
            .unnamedValue, at: [],
            "is a list or a single value, and a field needs a name. Encode a structure or a "
                + "dictionary.")
    }

    static func invalidKey(_ key: String, in path: [String]) -> FormEncodingError {
        FormEncodingError(
            .invalidKey, at: path, value: key,
            "has a key that is empty or holds a square bracket. Give it another, by CodingKeys for instance.")
    }

    static func invalidValue(
        _ value: String, at path: [String], _ message: String, underlying: (any Error)? = nil
    ) -> FormEncodingError {
        FormEncodingError(.invalidValue, at: path, value: value, message, underlying: underlying)
    }

    static func fileURL(_ url: String, at path: [String]) -> FormEncodingError {
        FormEncodingError(
            .fileURL, at: path, value: url,
            "is the URL of a file, and only its text would be sent. Use FormFile(at:) to send the content.")
    }

    static func emptyElement(at path: [String]) -> FormEncodingError {
        FormEncodingError(
            .emptyElement, at: path, "is nil or an empty list within a list, which a form cannot say. Leave it out.")
    }

    static func contradictoryShapes(at path: [String]) -> FormEncodingError {
        FormEncodingError(
            .contradictoryShapes, at: path,
            "is encoded as two things at once. Encode one value, one list or one "
                + "set of keys.")
    }

    static func tooDeep(at path: [String], maximum: Int) -> FormEncodingError {
        FormEncodingError(
            .tooDeep, at: path,
            "is nested more than \(maximum) keys deep. Make the value flatter, or set "
                + "maximumDepth higher.")
    }
}

/// How errors speak of fields and their values.
enum FieldDescription {
    /// The most characters of a name or a value that an error repeats: both may be as long as a stranger likes.
    private static let maximumLength = 100

    static func of(_ path: String) -> String {
        path.isEmpty ? "The value" : clipped(path)
    }

    static func debugDescription(_ message: String, value: String?, underlying: (any Error)?) -> String {
        var description = message
        if let value { description += " Its value is \(clipped(value))." }
        if let underlying { description += " (\(String(reflecting: underlying)))" }
        return description
    }

    private static func clipped(_ text: String) -> String {
        let beginning = text.prefix(maximumLength)
        return beginning.endIndex == text.endIndex
            ? text.debugDescription : "\(String(beginning).debugDescription)…"
    }
}
