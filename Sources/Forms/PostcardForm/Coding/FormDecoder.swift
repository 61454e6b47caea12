import PostcardFoundation

/// Decodes a value from a received form, as from JSON.
///
/// ```swift
/// struct Pet: Decodable {
///     var name: String
///     var born: Date?
///     var isVaccinated: Bool
///     var owner: Owner
///     var pictures: [FormFile]
/// }
/// let form = try ReceivedForm(contentType: contentType, body: body)
/// let pet = try FormDecoder().decode(Pet.self, from: form)
/// ```
///
/// The fields `name`, `born`, `isVaccinated`, `owner[name]` and `pictures` become the properties; others are ignored.
///
/// - **Lists** can be `tags` repeated, `tags[]`, or `tags[0]`, whose indices are sorted and may have gaps. Elements
///   with keys need indices, `pets[0][name]`. `pets[][name]` is refused, because receivers disagree where the next
///   element begins. A list without fields is empty.
/// - **Optionals** are `nil` if no field was sent. An empty text, which browsers send for an empty input, is an empty
///   `String?`, and `nil` for every other type.
/// - **Truth values** are `true`, `on`, `yes` and `1`, or `false`, `off`, `no` and `0`, ignoring case, and false if no
///   field was sent, as browsers send checkboxes: see ``absentBoolIsFalse``.
/// - **Numbers** are decimal digits. One that its type cannot hold is an error, not rounded or cut.
/// - **Files** are read as ``FormFile`` or as `Data`. A text as `Data` is base64. A part without a filename whose type is
///   not `text` or whose bytes are not UTF-8 is `Data` as it was sent. A file input in which no file was chosen, which
///   browsers send as an empty file without a name, counts as not sent.
/// - **Texts** with more than 30 combining marks in a row are refused, because comparing them takes time by the square
///   of their number (UAX #15 §13).
/// - If a single value is expected and the field was sent twice, or both `pet` and `pet[name]` were sent, the form is
///   refused: two receivers would read it differently.
public struct FormDecoder: Sendable {
    /// How dates are read. Defaults to ISO 8601.
    public var dateStyle = FormDateStyle.iso8601

    /// Whether a `Bool` without a field is false, because browsers send nothing for an unchecked checkbox. Defaults to
    /// `true`; with `false` it is an error. A `Bool?` is `nil` either way.
    public var absentBoolIsFalse = true

    /// The maximum number of keys in a name; `pet[owner][name]` has three. Defaults to 32, more than real forms have,
    /// and few enough for any thread's stack.
    public var maximumDepth = 32

    /// The maximum number of different keys in all names, used or not. Defaults to 10,000, ten for each part that
    /// ``FormLimits`` allows.
    public var maximumKeys = 10_000

    /// Information for the value's own `init(from:)`.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Makes a decoder with the defaults.
    public init() {}

    /// Decodes a value from a form.
    ///
    /// - Parameters:
    ///   - type: The type of the value.
    ///   - form: The form. Files on disk stay there, except those that are decoded as `Data`.
    /// - Throws: ``FormDecodingError``, which names the field; any error of the value's own `init(from:)` other than
    ///   `DecodingError`, unchanged.
    public func decode<Value: Decodable>(_ type: Value.Type, from form: ReceivedForm) throws -> Value {
        let fields = try FieldTree(form, maximumDepth: maximumDepth, maximumKeys: maximumKeys)
        do {
            let root = ValueDecoder(fields: fields, options: self, place: .node(FieldTree.root), codingPath: [])
            return try root.decode(type)
        } catch let error as DecodingError {
            throw FormDecodingError(error, in: fields)
        }
    }
}
