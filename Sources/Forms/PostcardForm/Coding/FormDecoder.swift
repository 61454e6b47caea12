import PostcardFoundation

/// Decodes a value from a received form, like `JSONDecoder` from JSON.
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
/// The fields `name`, `born`, `isVaccinated`, `owner[name]` and `pictures` become properties. Other fields are ignored.
///
/// - **Lists** can be `tags` repeated, `tags[]`, or `tags[0]`. Elements are sorted by their indices, which may have
///   gaps. Elements with keys need indices, as in `pets[0][name]`. `pets[][name]` is refused, because receivers
///   disagree about where the next element begins. A list without fields is empty.
/// - **Optionals** are `nil` without a field. An empty text, which browsers send for an empty input, is an empty
///   `String?`, and `nil` for any other optional type.
/// - **Truth values** are `true`, `on`, `yes` and `1`, or `false`, `off`, `no` and `0`, ignoring case. A missing field
///   is false, because browsers send nothing for an unchecked checkbox: see ``absentBoolIsFalse``.
/// - **Numbers** are decimal. A number that its type cannot hold is an error: it is never rounded or cut.
/// - **Files** are read as ``FormFile`` or `Data`. A text is read as `Data` in base64. A part without a filename is
///   read as bytes if its type is not `text` or its bytes are not UTF-8. An empty file without a name counts as
///   missing: browsers send it for a file input without a file.
/// - **Texts** with more than 30 combining marks in a row are refused, because comparing them takes time by the square
///   of their number (UAX #15 §13).
/// - **Contradictions** are refused, because receivers would read the form differently: a field that was sent twice for
///   a single value, or both `pet` and `pet[name]`.
public struct FormDecoder: Sendable {
    /// The style in which dates are read. Defaults to ISO 8601.
    public var dateStyle = FormDateStyle.iso8601

    /// Whether a `Bool` without a field is false, because browsers send nothing for an unchecked checkbox. Defaults to
    /// `true`; with `false`, a missing field is an error. A `Bool?` without a field is always `nil`.
    public var absentBoolIsFalse = true

    /// The maximum number of keys in a name; `pet[owner][name]` has three. Defaults to 32, more than real forms have
    /// and little enough for the stack of any thread.
    public var maximumDepth = 32

    /// The maximum number of different keys in all names, even unused ones. Defaults to 10,000: ten for each part that
    /// ``FormLimits`` allows.
    public var maximumKeys = 10_000

    /// Information for the value's own `init(from:)`.
    public var userInfo: [CodingUserInfoKey: any Sendable] = [:]

    /// Makes a decoder with default options.
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

/// The reason why a received form cannot be decoded: the field, the error, and what to send instead.
///
/// ```swift
/// do {
///     pet = try FormDecoder().decode(Pet.self, from: form)
/// } catch let error as FormDecodingError {
///     respond(error.status, "\(error.message) \(error.advice)")
/// }
/// ```
///
/// The text that was sent is in ``value`` and in the debug description. `description` leaves the text out, so that it
/// can be logged.
public struct FormDecodingError: PostcardError, CustomDebugStringConvertible {
    /// The kind of an error; stable across versions.
    public struct Code: PostcardErrorCode {
        public let rawValue: String

        public init(rawValue: String) { self.rawValue = rawValue }

        /// No field with the name was sent.
        public static let missing = Code(rawValue: "missing")
        /// The text of the field is not a value of the expected type.
        public static let invalidValue = Code(rawValue: "invalid-value")
        /// The field's text is a number that the type cannot hold.
        public static let outOfRange = Code(rawValue: "out-of-range")
        /// The bytes of a text field are not UTF-8.
        public static let notUTF8 = Code(rawValue: "not-utf-8")
        /// Several fields with the name were sent, but a single value is expected.
        public static let repeated = Code(rawValue: "repeated")
        /// The field has another shape than expected: a text instead of a file, or a single value instead of keys.
        public static let wrongShape = Code(rawValue: "wrong-shape")
        /// Fields contradict each other, such as `pet` and `pet[name]`.
        public static let contradictoryShapes = Code(rawValue: "contradictory-shapes")
        /// A name has more keys than ``FormDecoder/maximumDepth``.
        public static let tooDeep = Code(rawValue: "too-deep")
        /// The names have more keys than ``FormDecoder/maximumKeys``.
        public static let tooManyKeys = Code(rawValue: "too-many-keys")
        /// A file that the receiver wrote to disk cannot be read back.
        public static let fileUnreadable = Code(rawValue: "file-unreadable")
    }

    /// The kind of the error.
    public let code: Code

    /// The name of the field as the form writes it, such as `pet[name]`; empty for the form as a whole.
    public let path: String

    /// The text that could not be read; `nil` if there is none.
    public let value: String?

    /// The index of the part that could not be read, from 0; `nil` if there is none.
    public let partIndex: Int?

    /// The offset of the header of the part, counted from the start of the body; `nil` if there is no such part.
    public let offset: Int64?

    /// The error, in a sentence that does not contain the value.
    public let message: String

