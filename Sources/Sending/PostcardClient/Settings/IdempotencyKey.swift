package import HTTPTypes
import PostcardFoundation

/// A key by which a server can recognize several requests as the same upload
/// (draft-ietf-httpapi-idempotency-key-header).
struct IdempotencyKey: Sendable {
    /// The key as a string of a structured field (RFC 9651 §3.3.3), in quotes.
    private let fieldValue: String

    init(_ id: UUID = UUID()) {
        fieldValue = "\"\(id.uuidString)\""
    }

    /// Adds the key to the header fields of a request, unless they already have one.
    func add(to fields: inout HTTPFields) {
        if fields.idempotencyKey == nil { fields.idempotencyKey = fieldValue }
    }
}

extension HTTPFields {
    /// The value of the `Idempotency-Key` header field.
    package var idempotencyKey: String? {
        get { HTTPField.Name("Idempotency-Key").flatMap { self[$0] } }
        set {
            if let name = HTTPField.Name("Idempotency-Key") { self[name] = newValue }
        }
    }
}
