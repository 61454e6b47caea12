#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Makes a value of a form that was received, as one would be made of JSON.
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
/// - **Lists** are understood as `tags` repeated, as `tags[]`, and as `tags[0]`, whose indices may come in any order
///   and with gaps: they are sorted. What has keys of its own needs indices, `pets[0][name]`. `pets[][name]` is refused,
///   because receivers differ on where the next element begins. A list of which nothing was sent is empty.
/// - **Optionals** are `nil` where no field was sent. An empty text, which is what browsers send for an input that was
///   left empty, is an empty `String?` and `nil` for every other type.
/// - **Truth values** are `true`, `on`, `yes` and `1`, or `false`, `off`, `no` and `0`, in upper or lower case, and false
///   where no field was sent, as a browser sends a checkbox: see ``absentBoolIsFalse``.
/// - **Numbers** are decimal digits. One that its type cannot hold is an error, not rounded or cut.
/// - **Files** are read as ``FormFile`` or as `Data`, and a text as `Data` is base64. A file input in which no file
///   was chosen, which browsers send as an empty file without a name, counts as not sent.
/// - Where a single value is asked for and the field came twice, or both `pet` and `pet[name]` came, the form is
///   refused: two receivers would read it differently.
public struct FormDecoder: Sendable {
    /// How dates are read: by ISO 8601 unless set.
    public var dateStyle = FormDateStyle.iso8601

    /// Whether a `Bool` of which no field was sent is false, because a browser sends nothing for a checkbox that is not
    /// checked: true unless set. With false it is an error. A `Bool?` is `nil` either way.
    public var absentBoolIsFalse = true

    /// The most keys that one name may be made of; `pet[owner][name]` has three. 32 unless set, more than any form
    /// in the field, and few enough for the stack of any thread.
    public var maximumDepth = 32

    /// The most different keys of all names together, wanted or not: 10,000 unless set, ten for each part that
    /// ``FormLimits`` allows.
    public var maximumKeys = 10_000

    /// What the value's own `init(from:)` may want to know.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Makes a decoder with the defaults.
    public init() {}

    /// Makes a value of a form.
    ///
    /// - Parameters:
    ///   - type: What to make.
    ///   - form: The form. Files that lie on disk stay there, unless they are read as `Data`.
    /// - Throws: ``FormDecodingError``, which names the field; what the value's own `init(from:)` throws, unchanged,
    ///   unless it is a `DecodingError`.
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
