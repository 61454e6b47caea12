/// As much of Structured Field Values (RFC 9651) as uploads need: integers and booleans are read, everything else is
/// checked and passed over.
enum StructuredField: Equatable {
    case integer(Int64)
    case boolean(Bool)
    /// A value of another type.
    case other

    /// No field of an upload comes near it; what is longer is not looked at.
    private static let maximumBytes = 4 << 10

    /// A field that is one item (§4.2.3), without its parameters.
    static func item(_ text: String) -> StructuredField? {
        read(text) { reader throws(StructuredFieldReader.Malformed) in try reader.item() }
    }

    /// A field that is a dictionary (§4.2.2): of a key that comes twice the last value counts.
    static func dictionary(_ text: String) -> [String: StructuredField]? {
        read(text) { reader throws(StructuredFieldReader.Malformed) in try reader.dictionary() }
    }

    private static func read<Value>(
        _ text: String, _ body: (inout StructuredFieldReader) throws(StructuredFieldReader.Malformed) -> Value
    ) -> Value? {
        guard text.utf8.count <= maximumBytes else { return nil }
        var reader = StructuredFieldReader(text)
        reader.skipSpaces()
        guard let value = try? body(&reader) else { return nil }
        reader.skipSpaces()
        return reader.isAtEnd ? value : nil
    }

    static func text(_ number: Int64) -> String { String(number) }
    static func text(_ truth: Bool) -> String { truth ? "?1" : "?0" }
}
