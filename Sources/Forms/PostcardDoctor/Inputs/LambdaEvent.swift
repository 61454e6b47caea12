import PostcardForm
import PostcardFoundation

/// The event that AWS Lambda passes to a function for a request to API Gateway (REST or HTTP), a function URL or a load
/// balancer.
struct LambdaEvent {
    private let json: JSON
    private let body: [UInt8]

    /// Parses an event. `nil` if the bytes are not an event with a body.
    init?(_ bytes: [UInt8]) {
        guard let json = try? JSON(bytes), let body = json["body"]?.string else { return nil }
        self.json = json
        self.body = body
    }

    private var isBase64: Bool { json["isBase64Encoded"] == .bool(true) }

    var entry: HTTPArchive.Entry {
        let fields = json["multiValueHeaders"]?.stringMembers ?? []
        let headers = fields.isEmpty ? json["headers"]?.stringMembers ?? [] : fields
        let host = headers.first { $0.name.isEqualIgnoringCase("host") }?.value ?? []
        let query = json["rawQueryString"]?.string ?? []
        let path = json["rawPath"]?.string ?? json["path"]?.string ?? [.slash]
        let address = path + (query.isEmpty ? [] : [UInt8(ascii: "?")] + query)
        return HTTPArchive.Entry(
            request: HTTPArchive.Request(
                method: json["httpMethod"]?.string ?? json["requestContext"]?["http"]?["method"]?.string
                    ?? Array("POST".utf8),
                url: host.isEmpty ? address : Array("https://".utf8) + host + address, headers: headers, bodySize: nil,
                postData: isBase64 ? HTTPArchive.PostData(base64: body) : HTTPArchive.PostData(bytes: body)))
    }

    /// The remark that bytes were lost before the function was called, in a sentence.
    var remark: String? {
        !isBase64 && body.firstRange(of: [0xEF, 0xBF, 0xBD]) != nil
            ? "The event has the body as text, in which bytes that are not UTF-8 were replaced. Add multipart/form-data to "
                + "the binary media types of the API, so that the body arrives in base64."
            : nil
    }
}

extension JSON {
    /// The members that are strings or lists of strings, sorted by name, because servers send them in any order.
    var stringMembers: [HTTPArchive.Header] {
        guard case .object(let members) = self else { return [] }
        return members.sorted { $0.name.lexicographicallyPrecedes($1.name) }.flatMap { member in
            (member.value.elements ?? [member.value]).compactMap { $0.string }.map { (member.name, $0) }
        }
    }
}
