/// Encodes values with keys.
struct KeyedValueEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let object: EncodedObject
    let encoder: ValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    /// Nothing is sent for `nil`.
    func encodeNil(forKey key: Key) {
        object.removeValue(for: key.stringValue)
    }

    func encode(_ value: Int128, forKey key: Key) throws {
        try encodeValue(value, forKey: key)
    }

    func encode(_ value: UInt128, forKey key: Key) throws {
        try encodeValue(value, forKey: key)
    }

    func encode<Value: Encodable>(_ value: Value, forKey key: Key) throws {
        try encodeValue(value, forKey: key)
    }

    private func encodeValue(_ value: some Encodable, forKey key: Key) throws {
        try encoder.nested(object.value(for: key.stringValue), at: key).encode(value)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type, forKey key: Key
    ) -> KeyedEncodingContainer<NestedKey> {
        let value = object.container(for: key.stringValue)
        value.isSentEmpty = true
        return encoder.nested(value, at: key).container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer(forKey key: Key) -> any UnkeyedEncodingContainer {
        encoder.nested(object.container(for: key.stringValue), at: key).unkeyedContainer()
    }

    func superEncoder() -> any Encoder {
        superEncoder(for: SuperKey())
    }

    func superEncoder(forKey key: Key) -> any Encoder {
        superEncoder(for: key)
    }

    private func superEncoder(for key: any CodingKey) -> ValueEncoder {
        encoder.nested(object.container(for: key.stringValue), at: key)
    }
}
