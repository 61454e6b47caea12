import Crypto
import HTTPTypes
import Hummingbird
import PostcardServer

/// Who may use a receiver: whoever sends `Authorization: Bearer TOKEN` (RFC 6750 §2.1).
///
/// ```swift
/// receiver.tokens.posting = [token]
/// receiver.tokens.reading = [other]
/// ```
///
/// Where no token is set for something, everybody may do it. Tokens are compared by their digests, all bytes of all
/// of them, so that the time it takes tells nothing about them.
public struct AccessTokens: Sendable, Hashable {
    /// The tokens by which forms may be posted.
    public var posting: Set<String> = []

    /// The tokens by which records and files may be read and deleted, and the receiver watched.
    public var reading: Set<String> = []

    /// Everybody may do everything.
    public init() {}

    /// What a request asks for.
    enum Purpose {
        case posting
        case reading
    }

    private func tokens(for purpose: Purpose) -> Set<String> {
        purpose == .posting ? posting : reading
    }

    /// Whether no token is wanted.
    func isOpen(for purpose: Purpose) -> Bool { tokens(for: purpose).isEmpty }

    /// - Parameter authorization: The request's `Authorization`.
    /// - Throws: The refusal, where the request may not do what it asks for.
    func check(_ authorization: String?, for purpose: Purpose) throws(UploadProblem) {
        let tokens = tokens(for: purpose)
        guard !tokens.isEmpty else { return }
        guard let authorization else { throw .missingToken }
        let scheme = authorization.prefix { $0 != " " }
        guard scheme.lowercased() == "bearer" else { throw .missingToken }
        let token = authorization.dropFirst(scheme.count).drop { $0 == " " }
        guard Self.contains(String(token), tokens) else { throw .wrongToken }
    }

    private static func contains(_ candidate: String, _ tokens: Set<String>) -> Bool {
        let digest = Array(SHA256.hash(data: Array(candidate.utf8)))
        var isKnown = false
        for token in tokens {
            let difference = zip(SHA256.hash(data: Array(token.utf8)), digest).reduce(0) { $0 | ($1.0 ^ $1.1) }
            isKnown = difference == 0 || isKnown
        }
        return isKnown
    }
}

extension UploadProblem {
    static let missingToken = unauthorized(
        code: "token-missing", detail: "The receiver wants a token.", challenge: #"Bearer realm="postcard""#)

    static let wrongToken = unauthorized(
        code: "token-wrong", detail: "The token is not one of the receiver's for this.",
        challenge: #"Bearer realm="postcard", error="invalid_token""#)

    private static func unauthorized(code: String, detail: String, challenge: String) -> UploadProblem {
        var problem = UploadProblem(
            status: 401, code: code, detail: detail,
            fix: "Send Authorization: Bearer and the token that whoever runs the receiver gave you.")
        problem.challenge = challenge
        return problem
    }
}

/// Lets in who may come in. Whatever is not known to be for everybody wants a token, and where there are none it is not
/// to be another site's page that asks.
struct AccessMiddleware<Context: RequestContext>: RouterMiddleware {
    let tokens: AccessTokens
    let origins: OriginPolicy
    let uploadPath: String
    let meter: UploadMeter

    /// What shows nothing that was received.
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
        if [.post, .options].contains(request.method), Self.isSame(path, uploadPath) { return .posting }
        if ResumptionPath.contains(path, below: uploadPath) { return .posting }
        let isLooking = request.method == .get || request.method == .head
        if isLooking, Self.openPaths.contains(path) || path.hasPrefix(Self.openFolder) { return nil }
        return .reading
    }

    /// The router takes slashes at the end and repeated ones as nothing.
    private static func isSame(_ path: String, _ other: String) -> Bool {
        path.split(separator: "/") == other.split(separator: "/")
    }
}
