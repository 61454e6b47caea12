/// Whether an upload goes where the server points.
///
/// - A 307 or 308 has the form sent again to the other place; one that holds a stream which can be read only once is
///   not.
/// - A 303 has the other place asked by GET, without the form, which the server has by then (RFC 9110 §15.4.4).
/// - A 301 or 302 ends the upload as refused: RFC 9110 §15.4.2 lets clients turn a POST into a GET there, and a form
///   would be gone without a word.
///
/// To another origin no header fields go along but those that say what is sent and what is understood, and the
/// `Idempotency-Key`; interceptors are not asked about it. From `https` nothing goes on to `http`.
public enum RedirectPolicy: Sendable, Hashable {
    /// Nothing is followed: a redirect is a refusal like any other.
    case never
    /// As many are followed, one after the other.
    case follow(maximum: Int)
}
