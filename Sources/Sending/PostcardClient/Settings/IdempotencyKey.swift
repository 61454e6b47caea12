public import HTTPTypes
import PostcardFoundation
import PostcardWire

extension HTTPField.Name {
    /// The name of the field by which a server recognizes several requests as the same upload
    /// (draft-ietf-httpapi-idempotency-key-header).
    ///
    /// ```swift
    /// try await client.upload(form, to: url, headerFields: [.idempotencyKey: "\"order-7\""])
    /// ```
    ///
    /// Without this field, each upload has a random key. A key of your own is kept by all attempts of the upload, so that
    /// the app can send the same form again later. A server refuses another form with that key.
    ///
    /// The value is a string of a structured field, in quotes (RFC 9651 §3.3.3). Postcard's receivers also accept it
    /// without quotes. It is sent unchanged, because some services expect it without quotes.
    public static let idempotencyKey = uploadKey
}

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
        if fields[.idempotencyKey] == nil { fields[.idempotencyKey] = fieldValue }
    }
}
