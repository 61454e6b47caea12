import HTTPTypes
public import Hummingbird
import PostcardFoundation
import PostcardReception

/// Refuses requests without an accepted token. Clients send a token as `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
///
/// Add the middleware before the routes:
///
/// ```swift
/// router.add(middleware: BearerTokenMiddleware([token]))
/// router.addUploads(to: store)
/// ```
///
/// The client gets a 401 as `application/problem+json`. The digests of all tokens are always compared to the end, so
/// that the time of a check reveals nothing about them.
public struct BearerTokenMiddleware<Context: RequestContext>: RouterMiddleware {
    private let tokens: BearerTokens

    /// Makes the middleware.
    ///
    /// - Parameter tokens: The accepted tokens, except empty ones. Without tokens, every request is refused.
    public init(_ tokens: Set<String>) {
        self.tokens = BearerTokens(tokens)
    }

    /// Handles a request with an accepted token. Throws an `UploadProblem` for any other request.
    public func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        try tokens.check(request.headers[.authorization])
        return try await next(request, context)
    }
}
