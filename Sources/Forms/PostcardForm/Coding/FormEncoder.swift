import PostcardFoundation

/// Encodes a value as a form, like `JSONEncoder` as JSON. Properties become fields, and files become file parts.
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
/// - A property that is `nil` and a list without elements are not sent, because a form cannot express them.
/// - Numbers are written exactly; infinities and NaN are refused.
/// - A `URL` is sent as its text. A file URL is refused, because only a path would be sent: use ``FormFile``.
/// - `Data` is sent in the ``dataStyle``, by default as a file.
/// - An enumeration with associated values is sent with the case's name as a key: `shape[circle][radius]`. A case
///   without values is an empty text, `shape[square]`.
public struct FormEncoder: Sendable {
    /// The style in which the elements of a list are named. Defaults to the same name for all.
    public var listStyle = ListStyle.repeatedName

    /// The style in which dates are written. Defaults to ISO 8601.
    public var dateStyle = FormDateStyle.iso8601

    /// The style in which truth values are written. Defaults to `true` and `false`.
    public var boolStyle = BoolStyle.trueFalse

    /// The style in which `Data` is sent. Defaults to a file.
    public var dataStyle = DataStyle.file

    /// The maximum number of keys in a name; `pet[owner][name]` has three. Defaults to 32, so that a value that
    /// contains itself is an error before the stack overflows.
    public var maximumDepth = 32

    /// Information for the value's own `encode(to:)`.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// The style in which the elements of a list are named.
    ///
    /// Elements other than a single text or file always have an index, as in `pets[0][name]`, so that a receiver can
    /// tell which fields belong to the same element.
    public enum ListStyle: Sendable, Hashable {
        /// The same name for all elements: `tags`, `tags`. RFC 7578 §4.3 asks for this style, and browsers use it.
        case repeatedName
        /// The name and empty brackets: `tags[]`, `tags[]`. PHP and Rails read a list only with brackets.
        case emptyBrackets
        /// The name and an index: `tags[0]`, `tags[1]`.
        case indices
    }

    /// The style in which truth values are written.
    public enum BoolStyle: Sendable, Hashable {
        /// `true` for true, `false` for false.
        case trueFalse
        /// `1` for true, `0` for false.
        case oneZero
        /// `on` for true and no field for false, as for a checkbox in a browser.
        case checkbox
    }

    /// The style in which `Data` is sent.
    public enum DataStyle: Sendable, Hashable {
        /// A file named `blob`, as in browsers. Its media type is detected from its first bytes.
        case file
        /// A text field in base64 (RFC 4648 §4).
        case base64
    }

    /// Makes an encoder with default options.
    public init() {}

    /// Makes a form of a value.
    ///
    /// - Parameters:
    ///   - value: A value with named properties: a structure, class, dictionary, or enumeration with associated values.
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
    /// Makes a form of a value: its properties become fields, and its files become file parts.
    ///
    /// ```swift
    /// let form = try MultipartForm(encoding: Pet(name: "초코", pictures: [FormFile(at: photo)]))
    /// ```
    ///
    /// - Parameters:
    ///   - value: A value with named properties: a structure, class, dictionary, or enumeration with associated values.
    ///   - encoder: The encoder, with the styles of lists, dates and other values.
    ///   - boundary: The boundary between the parts. Defaults to a random one.
    /// - Throws: ``FormEncodingError`` if a form cannot express the value; errors of the value's own `encode(to:)`,
    ///   unchanged.
    public init(
        encoding value: some Encodable, with encoder: FormEncoder = FormEncoder(), boundary: Boundary = Boundary()
    ) throws {
        self = try encoder.encode(value, boundary: boundary)
    }
}

/// The reason why a value cannot be encoded as a form.
///
/// ```swift
/// do {
///     form = try MultipartForm(encoding: pet)
/// } catch let error as FormEncodingError {
///     print(error.path, error.message)
/// }
/// ```
///
/// The value is in ``value`` and in the debug description. `description` leaves the value out, so that it can be
/// logged.
public struct FormEncodingError: PostcardError, CustomDebugStringConvertible {
    /// The kind of an error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// The value has no named properties, so its field would have no name.
        public static let unnamedValue = Code(rawValue: "unnamed-value")
        /// A key is empty or contains a square bracket, so it could not be decoded again.
        public static let invalidKey = Code(rawValue: "invalid-key")
        /// The value cannot be written as text, such as an infinity or a date in the year 10000.
        public static let invalidValue = Code(rawValue: "invalid-value")
        /// The value is a file URL, which would send a path instead of the file.
        public static let fileURL = Code(rawValue: "file-url")
        /// A list contains `nil` or an empty list, which a form cannot express.
        public static let emptyElement = Code(rawValue: "empty-element")
        /// A value encodes itself in two ways at once, such as a text and a list.
        public static let contradictoryShapes = Code(rawValue: "contradictory-shapes")
        /// The value is nested more deeply than ``FormEncoder/maximumDepth``.
        public static let tooDeep = Code(rawValue: "too-deep")
    }

    /// The kind of the error.
    public let code: Code

    /// The name of the field as the form would write it, such as `pet[name]`; empty for the value as a whole.
    public let path: String

    /// The text of the value that could not be written; `nil` if there is none.
    public let value: String?

    /// The error, in a sentence that does not contain the value.
    public let message: String

    /// The advice on what to do, in a sentence.
    public let advice: String?

    /// The underlying error from the value's own encoding; `nil` if there is none.
    public let underlyingError: (any Error)?

    /// Makes the error for a field. `wrong` says what is wrong, as the end of a sentence that begins with the field's
    /// name.
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

    public var debugDescription: String {
        FieldDescription.debugDescription(description, value: value, underlyingError: underlyingError)
    }
}

extension FormEncodingError {
    /// Makes the error for an `EncodingError` of a type's own encoding.
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

/// The descriptions of fields and their values in errors.
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
