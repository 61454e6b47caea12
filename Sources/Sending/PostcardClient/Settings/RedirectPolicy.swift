/// Whether an upload follows redirects.
///
/// - A 307 or 308 sends the form again to the other place, unless the form has a stream that can be read only once.
/// - A 303 requests the other place with GET, without the form, which the server has by then (RFC 9110 §15.4.4).
/// - A 301 or 302 fails the upload as refused: RFC 9110 §15.4.2 lets clients turn a POST into a GET, and the form would
///   be lost silently.
///
/// Another origin gets only the header fields that describe what is sent and what is accepted, and the
/// `Idempotency-Key`; interceptors are not called for it. A redirect from `https` to `http` is not followed.
public enum RedirectPolicy: Sendable, Hashable {
    /// No redirect is followed: each is a refusal. After a 303 the server has the form nevertheless.
    case never
    /// Up to this many redirects are followed in a row.
    case follow(maximum: Int)
}
