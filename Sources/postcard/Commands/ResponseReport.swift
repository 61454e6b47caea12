import Foundation
import HTTPTypes
import PostcardClient

/// What `send --json` prints.
struct ResponseReport {
    private let object: [String: Any]

    init(_ response: UploadResponse, attempts: Int, seconds: Double) {
        var headers: [String: String] = [:]
        for field in response.headerFields {
            // Fields of one name mean the same as one field with their values in a list (RFC 9110 §5.3); Set-Cookie
            // alone does not, and has no place in the answer to a form that a script reads.
            headers[field.name.canonicalName] =
                headers[field.name.canonicalName].map { "\($0), \(field.value)" }
                ?? field.value
        }
        object = [
            "status": response.status.code, "headers": headers, "body": Self.body(of: response),
            "bytesSent": response.bytesSent, "seconds": (seconds * 1000).rounded() / 1000, "attempts": attempts,
        ]
    }

    func json() throws -> Data {
        try JSONSerialization.data(withJSONObject: object, options: [.sortedKeys, .withoutEscapingSlashes])
    }

    /// The parsed JSON where the response says that it is JSON and it is, else the text.
    private static func body(of response: UploadResponse) -> Any {
        let type = response.headerFields[.contentType]?.prefix { $0 != ";" && $0 != " " }.lowercased() ?? ""
        guard type == "application/json" || type.hasSuffix("+json"),
            let value = try? JSONSerialization.jsonObject(with: response.body, options: .fragmentsAllowed)
        else { return response.text }
        return value
    }
}
