import HTTPTypes

/// Sends a token with every upload (RFC 6750 §2.1), and gets another when the server answers 401.
///
/// ```swift
/// var client = UploadClient()
/// client.interceptors = [BearerTokenInterceptor(token: saved) { expired in try await account.newToken() }]
/// ```
///
/// However many uploads wait for a token, one is got for all of them. An upload whose new token is refused as well ends
/// with that refusal.
public final class BearerTokenInterceptor: UploadInterceptor {
    private let tokens: TokenRefresh

    /// Makes an interceptor; give the same one to all clients that use the token.
    ///
    /// - Parameters:
    ///   - token: The token to begin with; where there is none, the first upload gets one.
    ///   - refresh: Gets a token in place of one that the server refused, of none if there was none. What it throws
    ///     ends the uploads that wait for the token. It is cancelled when none of them waits any longer.
    public init(token: String? = nil, refresh: @escaping @Sendable (_ refused: String?) async throws -> String) {
        tokens = TokenRefresh(token, refresh)
    }

    public func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
        request.headerFields[.authorization] = Self.credentials(try await tokens.token())
    }

    public func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
        // Two refusals in a row: a fresh token does not help.
        guard error.response?.status.code == 401, attempt.earlierErrors.last?.response?.status.code != 401 else {
            return .passOn
        }
        let refused = attempt.request.headerFields[.authorization]
        try await tokens.replace { Self.credentials($0) == refused }
        return .retry(after: .zero)
    }

    private static func credentials(_ token: String) -> String {
        "Bearer \(token)"
    }
}
