/// Encodes values in a row.
struct UnkeyedValueEncoder: UnkeyedEncodingContainer {
    let list: EncodedList
    let encoder: ValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { list.elements.count }

    /// The place of `nil` is kept, so that writing the list can say where it stands.
    func encodeNil() {
        _ = next()
    }

    func encode(_ value: Int128) {
        next().encode(value)
    }

    func encode(_ value: UInt128) {
        next().encode(value)
    }

    func encode<Value: Encodable>(_ value: Value) throws {
        try next().encode(value)
    }

    func nestedContainer<NestedKey: CodingKey>(
        keyedBy keyType: NestedKey.Type
    ) -> KeyedEncodingContainer<NestedKey> {
        next().container(keyedBy: keyType)
    }

    func nestedUnkeyedContainer() -> any UnkeyedEncodingContainer {
        next().unkeyedContainer()
    }

    func superEncoder() -> any Encoder {
        next()
    }

    /// The encoder of the next element. One that turns out to be an object with nothing in it is sent all the same,
    /// or those behind it would take its place.
    private func next() -> ValueEncoder {
        let key = ListKey(list.elements.count)
        let value = list.append()
        value.isSentEmpty = true
        return encoder.nested(value, at: key)
    }
}
