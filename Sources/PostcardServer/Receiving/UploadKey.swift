import Crypto
import HTTPTypes
import Hummingbird
import PostcardForm

/// Identifies an upload over several requests, so that a retry never makes a second record. It comes from the client's
/// `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header) or, without one, from an unfinished upload.
public struct UploadKey: Sendable, Hashable {
    /// The SHA-256 of the scope and the client's text, in lower-case hexadecimal. A store keeps this.
    public let digest: String

    /// Reads a key that a store has kept.
    public init(digest: String) {
        self.digest = digest
    }

    /// Whether a text has the form of a digest: 64 hexadecimal digits.
    static func isDigest(_ text: some StringProtocol) -> Bool {
        text.utf8.count == 64
            && text.utf8.allSatisfy {
                (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0)
                    || (UInt8(ascii: "a")...UInt8(ascii: "f")).contains($0)
            }
    }

    /// Makes a key from the text that a client sends.
    ///
    /// - Parameters:
    ///   - text: The text.
    ///   - scope: Whose key it is. The same text in another scope is another key.
    public init(_ text: String, scope: String) {
        var hash = SHA256()
        // The length separates the two: `a` and `bc` must differ from `ab` and `c`.
        hash.update(data: Array("\(scope.utf8.count):\(scope)\(text)".utf8))
        digest = hash.finalize().hexadecimal
    }
}

extension UploadKey {
    /// The key of a request; `nil` if it has none.
    init?(of request: Request, scope: (HTTPFields) -> String) throws(UploadProblem) {
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
