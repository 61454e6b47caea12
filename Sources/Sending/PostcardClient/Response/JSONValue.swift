import PostcardFoundation

/// A JSON value of any shape, up to 64 values deep.
public enum JSONValue: Sendable, Hashable, Decodable {
    /// `null`.
    case null
    /// `true` or `false`.
    case bool(Bool)
    /// A number, with the precision of a `Double`.
    case number(Double)
    /// A text.
    case string(String)
    /// Values in an order.
    case array([JSONValue])
    /// Values by their names.
    case object([String: JSONValue])

    /// More would not fit on the stack of a thread.
    static let maximumDepth = 64

    public init(from decoder: any Decoder) throws {
        guard decoder.codingPath.count <= Self.maximumDepth else {
            throw DecodingError.dataCorrupted(
                DecodingError.Context(
                    codingPath: decoder.codingPath,
                    debugDescription: "The values are more than \(Self.maximumDepth) deep."))
        }
        let value = try decoder.singleValueContainer()
        if value.decodeNil() {
            self = .null
        } else if let bool = try? value.decode(Bool.self) {
            self = .bool(bool)
        } else if let number = try? value.decode(Double.self) {
            self = .number(number)
        } else if let string = try? value.decode(String.self) {
            self = .string(string)
        } else if let array = try? value.decode([JSONValue].self) {
            self = .array(array)
        } else {
            self = .object(try value.decode([String: JSONValue].self))
        }
    }

    /// A value that was read. Of several members with one name, the last counts.
    init(_ json: JSON) {
        switch json {
        case .null: self = .null
        case .bool(let bool): self = .bool(bool)
        case .number: self = .number(json.double ?? .nan)
        case .string: self = .string(json.text ?? "")
        case .array(let elements): self = .array(elements.map { JSONValue($0) })
        case .object(let members):
            self = .object(
                Dictionary(members.map { (String(streamSafe: $0.name), JSONValue($0.value)) }) { _, last in last })
        }
    }

    /// The string; `nil` if it is something else.
    public var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number; `nil` if it is something else.
    public var number: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The value of a member; `nil` if it is not an object, or has no such member.
    public subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
}
