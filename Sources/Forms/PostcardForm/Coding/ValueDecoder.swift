import PostcardFoundation

/// Decodes a value at any depth of the form.
struct ValueDecoder: Decoder {
    let fields: FieldTree
    let options: FormDecoder
    let place: FieldTree.Place
    let codingPath: [any CodingKey]

    /// Whether an empty text is decoded as `nil`: `true` for every optional type but `String?`.
    var emptyIsNil = true

    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) throws -> KeyedDecodingContainer<Key> {
        KeyedDecodingContainer(KeyedValueDecoder(decoder: self, keys: try keys()))
    }

    func unkeyedContainer() throws -> any UnkeyedDecodingContainer {
        UnkeyedValueDecoder(decoder: self, elements: try elements())
    }

    func singleValueContainer() -> any SingleValueDecodingContainer { self }

    /// The decoder of a nested value.
    ///
    /// Throws if the value is nested too deeply. A type that contains itself may be decoded at every depth, even if the
    /// form has no fields there, so only this limit ends the decoding.
    func nested(_ place: FieldTree.Place, at key: any CodingKey) throws -> ValueDecoder {
        guard codingPath.count <= options.maximumDepth else {
            throw failure(.tooDeep(path, maximum: options.maximumDepth, part: nil))
        }
        return ValueDecoder(fields: fields, options: options, place: place, codingPath: codingPath + [key])
    }

    var path: String { FieldName.name(of: codingPath.map(\.stringValue)) }

    /// Whether the field is a text input that was left empty.
    var isEmptyText: Bool {
        guard case .parts(let parts) = fields.shape(at: place), parts.count == 1 else { return false }
        let part = fields.part(parts[0])
        guard !part.header.isFile, case .bytes(let bytes) = part.content else { return false }
        return bytes.isEmpty
    }

    func failure(_ error: FormDecodingError, type: any Any.Type = Any.self) -> DecodingError {
        DecodingError(error, type: type, codingPath: codingPath)
    }

    func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        if let value = try decodeKnown(type) { return value }
        var decoder = self
        decoder.emptyIsNil = type != String?.self
        return try Value(from: decoder)
    }

    /// Decodes types with a special format in forms, such as dates and `Data`.
    private func decodeKnown<Value>(_ type: Value.Type) throws -> Value? {
        switch type {
        case is Date.Type: try date() as? Value
        case is Data.Type: try data() as? Value
        case is URL.Type: try url() as? Value
        case is UUID.Type: try identifier() as? Value
        case is Decimal.Type: try decimal() as? Value
        case is FormFile.Type: try file() as? Value
        default: nil
        }
    }
}

// MARK: - Shapes

extension ValueDecoder {
    /// The keys of an object; none for a missing field or an empty text.
    private func keys() throws -> [String] {
        switch fields.shape(at: place) {
        case .absent: return []
        case .keys([""]):
            throw failure(
                wrongShape("is a list, and keys are wanted.", advice: "Put a key in brackets after the name."))
        case .keys(let keys) where keys.contains(""): throw failure(.contradictoryShapes(path))
        case .keys(let keys): return keys
        case .parts where isEmptyText: return []
        case .parts:
            throw failure(
                wrongShape("is a single value, and keys are wanted.", advice: "Put a key in brackets after the name."))
        case .contradiction: throw failure(.contradictoryShapes(path))
        }
    }

    private func elements() throws -> [FieldTree.Element] {
        switch fields.list(at: place) {
        case .elements(let elements): return elements
        case .contradiction: throw failure(.contradictoryShapes(path))
        case .key(let key):
            throw failure(
                wrongShape(
                    "is a list, and its key \(key.prefix(20).debugDescription) is not an index.",
                    advice: "Number the elements: [0], [1] and so on."))
        case .unassignable:
            throw failure(
                wrongShape(
                    "is a list of which it is not said what belongs to which element.",
                    advice: "Number the elements before their keys: [0][key], [1][key] and so on."))
        }
    }

    private func wrongShape(_ wrong: String, advice: String) -> FormDecodingError {
        if let part = fields.parts(at: place).first {
            return FormDecodingError(.wrongShape, part, wrong, advice: advice)
        }
        return FormDecodingError(.wrongShape, at: path, wrong, advice: advice)
    }

