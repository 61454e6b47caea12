import HTTPTypes
import PostcardFoundation

/// A problem reported by a server, as RFC 9457 specifies: the JSON of an `application/problem+json`.
///
/// ```swift
/// if let problem = error.problem { print(problem.title ?? "", problem["limit"]?.text ?? "") }
/// ```
///
/// A member whose value is not of the type that the RFC requires is ignored (RFC 9457 §3.1).
public struct ProblemDetails: Sendable, Hashable {
    /// A URI for the kind of problem; `about:blank` if the status says it all.
    public let type: String

    /// The kind of problem, in a few words.
    public let title: String?

    /// The status, as set by the server that found the problem.
    public let status: Int?

    /// What is wrong this time, and what to do.
    public let detail: String?

    /// A URI for this occurrence of the problem.
    public let instance: String?

    /// All other members.
    public let extensions: [String: JSONValue]

    /// One of the other members, such as the `code` of Postcard's own receiver.
    public subscript(name: String) -> JSONValue? { extensions[name] }

    /// A larger one is not meant for people.
    static let maximumBytes = 1 << 20

    /// Reads the JSON of a problem.
    ///
    /// - Returns: `nil` if it is not a JSON object.
    init?(_ json: Data) {
        guard json.count <= Self.maximumBytes, let read = try? JSON(json, maximumDepth: JSONValue.maximumDepth),
            case .object(var members) = JSONValue(read)
        else { return nil }
        type = members.removeValue(forKey: "type")?.text ?? "about:blank"
        title = members.removeValue(forKey: "title")?.text
        status = members.removeValue(forKey: "status")?.number.flatMap { Int(exactly: $0) }
        detail = members.removeValue(forKey: "detail")?.text
        instance = members.removeValue(forKey: "instance")?.text
        extensions = members
    }
}

extension UploadResponse {
    /// The problem that the body describes, if its type is `application/problem+json`.
    public var problem: ProblemDetails? {
        let type = headerFields[.contentType]?.prefix { $0 != ";" }.lowercased()
        guard type?.filter({ !$0.isWhitespace }) == "application/problem+json" else { return nil }
        return ProblemDetails(body)
    }
}
