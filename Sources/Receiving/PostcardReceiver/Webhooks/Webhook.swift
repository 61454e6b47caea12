import Crypto
import NIOCore
import PostcardForm
import PostcardFoundation
import PostcardServer

/// An endpoint that is notified of each record, with the closure that sends messages to it.
package struct Webhook: Sendable {
    package struct Message: Sendable {
        /// The names and values of the message's header fields.
        package let headers: [(String, String)]
        package let body: [UInt8]
    }

    package let url: String
    /// The secrets that sign messages. An endpoint accepts a signature by any of them, so that secrets can be replaced.
    package let secrets: [WebhookSecret]
    /// Posts a message within a minute, without following redirects, and returns the status of the response.
    package let post: @Sendable (Message) async throws -> Int

    package init(
        url: String, secrets: [WebhookSecret], post: @escaping @Sendable (Message) async throws -> Int
    ) {
        self.url = url
        self.secrets = secrets
        self.post = post
    }

    /// The scheme, host and port of the URL. The path and the query are left out, because they may be secret.
    var shownURL: String {
        guard let scheme = url.firstRange(of: "://") else { return "" }
        let authority = url[scheme.upperBound...].prefix { !"/?#\\".contains($0) }
        let host = authority.lastIndex(of: "@").map { authority[authority.index(after: $0)...] } ?? authority
        return String(url[..<scheme.upperBound] + host)
    }

    /// The maximum size of a record in a message, in bytes. For a larger record, the message only contains its URL.
    static let maximumRecordBytes: Int64 = 256 << 10

    /// Makes the message about a record. `record` is the JSON of the record; `nil` if it is too large for a message.
    /// `time` is the time of the attempt, which is part of the signature.
    func message(about id: UploadID, _ record: [UInt8]?, at time: Date) -> Message {
        let received = id.time.formatted(.iso8601)
        var body = Array(#"{"type":"upload.received","timestamp":"\#(received)","data":"#.utf8)
        let reference = #"{"id":"\#(id)","received":"\#(received)","url":"\#(UploadRecord.url(of: id))"}"#
        // Control and direction characters are escaped, because endpoints forward messages to chats and terminals.
        body += record.map { Array(DisplayText.escapingSteering(inJSON: $0).utf8) } ?? Array(reference.utf8)
        body += Array("}".utf8)
        // All attempts use the same identifier, so that the endpoint can recognize a repeated message.
        let message = "msg_\(id)"
        let timestamp = Int64(time.timeIntervalSince1970)
        let signatures = secrets.map { $0.signature(id: message, timestamp: timestamp, body: body) }
        return Message(
            headers: [
                ("content-type", "application/json"), ("webhook-id", message), ("webhook-timestamp", "\(timestamp)"),
                ("webhook-signature", signatures.joined(separator: " ")),
            ], body: body)
    }
}

/// A secret of a webhook, with which an endpoint verifies that a message is from this receiver (Standard Webhooks). The
/// text is `whsec_` and the base64 of 24 to 64 random bytes.
package struct WebhookSecret: Sendable {
    private let key: SymmetricKey

    private static let prefix = "whsec_"
    private static let lengths = 24...64

    /// Reads a secret. Returns `nil` if the text is not a valid secret.
    package init?(_ text: String) {
        guard text.hasPrefix(Self.prefix), let bytes = Data(base64Encoded: String(text.dropFirst(Self.prefix.count))),
            Self.lengths.contains(bytes.count)
        else { return nil }
        key = SymmetricKey(data: bytes)
    }

    /// The signature of a message, as written in `webhook-signature`.
    func signature(id: String, timestamp: Int64, body: [UInt8]) -> String {
        var code = HMAC<SHA256>(key: key)
        code.update(data: Array("\(id).\(timestamp).".utf8))
        code.update(data: body)
        return "v1," + Data(code.finalize()).base64EncodedString()
    }
}
