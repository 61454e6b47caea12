import Hummingbird
import PostcardServer

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
