/// Decodes values with keys.
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

    /// An input for a text that was left empty is an empty text, not none.
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
