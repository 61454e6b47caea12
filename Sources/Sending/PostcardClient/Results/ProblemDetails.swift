public import HTTPTypes
import PostcardFoundation

/// A problem reported by a server as `application/problem+json` (RFC 9457).
///
/// ```swift
/// if let problem = error.problem { print(problem.title ?? "", problem["limit"]?.text ?? "") }
/// ```
///
/// Members with values of other types than the RFC requires are ignored (RFC 9457 §3.1).
public struct ProblemDetails: Sendable, Hashable {
    /// A URI for the kind of problem; `about:blank` if the status already says what the problem is.
    public let type: String

    /// The kind of problem, in a few words.
    public let title: String?

    /// The HTTP status, as set by the server that found the problem.
    public let status: HTTPResponse.Status?

    /// The description of this occurrence of the problem, and what to do.
    public let detail: String?

    /// A URI for this occurrence of the problem.
    public let instance: String?

    /// All other members of the JSON object.
    public let extensions: [String: JSONValue]

    /// The value of another member of the JSON object, such as the `code` of Postcard's own server.
    public subscript(name: String) -> JSONValue? { extensions[name] }

    /// The maximum size of the JSON in bytes.
    static let maximumBytes = 1 << 20

    /// Reads the JSON of a problem.
    ///
    /// - Returns: `nil` if the text is not a JSON object.
    init?(_ json: Data) {
        guard json.count <= Self.maximumBytes, let read = try? JSON(json, maximumDepth: JSONValue.maximumDepth),
            case .object(var members) = JSONValue(read)
        else { return nil }
        type = members.removeValue(forKey: "type")?.text ?? "about:blank"
        title = members.removeValue(forKey: "title")?.text
        status = members.removeValue(forKey: "status")?.number.flatMap { Int(exactly: $0) }
            .flatMap { (0...999).contains($0) ? HTTPResponse.Status(code: $0) : nil }
        detail = members.removeValue(forKey: "detail")?.text
        instance = members.removeValue(forKey: "instance")?.text
        extensions = members
    }
}

extension UploadResponse {
    /// The problem in the body, if its type is `application/problem+json`.
    public var problem: ProblemDetails? {
        let type = headerFields[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type?.filter({ !$0.isWhitespace }) == "application/problem+json" else { return nil }
        return ProblemDetails(body)
    }
}

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
    /// An array of values, in order.
    case array([JSONValue])
    /// An object, which has values by their names.
    case object([String: JSONValue])

    /// The maximum number of nested values. More of them could overflow a thread's stack.
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

    /// Converts parsed JSON. If an object has several members with one name, the last counts.
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

    /// The string; `nil` if this value is not a string.
    public var text: String? {
        if case .string(let text) = self { text } else { nil }
    }

    /// The number; `nil` if this value is not a number.
    public var number: Double? {
        if case .number(let number) = self { number } else { nil }
    }

    /// The value of an object's member; `nil` if this value is not an object or has no member with the name.
    public subscript(name: String) -> JSONValue? {
        if case .object(let members) = self { members[name] } else { nil }
    }
}
