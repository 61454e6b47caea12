/// Decodes values in a row.
struct UnkeyedValueDecoder: UnkeyedDecodingContainer {
    let decoder: ValueDecoder
    let elements: [FieldTree.Element]
    private(set) var currentIndex = 0

    init(decoder: ValueDecoder, elements: [FieldTree.Element]) {
        self.decoder = decoder
        self.elements = elements
    }

    var codingPath: [any CodingKey] { decoder.codingPath }
    var count: Int? { elements.count }
    var isAtEnd: Bool { currentIndex == elements.count }

    /// Goes on to the next element only where this one is `nil`.
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

    /// Reads an element, and goes on to the next one where that worked.
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
