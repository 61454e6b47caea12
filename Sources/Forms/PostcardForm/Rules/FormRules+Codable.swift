public import PostcardFoundation

extension FormRules {
    /// Reads rules from JSON, such as the content of a file.
    ///
    /// - Throws: ``FormRulesError``, with the error and its path in the JSON.
    public init(json: Data) throws(FormRulesError) {
        do {
            self = try JSONDecoder().decode(FormRules.self, from: json)
        } catch {
            throw FormRulesError(decoding: error)
        }
    }
}

extension FormRules: Codable {
    /// Decodes rules.
    ///
    /// - Throws: `DecodingError`, whose underlying error is a ``FormRulesError`` if no form can meet the rules.
    public init(from decoder: any Decoder) throws {
        let values = try RuleValues(decoder, known: Key.self)
        do {
            self = try FormRules(
                fields: values.decode([String: Field].self, .fields) ?? [:],
                files: values.decode([String: File].self, .files) ?? [:],
                maximumBytesOfAllFiles: values.decode(RuleBytes.self, .maximumBytesOfAllFiles)?.count,
                otherParts: values.decode(OtherParts.self, .otherParts) ?? .refused)
        } catch let error as FormRulesError {
            throw DecodingError.rules(error, decoder.codingPath)
        }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        if !fields.isEmpty { try container.encode(fields, forKey: .fields) }
        if !files.isEmpty { try container.encode(files, forKey: .files) }
        try container.encodeIfPresent(maximumBytesOfAllFiles, forKey: .maximumBytesOfAllFiles)
        if otherParts != .refused { try container.encode(otherParts, forKey: .otherParts) }
    }

    private enum Key: String, CodingKey, CaseIterable {
        case fields, files, maximumBytesOfAllFiles, otherParts
    }
}

extension FormRules.Field: Codable {
    public init(from decoder: any Decoder) throws {
        let values = try RuleValues(decoder, known: Key.self)
        self.init(
            atLeast: try values.decode(Int.self, .atLeast) ?? 0, atMost: try values.decode(Int.self, .atMost),
            minimumCharacters: try values.decode(Int.self, .minimumCharacters) ?? 0,
            maximumCharacters: try values.decode(Int.self, .maximumCharacters),
            pattern: try values.decode(TextPattern.self, .pattern), oneOf: try values.decode([String].self, .oneOf))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        if atLeast != 0 { try container.encode(atLeast, forKey: .atLeast) }
        if atMost != max(1, atLeast) { try container.encode(atMost, forKey: .atMost) }
        if minimumCharacters != 0 { try container.encode(minimumCharacters, forKey: .minimumCharacters) }
        try container.encodeIfPresent(maximumCharacters, forKey: .maximumCharacters)
        try container.encodeIfPresent(pattern, forKey: .pattern)
        try container.encodeIfPresent(oneOf, forKey: .oneOf)
    }

    private enum Key: String, CodingKey, CaseIterable {
        case atLeast, atMost, minimumCharacters, maximumCharacters, pattern, oneOf
    }
}

extension FormRules.File: Codable {
    public init(from decoder: any Decoder) throws {
        let values = try RuleValues(decoder, known: Key.self)
        self.init(
            atLeast: try values.decode(Int.self, .atLeast) ?? 0, atMost: try values.decode(Int.self, .atMost),
            minimumBytes: try values.decode(RuleBytes.self, .minimumBytes)?.count ?? 0,
            maximumBytes: try values.decode(RuleBytes.self, .maximumBytes)?.count,
            types: try values.decode([MediaRange].self, .types))
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Key.self)
        if atLeast != 0 { try container.encode(atLeast, forKey: .atLeast) }
        if atMost != max(1, atLeast) { try container.encode(atMost, forKey: .atMost) }
        if minimumBytes != 0 { try container.encode(minimumBytes, forKey: .minimumBytes) }
        try container.encodeIfPresent(maximumBytes, forKey: .maximumBytes)
        try container.encodeIfPresent(types, forKey: .types)
    }

    private enum Key: String, CodingKey, CaseIterable {
        case atLeast, atMost, minimumBytes, maximumBytes, types
    }
}

extension TextPattern: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let source = try container.decode(String.self)
        do { self = try TextPattern(source) } catch { throw DecodingError.rules(error, decoder.codingPath) }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(source)
    }
}

extension MediaRange: Codable {
    public init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        let value = try container.decode(String.self)
        do { self = try MediaRange(value) } catch { throw DecodingError.rules(error, decoder.codingPath) }
    }

    public func encode(to encoder: any Encoder) throws {
        var container = encoder.singleValueContainer()
        try container.encode(value)
    }
}

