import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// By which a server can tell that several requests are one (draft-ietf-httpapi-idempotency-key-header).
struct IdempotencyKey: Sendable {
    /// A string of a structured field (RFC 9651 §3.3.3), which stands in quotes.
    private let fieldValue: String

    init(_ id: UUID = UUID()) {
        fieldValue = "\"\(id.uuidString)\""
    }

    /// Puts it among the header fields of a request, unless they have one.
    func add(to fields: inout HTTPFields) {
        guard let name = HTTPField.Name.idempotencyKey, !fields.contains(name) else { return }
        fields[name] = fieldValue
    }
}

extension HTTPField.Name {
    static let idempotencyKey = HTTPField.Name("Idempotency-Key")
}
