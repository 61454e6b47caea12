import HTTPTypes
import Hummingbird
import PostcardReception
import PostcardServer

/// The tokens of a receiver, which clients send as `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
///
/// ```swift
/// receiver.tokens.posting = [token]
/// ```
///
/// Without tokens, every client may post, read and delete. `BearerTokenMiddleware` says how they are compared.
public struct AccessTokens: Sendable, Hashable {
    /// The tokens for posting forms. Defaults to none: every client may.
    public var posting: Set<String> = []

    /// The tokens for reading and deleting records and files, and for watching the receiver. Defaults to `nil`: those
    /// for posting. With an empty set every client may.
    public var reading: Set<String>?

    /// Makes a set without tokens: every client may do everything.
    public init() {}

    /// What a request wants to do.
    enum Purpose {
        case posting
        case reading
    }

    private func tokens(for purpose: Purpose) -> Set<String> {
        purpose == .posting ? posting : reading ?? posting
    }

    /// Whether clients may do anything without a token.
    var isOpen: Bool { isOpen(for: .posting) || isOpen(for: .reading) }

    /// Whether a request needs no token.
    func isOpen(for purpose: Purpose) -> Bool { tokens(for: purpose).isEmpty }

    /// - Parameter authorization: The request's `Authorization`.
    /// - Throws: The refusal if a token is needed and this is not one.
    func check(_ authorization: String?, for purpose: Purpose) throws(UploadProblem) {
        let tokens = tokens(for: purpose)
        guard !tokens.isEmpty else { return }
        try BearerTokens(tokens).check(authorization)
    }
}

/// Refuses requests without the token they need. All paths but a few need one. If the receiver has none, it refuses
/// requests from pages of other origins.
struct AccessMiddleware<Context: RequestContext>: RouterMiddleware {
    let tokens: AccessTokens
    let origins: OriginPolicy
    let uploadPath: String
    let meter: UploadMeter

    /// Paths that show nothing of the uploads.
    private static var openPaths: Set<String> { ["/", "/health"] }
    private static var openFolder: String { "/assets/" }

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        if let purpose = purpose(of: request) {
            do throws(UploadProblem) {
                if tokens.isOpen(for: purpose) { try origins.check(request) }
                try tokens.check(request.headers[.authorization], for: purpose)
            } catch {
                meter.refused(error)
                throw error
            }
        }
        return try await next(request, context)
    }

    private func purpose(of request: Request) -> AccessTokens.Purpose? {
        let path = request.uri.path
        if [.post, .put, .options].contains(request.method), Self.isSame(path, uploadPath) { return .posting }
        // Files can be sent there, if they need not be in forms.
        if [.post, .put].contains(request.method), Self.isChild(path, uploadPath) { return .posting }
        if ResumptionPath.contains(path, below: uploadPath) { return .posting }
        let isLooking = request.method == .get || request.method == .head
        if isLooking, Self.openPaths.contains(path) || path.hasPrefix(Self.openFolder) { return nil }
        return .reading
    }

    /// The router ignores slashes at the end and repeated slashes.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        path.split(separator: "/") == other.split(separator: "/")
    }

    private static func isChild(_ path: String, _ parent: String) -> Bool {
        path.split(separator: "/").dropLast() == parent.split(separator: "/")[...]
    }
}