/// A JSON object in the rules. Unknown keys are an error.
struct RuleValues<Key: CodingKey & CaseIterable> {
    private let container: KeyedDecodingContainer<Key>

    init(_ decoder: any Decoder, known: Key.Type) throws {
        let names = Key.allCases.map { $0.stringValue }
        let present = try decoder.container(keyedBy: AnyKey.self).allKeys.map { $0.stringValue }.sorted()
        if let unknown = present.first(where: { !names.contains($0) }) {
            let error = FormRulesError(
                .unknownRule, "There is no rule \(unknown.debugDescription).",
                advice: "The known rules are \(names.joined(separator: ", ")).")
            throw DecodingError.rules(error, decoder.codingPath)
        }
        container = try decoder.container(keyedBy: Key.self)
    }

    /// The value of a key; `nil` if the key is missing. `null` is an error, because it has the wrong type.
    func decode<Value: Decodable>(_ type: Value.Type, _ key: Key) throws -> Value? {
        container.contains(key) ? try container.decode(type, forKey: key) : nil
    }

    private struct AnyKey: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }

        init?(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }
}

/// A number of bytes, as a JSON number or text: `1500`, `"100MB"`, `"4 GiB"`.
struct RuleBytes: Decodable {
    let count: Int64

    init(from decoder: any Decoder) throws {
        let container = try decoder.singleValueContainer()
        if let count = try? container.decode(Int64.self) {
            self.count = count
            return
        }
        guard let text = try? container.decode(String.self), let count = ByteCount(text)?.bytes else {
            let error = FormRulesError(
                .invalidValue, "It is not a number of bytes.",
                advice: #"Write a number, or a text such as "10MB" or "10MiB"."#)
            throw DecodingError.rules(error, decoder.codingPath)
        }
        self.count = count
    }
}

extension DecodingError {
    static func rules(_ error: FormRulesError, _ path: [any CodingKey]) -> DecodingError {
        .dataCorrupted(Context(codingPath: path, debugDescription: error.description, underlyingError: error))
    }
}

extension FormRulesError {
    init(decoding error: any Error) {
        switch error {
        case DecodingError.dataCorrupted(let context):
            if let rules = context.underlyingError as? FormRulesError {
                self = rules.within(context.codingPath.map(Self.name))
            } else if context.codingPath.isEmpty {
                self.init(
                    .malformed, "This is not JSON: \(Self.reason(context))", advice: "Write one JSON object.",
                    underlyingError: error)
            } else {
                self.init(
                    .invalidValue, context.debugDescription, at: context.codingPath.map(Self.name),
                    advice: "Write a known value.", underlyingError: error)
            }
        case DecodingError.typeMismatch(let type, let context), DecodingError.valueNotFound(let type, let context):
            self.init(
                .malformed, "The value has another type.", at: context.codingPath.map(Self.name),
                advice: "Write \(Self.name(of: type)).", underlyingError: error)
        default:
            self.init(
                .malformed, "The rules cannot be read: \(error)", advice: "Write one JSON object.",
                underlyingError: error)
        }
    }

    private static func name(_ key: any CodingKey) -> String {
        key.intValue.map(String.init) ?? key.stringValue
    }

    private static func reason(_ context: DecodingError.Context) -> String {
        context.underlyingError.map { "\($0)" } ?? context.debugDescription
    }

    private static func name(of type: Any.Type) -> String {
        switch type {
        case is Int.Type, is Int64.Type: "a whole number"
        case is String.Type: "a text in quotes"
        case is [String].Type, is [Any].Type: "a list in [ ]"
        default: "an object in { }"
        }
    }
}

/// A number of bytes in people's notation: `1500`, `100MB`, `4 GiB`.
///
/// Units of 1000 end in B. Units of 1024 end in iB or are a single letter.
package struct ByteCount: Sendable, Equatable {
    package let bytes: Int64

    /// Parses a text. `nil` if it is not a whole number of bytes.
    package init?(_ text: String) {
        let digits = text.utf8.prefix { $0.isDigit || $0 == UInt8(ascii: ".") }
        let unit = text.utf8.dropFirst(digits.count).drop { $0 == .space }.map { $0.asciiLowercased }
        guard let factor = Self.factors[String(decoding: unit, as: UTF8.self)],
            let number = String(digits).flatMap({ Double($0) }), let bytes = Int64(exactly: number * factor)
        else { return nil }
        self.bytes = bytes
    }

    private static let factors: [String: Double] = [
        "": 1, "b": 1, "kb": 1e3, "mb": 1e6, "gb": 1e9, "tb": 1e12, "k": 1024, "m": 1_048_576, "g": 1_073_741_824,
        "kib": 1024, "mib": 1_048_576, "gib": 1_073_741_824, "tib": 1_099_511_627_776,
    ]
}
