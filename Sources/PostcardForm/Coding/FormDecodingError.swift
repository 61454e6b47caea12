/// Why a value cannot be made of a form that was received: which field, why, and what to send instead.
///
/// ```swift
/// do {
///     pet = try FormDecoder().decode(Pet.self, from: form)
/// } catch let error as FormDecodingError {
///     respond(error.status, "\(error.message) \(error.fix)")
/// }
/// ```
///
/// What was sent is in ``value`` and in the debug description; ``description`` leaves it out, so that it can be logged.
public struct FormDecodingError: Error, Sendable, CustomStringConvertible, CustomDebugStringConvertible {
    /// What kind of error it is. The raw value is stable: scripts may match it.
    public enum Code: String, Sendable, Hashable, CaseIterable, Codable, CustomStringConvertible {
        /// No field of the name was sent.
        case missing
        /// The field's text does not stand for a value of the type that is wanted.
        case invalidValue = "invalid-value"
        /// The field's text is a number that the type cannot hold.
        case outOfRange = "out-of-range"
        /// The bytes of a text field are not UTF-8.
        case notUTF8 = "not-utf-8"
        /// The field was sent more than once, and a single value is wanted.
        case repeated
        /// A text came where a file is wanted, or a single value where keys are, and so on.
        case wrongShape = "wrong-shape"
        /// Fields contradict each other, such as `pet` and `pet[name]`.
        case contradictoryShapes = "contradictory-shapes"
        /// A name is made of more keys than ``FormDecoder/maximumDepth``.
        case tooDeep = "too-deep"
        /// The names are made of more keys than ``FormDecoder/maximumKeys``.
        case tooManyKeys = "too-many-keys"
        /// A file that the receiver wrote to disk cannot be read back.
        case fileUnreadable = "file-unreadable"

        public var description: String { rawValue }
    }

    /// What kind of error it is.
    public let code: Code

    /// The name of the field as the form writes it, such as `pet[name]`; empty for the form as a whole.
    public let path: String

    /// The text that was sent and could not be read; `nil` where there is none.
    public let value: String?

    /// The part that could not be read, from 0; `nil` where there is none.
    public let partIndex: Int?

    /// Where the header of that part begins, counted from the start of the body.
    public let offset: Int64?

    /// What is wrong, in a sentence, without the value.
    public let message: String

    /// What to send instead, in a sentence.
    public let fix: String

    /// What the value's own coding said, or the system where it was asked.
    public let underlying: (any Error)?

    /// The status that a receiver refuses the request with (RFC 9110 §15.5).
    public var status: Int {
        switch code {
        case .missing, .invalidValue, .outOfRange, .notUTF8, .repeated, .wrongShape, .contradictoryShapes: 422
        case .tooDeep, .tooManyKeys: 413
        case .fileUnreadable: 500
        }
    }

    public var description: String { "\(message) \(fix)" }

    public var debugDescription: String {
        FieldDescription.debugDescription(description, value: value, underlying: underlying)
    }

    private init(
        _ code: Code, at path: String, part: ReceivedForm.Part?, value: String?, message: String, fix: String,
        underlying: (any Error)? = nil
    ) {
        self.code = code
        self.path = path
        self.value = value
        partIndex = part?.header.index
        offset = part?.header.offset
        self.message = message
        self.fix = fix
        self.underlying = underlying
    }

    /// - Parameters:
    ///   - code: What kind of error it is.
    ///   - part: The part that cannot be read.
    ///   - wrong: What is wrong with it, as the end of a sentence that begins with its name.
    ///   - fix: What to send instead.
    ///   - underlying: What caused it.
    init(_ code: Code, _ part: ReceivedForm.Part, _ wrong: String, fix: String, underlying: (any Error)? = nil) {
        self.init(
            code, at: part.header.name, part: part, value: part.header.isFile ? nil : part.text,
            message: "\(FieldDescription.of(part.header.name)) \(wrong)", fix: fix, underlying: underlying)
    }

    /// The same for a place in the value to which no part belongs, or more than one.
    init(_ code: Code, at path: String, _ wrong: String, fix: String, underlying: (any Error)? = nil) {
        self.init(
            code, at: path, part: nil, value: nil, message: "\(FieldDescription.of(path)) \(wrong)", fix: fix,
            underlying: underlying)
    }
}

extension FormDecodingError {
    /// What was thrown while decoding: an error of this type and what it was handed on in, or a type's own.
    init(_ error: DecodingError, in fields: FieldTree) {
        let context = error.context
        if let error = context?.underlyingError as? FormDecodingError {
            self = error
            return
        }
        let keys = context?.codingPath.map(\.stringValue) ?? []
        let place = fields.place(at: context?.codingPath ?? [])
        // The type's own words stay in the underlying error: they often repeat what was sent.
        let wrong = "has a value that is not allowed."
        let fix = "Send one that the form asks for."
        switch error {
        case .keyNotFound(let key, _):
            self = .missing(FieldName.name(of: keys + [key.stringValue]))
        case _ where place == .absent:
            self.init(.missing, at: FieldName.name(of: keys), "is missing.", fix: "Send it.", underlying: error)
        default:
            if let part = fields.parts(at: place).first {
                self.init(.invalidValue, part, wrong, fix: fix, underlying: error)
            } else {
                self.init(.invalidValue, at: FieldName.name(of: keys), wrong, fix: fix, underlying: error)
            }
        }
    }

    static func missing(_ path: String) -> FormDecodingError {
        FormDecodingError(.missing, at: path, "is missing.", fix: "Send it.")
    }

    static func repeated(_ path: String, count: Int) -> FormDecodingError {
        FormDecodingError(.repeated, at: path, "was sent \(count) times.", fix: "Send it once.")
    }

    static func contradictoryShapes(_ path: String) -> FormDecodingError {
        FormDecodingError(
            .contradictoryShapes, at: path, "was sent in more than one way: as a value and with keys or an index.",
            fix: "Write all of its names in one way.")
    }

    static func tooDeep(_ name: String, maximum: Int, part: ReceivedForm.Part?) -> FormDecodingError {
        FormDecodingError(
            .tooDeep, at: name, part: part, value: nil,
            message: "\(FieldDescription.of(name)) is nested more than \(maximum) keys deep.",
            fix: "Use a name with fewer brackets.")
    }

    static func tooManyKeys(maximum: Int, part: ReceivedForm.Part) -> FormDecodingError {
        FormDecodingError(
            .tooManyKeys, at: part.header.name, part: part, value: nil,
            message: "The names of the form's fields have more than \(maximum) different keys.",
            fix: "Send fewer fields.")
    }
}

extension DecodingError {
    /// Where it happened; `nil` for a kind of error that is not known here.
    fileprivate var context: Context? {
        switch self {
        case .typeMismatch(_, let context), .valueNotFound(_, let context), .keyNotFound(_, let context),
            .dataCorrupted(let context):
            context
        @unknown default: nil
        }
    }

    /// An error about a field, handed on as the standard library's, which types that decode themselves may expect.
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
        case .invalidValue, .outOfRange, .notUTF8, .contradictoryShapes, .tooDeep, .tooManyKeys, .fileUnreadable:
            self = .dataCorrupted(context)
        }
    }
}
