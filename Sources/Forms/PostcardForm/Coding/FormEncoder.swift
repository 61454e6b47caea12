public import PostcardFoundation

/// Encodes a value as a form, as JSON would be: its properties become fields, and its files become file parts.
///
/// ```swift
/// struct Pet: Encodable {
///     var name: String
///     var born: Date?
///     var owner: Owner
///     var pictures: [FormFile]
/// }
/// let form = try FormEncoder().encode(pet)
/// ```
///
/// The fields are `name`, `born`, `owner[name]` and `pictures`, in the order in which the value encodes them.
///
/// - A property that is `nil`, and a list without elements, are not sent: a form has no other way to say nothing.
/// - Numbers are written so that they are decoded exactly; infinities and NaN are refused.
/// - A `URL` is sent as its text. The URL of a file is refused, because it would send a path instead of the content:
///   use ``FormFile``.
/// - `Data` is sent as ``dataStyle`` says. Defaults to a file.
/// - An enumeration with associated values is sent as its case's name and what belongs to it: `shape[circle][radius]`;
///   a case without values as an empty text, `shape[square]`.
public struct FormEncoder: Sendable {
    /// How the elements of a list are named. Defaults to the same name for all.
    public var listStyle = ListStyle.repeatedName

    /// How dates are written. Defaults to ISO 8601.
    public var dateStyle = FormDateStyle.iso8601

    /// How truth values are written. Defaults to `true` and `false`.
    public var boolStyle = BoolStyle.trueFalse

    /// How `Data` is sent. Defaults to a file.
    public var dataStyle = DataStyle.file

    /// The maximum number of keys in a name; `pet[owner][name]` has three. Defaults to 32, which stops a value that
    /// contains itself long before the stack overflows.
    public var maximumDepth = 32

    /// Information for the value's own `encode(to:)`.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// How the elements of a list are named.
    ///
    /// Elements other than a single text or file have an index in every style, `pets[0][name]`: otherwise a receiver
    /// would not know what belongs together.
    public enum ListStyle: Sendable, Hashable {
        /// `tags`, `tags`: what RFC 7578 §4.3 asks for, and what browsers send.
        case repeatedName
        /// `tags[]`, `tags[]`: what PHP and Rails need to see a list.
        case emptyBrackets
        /// `tags[0]`, `tags[1]`.
        case indices
    }

    /// How truth values are written.
    public enum BoolStyle: Sendable, Hashable {
        /// `true` and `false`.
        case trueFalse
        /// `1` and `0`.
        case oneZero
        /// `on` for true, and no field for false, as a browser sends a checkbox.
        case checkbox
    }

    /// How `Data` is sent.
    public enum DataStyle: Sendable, Hashable {
        /// A file named `blob`, which is what browsers call bytes that have no name. Its media type is found by
        /// its first bytes.
        case file
        /// A text in base64 (RFC 4648 §4).
        case base64
    }

    /// Makes an encoder with the defaults.
    public init() {}

    /// Makes a form of a value.
    ///
    /// - Parameters:
    ///   - value: What has named properties: a structure, a class, an enumeration with associated values, a dictionary.
    ///   - boundary: The boundary between the parts. Defaults to a random one.
    /// - Throws: ``FormEncodingError`` if a form cannot express the value; errors of the value's own `encode(to:)`,
    ///   unchanged.
    public func encode(_ value: some Encodable, boundary: Boundary = Boundary()) throws -> MultipartForm {
        let root = EncodedValue()
        let encoder = ValueEncoder(value: root, options: self, codingPath: [])
        do {
            try encoder.encode(value)
        } catch let error as EncodingError {
            throw FormEncodingError(error)
        }
        var writer = FieldWriter(options: self, form: MultipartForm(boundary: boundary))
        try writer.write(root)
        return writer.form
    }
}

extension MultipartForm {
    /// Makes a form of a value: its properties become fields, and its files file parts.
    ///
    /// ```swift
    /// let form = try MultipartForm(encoding: Pet(name: "초코", pictures: [FormFile(at: photo)]))
    /// ```
    ///
    /// - Parameters:
    ///   - value: What has named properties: a structure, a class, an enumeration with associated values, a dictionary.
    ///   - encoder: How lists, dates and other values are written.
    ///   - boundary: The boundary between the parts. Defaults to a random one.
    /// - Throws: ``FormEncodingError`` if a form cannot express the value; errors of the value's own `encode(to:)`,
    ///   unchanged.
    public init(
        encoding value: some Encodable, with encoder: FormEncoder = FormEncoder(), boundary: Boundary = Boundary()
    ) throws {
        self = try encoder.encode(value, boundary: boundary)
    }
}

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