    /// The only part of the field. Throws if there is no part or more than one.
    func part(for type: any Any.Type) throws -> ReceivedForm.Part {
        switch fields.shape(at: place) {
        case .absent: throw failure(.missing(path), type: type)
        case .contradiction: throw failure(.contradictoryShapes(path), type: type)
        case .keys:
            throw failure(
                wrongShape(
                    path.isEmpty
                        ? "is a form, and a single value is wanted." : "has keys, and a single value is wanted.",
                    advice: path.isEmpty ? "Decode a type with properties." : "Write the name without brackets."),
                type: type)
        case .parts(let parts):
            guard parts.count == 1 else { throw failure(.repeated(path, count: parts.count), type: type) }
            return fields.part(parts[0])
        }
    }
}

struct KeyedValueDecoder<Key: CodingKey>: KeyedDecodingContainerProtocol {
    let decoder: ValueDecoder
    let keys: [String]

    var codingPath: [any CodingKey] { decoder.codingPath }
    var allKeys: [Key] { keys.compactMap(Key.init(stringValue:)) }

    func contains(_ key: Key) -> Bool {
        place(of: key) != .absent
    }

    func decodeNil(forKey key: Key) throws -> Bool {
        try nested(key).decodeNil()
    }

    func decode(_ type: Int128.Type, forKey key: Key) throws -> Int128 {
        try nested(key).decode(type)
    }

    func decode(_ type: UInt128.Type, forKey key: Key) throws -> UInt128 {
        try nested(key).decode(type)
    }

    func decode<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value {
        try nested(key).decode(type)
    }

    /// Decodes an optional text. An empty text input is an empty text, not `nil`.
    func decodeIfPresent(_ type: String.Type, forKey key: Key) throws -> String? {
        contains(key) ? try nested(key).decode(type) : nil
    }

    func decodeIfPresent<Value: Decodable>(_ type: Value.Type, forKey key: Key) throws -> Value? {
        let decoder = try nested(key)
        if type != String.self, decoder.decodeNil() { return nil }
        return contains(key) ? try decoder.decode(type) : nil
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type, forKey key: Key
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try nested(key).container(keyedBy: type)
    }

    func nestedUnkeyedContainer(forKey key: Key) throws -> any UnkeyedDecodingContainer {
        try nested(key).unkeyedContainer()
    }

    func superDecoder() throws -> any Decoder {
        let key = SuperKey()
        return try decoder.nested(decoder.fields.place(of: key.stringValue, in: decoder.place), at: key)
    }

    func superDecoder(forKey key: Key) throws -> any Decoder {
        try nested(key)
    }

    private func place(of key: Key) -> FieldTree.Place {
        decoder.fields.place(of: key.stringValue, in: decoder.place)
    }

    private func nested(_ key: Key) throws -> ValueDecoder {
        try decoder.nested(place(of: key), at: key)
    }
}

struct UnkeyedValueDecoder: UnkeyedDecodingContainer {
    let decoder: ValueDecoder
    let elements: [FieldTree.Element]
    private(set) var currentIndex = 0

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex == elements.count }

    /// Whether the current element is `nil`. If so, moves to the next element.
    mutating func decodeNil() throws -> Bool {
        let isNil = try current().decodeNil()
        if isNil { currentIndex += 1 }
        return isNil
    }

    mutating func decode(_ type: Int128.Type) throws -> Int128 {
        try next { try $0.decode(type) }
    }

    mutating func decode(_ type: UInt128.Type) throws -> UInt128 {
        try next { try $0.decode(type) }
    }

    mutating func decode<Value: Decodable>(_ type: Value.Type) throws -> Value {
        try next { try $0.decode(type) }
    }

    mutating func nestedContainer<NestedKey: CodingKey>(
        keyedBy type: NestedKey.Type
    ) throws -> KeyedDecodingContainer<NestedKey> {
        try next { try $0.container(keyedBy: type) }
    }

    mutating func nestedUnkeyedContainer() throws -> any UnkeyedDecodingContainer {
        try next { try $0.unkeyedContainer() }
    }

    mutating func superDecoder() throws -> any Decoder {
        try next { $0 }
    }

    /// Decodes the current element, and moves to the next on success.
    private mutating func next<Value>(_ read: (ValueDecoder) throws -> Value) throws -> Value {
        let value = try read(try current())
        currentIndex += 1
        return value
    }

    private func current() throws -> ValueDecoder {
        let place = isAtEnd ? FieldTree.Place.absent : elements[currentIndex].place
        let key = ListKey(currentIndex, writtenAs: isAtEnd ? nil : elements[currentIndex].key)
        return try decoder.nested(place, at: key)
    }
}
