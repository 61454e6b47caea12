public import PostcardFoundation

extension FormRules {
    /// Reads rules from JSON, such as a file's content.
    ///
    /// - Throws: ``FormRulesError``, which says where in the JSON what is wrong.
    public init(json: Data) throws(FormRulesError) {
        do {
            self = try JSONDecoder().decode(FormRules.self, from: json)
        } catch {
            throw FormRulesError(decoding: error)
        }
    }
}

extension FormRules: Codable {
    /// Reads rules.
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
