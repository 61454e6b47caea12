import Crypto
import PostcardFoundation

/// A secret of a webhook, by which its endpoint knows that a message is from this receiver, as Standard Webhooks
/// describes: `whsec_` and the base64 of 24 to 64 random bytes.
package struct WebhookSecret: Sendable {
    private let key: SymmetricKey

    private static let prefix = "whsec_"
    private static let lengths = 24...64

    /// Reads a secret.
    ///
    /// - Returns: `nil` if the text is not one.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let bytes = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            Self.lengths.contains(bytes.count)
        else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// The signature of a message, as it is written in `webhook-signature`.
    func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
        var code = HMAC<SHA256>(key: key)
        code.update(data: Array("\(id).\(timestamp).".utf8))
        code.update(data: body)
        return "v1," + Data(code.finalize()).base64EncodedString()
    }
}
