import PostcardFoundation

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
