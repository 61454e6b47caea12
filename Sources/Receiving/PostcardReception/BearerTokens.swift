import Crypto
import PostcardForm

/// The accepted tokens of requests. Clients send a token as `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
///
/// The digests of all tokens are always compared to the end, so that the time of a check reveals nothing about them.
///
/// ```swift
/// receiver.tokens = BearerTokens([token])
/// ```
public struct BearerTokens: Sendable {
    private let digests: [SHA256Digest]

    /// Makes a set of accepted tokens.
    ///
    /// - Parameter tokens: The accepted tokens, except empty ones. Without tokens, every request is refused.
    public init(_ tokens: Set<String>) {
        // An empty token, such as the value of an unset variable, would let everyone in.
        digests = tokens.filter { !$0.isEmpty }.map { SHA256.hash(data: Array($0.utf8)) }
    }

    /// Checks the token of a request.
    ///
    /// - Parameter authorization: The value of the request's `Authorization` field.
    /// - Throws: ``UploadProblem`` with the status 401 if `authorization` contains none of the tokens.
    public func check(_ authorization: String?) throws(UploadProblem) {
        guard let bytes = authorization?.utf8 else { throw .missingToken }
        let scheme = bytes.prefix { $0 != .space }
        guard scheme.isEqualIgnoringCase("bearer") else { throw .missingToken }
        let digest = SHA256.hash(data: Array(bytes.dropFirst(scheme.count).drop { $0 == .space }))
        // All digests are compared, each in constant time.
        let matches = digests.count { $0 == digest }
        if matches == 0 { throw .wrongToken }
    }
}

extension UploadProblem {
    static let missingToken = unauthorized(
        code: "token-missing", message: "The receiver needs a token.", challenge: #"Bearer realm="postcard""#)

    static let wrongToken = unauthorized(
        code: "token-wrong", message: "The receiver does not accept the token for this.",
        challenge: #"Bearer realm="postcard", error="invalid_token""#)

    private static func unauthorized(code: Code, message: String, challenge: String) -> UploadProblem {
        UploadProblem(
            status: 401, code: code, message: message,
            advice: "Send Authorization: Bearer with a token from the operator of the receiver.",
            challenge: challenge)
    }
}