    /// The advice on what to send instead, in a sentence.
    public let advice: String?

    /// The underlying error, from the value's own decoding or the operating system; `nil` if there is none.
    public let underlyingError: (any Error)?

    /// The HTTP status for the refusal of the request (RFC 9110 §15.5).
    public var status: HTTPResponse.Status {
        switch code {
        case .tooDeep, .tooManyKeys: 413
        case .fileUnreadable: 500
        default: 422
        }
    }

    public var debugDescription: String {
        FieldDescription.debugDescription(description, value: value, underlyingError: underlyingError)
    }

    private init(
        _ code: Code, at path: String, part: ReceivedForm.Part?, value: String?, message: String, advice: String,
        underlyingError: (any Error)? = nil
    ) {
        self.code = code
        self.path = path
        self.value = value
        partIndex = part?.header.index
        offset = part?.header.offset
        self.message = message
        self.advice = advice
        self.underlyingError = underlyingError
    }

    /// Makes the error for a part that cannot be read. `wrong` says what is wrong, as the end of a sentence that begins
    /// with the part's name.
    init(_ code: Code, _ part: ReceivedForm.Part, _ wrong: String, advice: String, underlyingError: (any Error)? = nil)
    {
        self.init(
            code, at: part.header.name, part: part, value: part.header.isFile ? nil : part.text,
            message: "\(FieldDescription.of(part.header.name)) \(wrong)", advice: advice,
            underlyingError: underlyingError)
    }

    /// Makes the error for a place in the value without a part, or with several.
    init(_ code: Code, at path: String, _ wrong: String, advice: String, underlyingError: (any Error)? = nil) {
        self.init(
            code, at: path, part: nil, value: nil, message: "\(FieldDescription.of(path)) \(wrong)", advice: advice,
            underlyingError: underlyingError)
    }
}

extension FormDecodingError {
    /// Converts a `DecodingError`. If its underlying error is a `FormDecodingError`, that error is used.
    init(_ error: DecodingError, in fields: FieldTree) {
        let context = error.context
        if let error = context?.underlyingError as? FormDecodingError {
            self = error
            return
        }
        let keys = context?.codingPath.map(\.stringValue) ?? []
        let place = fields.place(at: context?.codingPath ?? [])
        // The type's own message may contain the value, so only the underlying error has it.
        let wrong = "has a value that is not allowed."
        let advice = "Send one that the form asks for."
        switch error {
        case .keyNotFound(let key, _):
            self = .missing(FieldName.name(of: keys + [key.stringValue]))
        case _ where place == .absent:
            self.init(.missing, at: FieldName.name(of: keys), "is missing.", advice: "Send it.", underlyingError: error)
        default:
            if let part = fields.parts(at: place).first {
                self.init(.invalidValue, part, wrong, advice: advice, underlyingError: error)
            } else {
                self.init(.invalidValue, at: FieldName.name(of: keys), wrong, advice: advice, underlyingError: error)
            }
        }
    }

    static func missing(_ path: String) -> FormDecodingError {
        FormDecodingError(.missing, at: path, "is missing.", advice: "Send it.")
    }

    static func repeated(_ path: String, count: Int) -> FormDecodingError {
        FormDecodingError(.repeated, at: path, "was sent \(count) times.", advice: "Send it once.")
    }

    static func contradictoryShapes(_ path: String) -> FormDecodingError {
        FormDecodingError(
            .contradictoryShapes, at: path, "was sent in more than one way: as a value and with keys or an index.",
            advice: "Write all of its names in one way.")
    }

    static func tooDeep(_ name: String, maximum: Int, part: ReceivedForm.Part?) -> FormDecodingError {
        FormDecodingError(
            .tooDeep, at: name, part: part, value: nil,
            message: "\(FieldDescription.of(name)) is nested more than \(maximum) keys deep.",
            advice: "Use a name with fewer brackets.")
    }

    static func tooManyKeys(maximum: Int, part: ReceivedForm.Part) -> FormDecodingError {
        FormDecodingError(
            .tooManyKeys, at: part.header.name, part: part, value: nil,
            message: "The names of the form's fields have more than \(maximum) different keys.",
            advice: "Send fewer fields.")
    }
}

extension DecodingError {
    /// The context of the error; `nil` for unknown kinds of errors.
    fileprivate var context: Context? {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            context
        @unknown default: nil
        }
    }

    /// Converts an error about a field to a `DecodingError`, which a type's own decoding may expect.
    init(_ error: FormDecodingError, type: any Any.Type, codingPath: [any CodingKey]) {
        let context = Context(codingPath: codingPath, debugDescription: error.message, underlyingError: error)
        switch error.code {
        case .missing:
            self =
                codingPath.last.map {
                    .keyNotFound(
                        $0,
                        Context(
                            codingPath: codingPath.dropLast(), debugDescription: error.message, underlyingError: error))
                } ?? .valueNotFound(type, context)
        case .wrongShape, .repeated:
            self = .typeMismatch(type, context)
        default:
            self = .dataCorrupted(context)
        }
    }
}
