import Crypto
import PostcardForm
import PostcardFoundation

/// Identifies an upload over several requests, so that a retry never makes a second record. The key is made from the
/// client's `Idempotency-Key` (draft-ietf-httpapi-idempotency-key-header), or else from the identifier of an unfinished
/// upload.
public struct UploadKey: Sendable, Hashable {
    /// The SHA-256 digest of the scope and the client's text, in lower-case hexadecimal. Stores only keep this digest.
    public let digest: String

    /// Makes a key from a digest that a store has kept.
    public init(digest: String) {
        self.digest = digest
    }

    /// Whether a text looks like a digest: 64 hexadecimal digits.
    static func isDigest(_ text: some StringProtocol) -> Bool {
        text.utf8.count == 64 && text.utf8.allSatisfy { $0.hexadecimalValue != nil && $0 == $0.asciiLowercased }
    }

    /// Makes a key from the text that a client sends.
    ///
    /// - Parameters:
    ///   - text: The client's text.
    ///   - scope: The owner of the text, such as a user. The same text in another scope makes another key.
    public init(_ text: String, scope: String) {
        var hash = SHA256()
        // The length separates the scope and the text: `a` and `bc` must differ from `ab` and `c`.
        hash.update(data: Array("\(scope.utf8.count):\(scope)\(text)".utf8))
        digest = hash.finalize().hexadecimal
    }
}
