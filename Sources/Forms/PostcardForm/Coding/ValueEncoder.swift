import PostcardFoundation

/// Encodes a value at any depth of the form.
struct ValueEncoder: Encoder, SingleValueEncodingContainer {
    let value: EncodedValue
    let options: FormEncoder
    let codingPath: [any CodingKey]

    var userInfo: [CodingUserInfoKey: Any] { options.userInfo }

    func container<Key: CodingKey>(keyedBy type: Key.Type) -> KeyedEncodingContainer<Key> {
        KeyedEncodingContainer(KeyedValueEncoder(object: value.object(), encoder: self))
    }

    func unkeyedContainer() -> any UnkeyedEncodingContainer {
        UnkeyedValueEncoder(list: value.list(), encoder: self)
    }

    func singleValueContainer() -> any SingleValueEncodingContainer { self }

    func nested(_ value: EncodedValue, at key: any CodingKey) -> ValueEncoder {
        ValueEncoder(value: value, options: options, codingPath: codingPath + [key])
    }

    /// The keys of the value's field in the form.
    var path: [String] { codingPath.map(\.stringValue) }

    // MARK: Single values

    func encodeNil() {}

    func encode(_ value: Bool) {
        switch (options.boolStyle, value) {
        case (.trueFalse, true): set("true")
        case (.trueFalse, false): set("false")
        case (.oneZero, true): set("1")
        case (.oneZero, false): set("0")
        case (.checkbox, true): set("on")
        case (.checkbox, false): break
        }
    }

    func encode(_ value: String) { set(value) }

    func encode(_ value: Double) throws { try encode(floatingPoint: value) }
    func encode(_ value: Float) throws { try encode(floatingPoint: value) }

    func encode(_ value: Int) { set(String(value)) }
    func encode(_ value: Int8) { set(String(value)) }
    func encode(_ value: Int16) { set(String(value)) }
    func encode(_ value: Int32) { set(String(value)) }
    func encode(_ value: Int64) { set(String(value)) }
    func encode(_ value: Int128) { set(String(value)) }
    func encode(_ value: UInt) { set(String(value)) }
    func encode(_ value: UInt8) { set(String(value)) }
    func encode(_ value: UInt16) { set(String(value)) }
    func encode(_ value: UInt32) { set(String(value)) }
    func encode(_ value: UInt64) { set(String(value)) }
    func encode(_ value: UInt128) { set(String(value)) }

    func encode<Value: Encodable>(_ value: Value) throws {
        // A nested list adds an element to the path, but no key to the field's name.
        guard codingPath.count - 1 <= options.maximumDepth else {
            throw FormEncodingError.tooDeep(at: path, maximum: options.maximumDepth)
        }
        switch value {
        case let date as Date: try encode(date)
        case let data as Data: encode(data)
        case let url as URL: try encode(url)
        case let identifier as UUID: set(identifier.uuidString)
        case let number as Decimal: try encode(number)
        case let file as FormFile: encode(file)
        default: try value.encode(to: self)
        }
    }

    func encode(_ file: FormFile) {
        value.set(.file(file))
    }

    private func set(_ text: String) {
        value.set(.text(text))
    }

    /// Encodes a floating-point number as its description: the shortest text that is read as the same number.
    private func encode(floatingPoint number: some BinaryFloatingPoint & CustomStringConvertible) throws {
        guard number.isFinite else {
            throw FormEncodingError.invalidValue(
                number.description, at: path, "is not a finite number, and few receivers read another.")
        }
        set(number.description)
    }

    private func encode(_ number: Decimal) throws {
        guard !number.isNaN else {
            throw FormEncodingError.invalidValue(number.description, at: path, "is not a number.")
        }
        set(number.description)
    }

    private func encode(_ date: Date) throws {
        let text: String?
        do {
            text = try options.dateStyle.write(date)
        } catch {
            throw FormEncodingError.invalidValue(
                date.description, at: path, "cannot be written as a date.", underlyingError: error)
        }
        guard let text else {
            throw FormEncodingError.invalidValue(
                date.description, at: path, "is a date that the date style cannot write.")
        }
        set(text)
    }

    private func encode(_ data: Data) {
        switch options.dataStyle {
        case .file: encode(FormFile(data, filename: "blob"))
        case .base64: set(data.base64EncodedString())
        }
    }

    private func encode(_ url: URL) throws {
        guard !url.isFileURL else { throw FormEncodingError.fileURL(url.absoluteString, at: path) }
        set(url.absoluteString)
    }
}

struct KeyedValueEncoder<Key: CodingKey>: KeyedEncodingContainerProtocol {
    let object: EncodedObject
    let encoder: ValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }

    /// Removes the value of the key, because nothing is sent for `nil`.
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

struct UnkeyedValueEncoder: UnkeyedEncodingContainer {
    let list: EncodedList
    let encoder: ValueEncoder

    var codingPath: [any CodingKey] { encoder.codingPath }
    var count: Int { list.elements.count }

    /// Appends `nil`, so that an error can report its index.
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

    /// The encoder of the next element. Even an empty object is sent, so that every element keeps its index.
    private func next() -> ValueEncoder {
        let key = ListKey(list.elements.count)
        let value = list.append()
        value.isSentEmpty = true
        return encoder.nested(value, at: key)
    }
}

/// The encoded content of a value. Fields are named later, because names in a list depend on all its elements.
final class EncodedValue {
    private(set) var content = Content.nothing

    /// Whether a field is sent even without content, as for an enumeration case without values.
    var isSentEmpty = false

    enum Content {
        case nothing
        case text(String)
        case file(FormFile)
        case object(EncodedObject)
        case list(EncodedList)
        /// Content of a value that was encoded in two ways at once.
        case contradiction
    }

    /// Sets the value to a text or file. If the value already has content, it becomes a contradiction.
    func set(_ content: Content) {
        self.content = if case .nothing = self.content { content } else { .contradiction }
    }

    /// The value as an object. A value without content becomes an object.
    func object() -> EncodedObject {
        if case .object(let object) = content { return object }
        let object = EncodedObject()
        set(.object(object))
        return object
    }

    /// The value as a list. A value without content becomes a list.
    func list() -> EncodedList {
        if case .list(let list) = content { return list }
        let list = EncodedList()
        set(.list(list))
        return list
    }
}

/// The values of an object, in the order in which their keys were first used.
final class EncodedObject {
    private(set) var keys: [String] = []
    private(set) var values: [String: EncodedValue] = [:]

    /// A new value for a key, which replaces an existing value.
    func value(for key: String) -> EncodedValue {
        let value = EncodedValue()
        if values.updateValue(value, forKey: key) == nil { keys.append(key) }
        return value
    }

    /// The existing or a new value for a key: a type may request the container of a key twice.
    func container(for key: String) -> EncodedValue {
        values[key] ?? value(for: key)
    }

    func removeValue(for key: String) {
        if values.removeValue(forKey: key) != nil { keys.removeAll { $0 == key } }
    }
}

final class EncodedList {
    private(set) var elements: [EncodedValue] = []

    func append() -> EncodedValue {
        let value = EncodedValue()
        elements.append(value)
        return value
    }
}
