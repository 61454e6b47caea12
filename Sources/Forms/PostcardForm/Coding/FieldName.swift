/// Reads and writes field names, which describe a place in a value: `pet[name]`, `tags[]`, `pets[0][name]`.
enum FieldName {
    /// Splits a name into its keys, the outermost first; `nil` if it has more than the maximum. `[]` is an empty key.
    ///
    /// A name is a key followed by keys in square brackets. Receivers disagree about other uses of brackets, such as
    /// `a[b` or `a[b]c`. Here such a name is a single key.
    static func keys(of name: String, maximum: Int) -> [String]? {
        let name = name.utf8
        guard let first = name.firstIndex(of: .openBracket), first > name.startIndex, name.last == .closeBracket,
            isBracketed(name[first...])
        else { return maximum > 0 ? [String(Substring(name[...]))] : nil }
        let depth = name.count { $0 == .openBracket } + 1
        guard depth <= maximum else { return nil }
        let inner = name[first...].dropFirst().split(separator: .openBracket, omittingEmptySubsequences: false)
        return [String(Substring(name[..<first]))] + inner.map { String(Substring($0.dropLast())) }
    }

    /// Whether a text consists only of pairs of brackets that are not nested.
    private static func isBracketed(_ text: Substring.UTF8View) -> Bool {
        var isOpen = false
        for byte in text {
            switch byte {
            case .openBracket where isOpen, .closeBracket where !isOpen: return false
            case .openBracket: isOpen = true
            case .closeBracket: isOpen = false
            default: if !isOpen { return false }
            }
        }
        return !isOpen
    }

    static func name(of keys: some Sequence<String>) -> String {
        keys.reduce(into: "") { name, key in name = nested(key, in: name) }
    }

    /// The name of a key inside a field. An empty field name stands for the whole form.
    static func nested(_ key: String, in name: String) -> String {
        name.isEmpty ? key : "\(name)[\(key)]"
    }

    /// Whether a name with this key can be split into the same key again.
    static func isWritable(_ key: String) -> Bool {
        !key.isEmpty && !key.utf8.contains { $0 == .openBracket || $0 == .closeBracket }
    }

    /// The index that a key stands for; `nil` for other keys. A key with a leading zero is no index, so each index has
    /// only one key.
    static func index(_ key: String) -> Int? {
        guard key.utf8.allSatisfy(\.isDigit), key == "0" || key.utf8.first != UInt8(ascii: "0") else { return nil }
        return Int(key)
    }
}

extension UInt8 {
    fileprivate static let openBracket = UInt8(ascii: "[")
    fileprivate static let closeBracket = UInt8(ascii: "]")
}

/// An index in a coding path, with its notation in the field's name.
struct ListKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(_ index: Int, writtenAs key: String? = nil) {
        stringValue = key ?? String(index)
        intValue = index
    }

    init?(intValue: Int) {
        self.init(intValue)
    }

    init?(stringValue: String) {
        nil
    }
}

/// The key under which a class encodes its superclass.
struct SuperKey: CodingKey {
    let stringValue = "super"
    var intValue: Int? { nil }

    init() {}

    init?(intValue: Int) {
        nil
    }

    init?(stringValue: String) {
        guard stringValue == "super" else { return nil }
    }
}
