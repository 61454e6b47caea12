/// A value's encoded content, before its fields are named: the names of a list's elements depend on whether all of them
/// are texts.
final class EncodedValue {
    private(set) var content = Content.nothing

    /// Whether the value's name is sent although it has no content, as for an enum case without associated values.
    var isSentEmpty = false

    enum Content {
        case nothing
        case text(String)
        case file(FormFile)
        case object(EncodedObject)
        case list(EncodedList)
        /// Two things at once.
        case contradiction
    }

    /// Sets the value to a text or a file, if it is not something else already.
    func set(_ content: Content) {
        if case .nothing = self.content {
            self.content = content
        } else {
            self.content = .contradiction
        }
    }

    /// Makes the value an object, or returns its object.
    func object() -> EncodedObject {
        if case .object(let object) = content { return object }
        let object = EncodedObject()
        set(.object(object))
        return object
    }

    /// Makes the value a list, or returns its list.
    func list() -> EncodedList {
        if case .list(let list) = content { return list }
        let list = EncodedList()
        set(.list(list))
        return list
    }
}

/// Values with keys, in the order in which the keys were first used.
final class EncodedObject {
    private(set) var keys: [String] = []
    private(set) var values: [String: EncodedValue] = [:]

    /// A new value for a key; one that was there before is forgotten.
    func value(for key: String) -> EncodedValue {
        let value = EncodedValue()
        if values.updateValue(value, forKey: key) == nil { keys.append(key) }
        return value
    }

    /// The value for a key, or a new one: a container may be requested twice.
    func container(for key: String) -> EncodedValue {
        values[key] ?? value(for: key)
    }

    func removeValue(for key: String) {
        if values.removeValue(forKey: key) != nil { keys.removeAll { $0 == key } }
    }
}

/// Values in a row.
final class EncodedList {
    private(set) var elements: [EncodedValue] = []

    func append() -> EncodedValue {
        let value = EncodedValue()
        elements.append(value)
        return value
    }
}
