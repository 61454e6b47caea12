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
/// Without tokens, every client may post, read and delete. `BearerTokenMiddleware` documents how tokens are compared.
public struct AccessTokens: Sendable, Hashable {
    /// The tokens for posting forms. Defaults to none, which lets every client post.
    public var posting: Set<String> = []

    /// The tokens for reading and deleting records and files, and for watching the receiver. Defaults to `nil`: the
    /// tokens for posting are used. An empty set lets every client read.
    public var reading: Set<String>?

    /// Makes an empty set of tokens, which lets every client do everything.
    public init() {}

    /// The purpose of a request, which decides the tokens that are accepted.
    enum Purpose {
        case posting
        case reading
    }

    private func tokens(for purpose: Purpose) -> Set<String> {
        purpose == .posting ? posting : reading ?? posting
    }

    var isOpen: Bool { isOpen(for: .posting) || isOpen(for: .reading) }

    func isOpen(for purpose: Purpose) -> Bool { tokens(for: purpose).isEmpty }

    /// Checks the token of a request. `authorization` is the value of its `Authorization` field. Throws
    /// ``UploadProblem`` if the field has none of the tokens for the purpose.
    func check(_ authorization: String?, for purpose: Purpose) throws(UploadProblem) {
        let tokens = tokens(for: purpose)
        guard !tokens.isEmpty else { return }
        try BearerTokens(tokens).check(authorization)
    }
}

/// Refuses requests that lack a required token. If the request needs no token, refuses it if it is from a page of
/// another origin.
struct AccessMiddleware<Context: RequestContext>: RouterMiddleware {
    let tokens: AccessTokens
    let origins: OriginPolicy
    let uploadPath: String
    let meter: UploadMeter

    /// The paths that need no token, because their responses contain no data of uploads.
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
        // With `UploadOptions.acceptsAnyBody`, clients can send files to paths below the upload path.
        if [.post, .put].contains(request.method), Self.isChild(path, uploadPath) { return .posting }
        if ResumptionPath.contains(path, below: uploadPath) { return .posting }
        let isLooking = request.method == .get || request.method == .head
        if isLooking, Self.openPaths.contains(path) || path.hasPrefix(Self.openFolder) { return nil }
        return .reading
    }

    /// Whether two paths are the same to the router, which ignores slashes at the end and repeated slashes.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        path.split(separator: "/") == other.split(separator: "/")
    }

    private static func isChild(_ path: String, _ parent: String) -> Bool {
        path.split(separator: "/").dropLast() == parent.split(separator: "/")[...]
    }
}
