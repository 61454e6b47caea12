import Crypto
import PostcardForm

/// By which a sender says that several requests are one upload, so that a retry never makes a second record
/// (draft-ietf-httpapi-idempotency-key-header).
public struct IdempotencyKey: Sendable, Hashable {
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
