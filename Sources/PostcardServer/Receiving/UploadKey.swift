import Crypto
import HTTPTypes
import Hummingbird
import PostcardForm

/// By which a sender says that several requests are one upload, so that a retry never makes a second record
/// (draft-ietf-httpapi-idempotency-key-header).
public struct UploadKey: Sendable, Hashable {
    /// The key within its scope: a SHA-256 in lower-case hexadecimal, whatever the sender's key looks like. This is
    /// what a store keeps.
    public let digest: String

    /// Reads a key that a store has kept.
    public init(digest: String) {
        self.digest = digest
    }

    /// Takes a sender's key.
    ///
    /// - Parameters:
    ///   - text: The key as its sender chose it.
    ///   - scope: Whose key it is: the same text in another scope is another key.
    public init(_ text: String, scope: String) {
        var hash = SHA256()
        // The length keeps a scope and a key apart that would read the same in one piece.
        hash.update(data: Array("\(scope.utf8.count):\(scope)\(text)".utf8))
        digest = hash.finalize().hexadecimal
    }
}

extension UploadKey {
    /// The key that a request is sent under; `nil` where it has none.
    init?(of request: Request, scope: (HTTPFields) -> String) throws(UploadProblem) {
        guard let name = HTTPField.Name.idempotencyKey else { return nil }
        let values = request.headers[values: name]
        guard let value = values.first else { return nil }
        guard values.count == 1, let text = Self.text(of: value) else { throw .malformedKey }
        self.init(text, scope: scope(request.headers))
    }

    /// The draft has a string of RFC 8941 §3.3.3, in quotes; many clients send the key bare, which names the same.
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
