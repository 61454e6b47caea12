package import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A key by which a server can tell that several requests are the same upload
/// (draft-ietf-httpapi-idempotency-key-header).
struct IdempotencyKey: Sendable {
    /// A string of a structured field (RFC 9651 §3.3.3), in quotes.
    private let fieldValue: String

    init(_ id: UUID = UUID()) {
        fieldValue = "\"\(id.uuidString)\""
    }

    /// Adds it to the header fields of a request, unless they have one.
    func add(to fields: inout HTTPFields) {
        if fields.idempotencyKey == nil { fields.idempotencyKey = fieldValue }
    }
}

extension HTTPFields {
    /// The value of `Idempotency-Key`.
    package var idempotencyKey: String? {
        get { HTTPField.Name("Idempotency-Key").flatMap { self[$0] } }
        set {
            if let name = HTTPField.Name("Idempotency-Key") { self[name] = newValue }
        }
    }
}
