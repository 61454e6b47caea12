import HTTPTypes
import PostcardStore
import PostcardWire

extension UploadKey {
    /// The idempotency key of a request; `nil` if the request has no key.
    init?(of request: IncomingRequest, scope: (HTTPFields) -> String) throws(UploadProblem) {
        let values = request.headers[values: .uploadKey]
        guard let value = values.first else { return nil }
        guard values.count == 1, let text = Self.text(of: value) else { throw .malformedKey }
        self.init(text, scope: scope(request.headers))
    }

    /// Parses an `Idempotency-Key`: a quoted string, as its draft requires (RFC 9651 §3.3.3), or an unquoted text.
    static func text(of value: String) -> String? {
        var text = value
        if value.utf8.first == UInt8(ascii: "\"") {
            guard case .string(let content) = StructuredField.item(value) else { return nil }
            text = content
        }
        guard (1...maximumBytes).contains(text.utf8.count), text.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F }) else {
            return nil
        }
        return text
    }

    private static let maximumBytes = 255
}
