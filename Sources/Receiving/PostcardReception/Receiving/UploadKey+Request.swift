import HTTPTypes
import PostcardStore

extension UploadKey {
    /// The key of a request; `nil` if it has none.
    init?(of request: IncomingRequest, scope: (HTTPFields) -> String) throws(UploadProblem) {
        guard let name = HTTPField.Name.idempotencyKey else { return nil }
        let values = request.headers[values: name]
        guard let value = values.first else { return nil }
        guard values.count == 1, let text = Self.text(of: value) else { throw .malformedKey }
        self.init(text, scope: scope(request.headers))
    }

    /// The draft wants a quoted string (RFC 8941 §3.3.3). Many clients send the text without quotes, which is accepted.
    static func text(of value: String) -> String? {
        let text = value.hasPrefix("\"") ? unquoted(value) : value
        guard let text, (1...maximumBytes).contains(text.utf8.count),
            text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F })
        else { return nil }
        return text
    }

    private static let maximumBytes = 255

    private static func unquoted(_ value: String) -> String? {
        guard value.utf8.count >= 2, value.hasSuffix("\"") else { return nil }
        var text = ""
        var isEscaped = false
        for character in value.unicodeScalars.dropFirst().dropLast() {
            switch character {
            case "\\" where !isEscaped: isEscaped = true
            case "\"" where !isEscaped: return nil
            case "\"", "\\":
                text.unicodeScalars.append(character)
                isEscaped = false
            default:
                guard !isEscaped else { return nil }
                text.unicodeScalars.append(character)
            }
        }
        return isEscaped ? nil : text
    }
}

extension HTTPField.Name {
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")
}
