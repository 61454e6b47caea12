public import PostcardFoundation

/// An error of this package: what happened, where, and what to do.
///
/// An error whose name ends in `Error` says why a call failed. An error whose name ends in `Problem` says why a form or
/// a request is refused, and a receiver also responds with it (RFC 9457).
///
/// ```swift
/// } catch let error as any PostcardError {
///     log.error("\(error)")
///     show(error.localizedDescription, error.recoverySuggestion)
/// }
/// ```
public protocol PostcardError: LocalizedError, Sendable, CustomStringConvertible {
    /// What happened, and where, in a sentence.
    var message: String { get }

    /// What to do, in a sentence or two; `nil` if nothing helps.
    var advice: String? { get }
}

extension PostcardError {
    public var advice: String? { nil }

    /// The message and the advice.
    public var description: String { advised(message) }

    package func advised(_ text: String) -> String {
        guard let advice else { return text }
        return text.hasSuffix(".") || text.hasSuffix(")") ? "\(text) \(advice)" : "\(text). \(advice)"
    }

    /// The message. This is what `localizedDescription` returns.
    public var errorDescription: String? { message }

    /// The advice.
    public var recoverySuggestion: String? { advice }
}

/// The kind of an error, as a word for logs and for programs that read them. The words are stable across versions.
///
/// A code may be one that this version does not know, because a later version has made it.
public protocol PostcardErrorCode: RawRepresentable<String>, Sendable, Hashable, CustomStringConvertible {
    /// Makes a code from its raw value, even if this version does not know it.
    init(rawValue: String)
}

extension PostcardErrorCode {
    public var description: String { rawValue }
}
