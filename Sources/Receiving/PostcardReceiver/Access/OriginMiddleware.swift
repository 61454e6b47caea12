import HTTPTypes
import Hummingbird
import PostcardReception
import PostcardServer

/// Lets pages of the allowed origins send requests and read the responses (CORS, in the Fetch standard).
struct OriginMiddleware<Context: RequestContext>: RouterMiddleware {
    let policy: OriginPolicy

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        guard let origin = request.headers[.origin], policy.allows(origin) else {
            return try await next(request, context)
        }
        if request.method == .options, request.headers.contains(.accessControlRequestMethod) {
            return Response(status: .noContent, headers: Self.offer(to: origin))
        }
        do {
            var response = try await next(request, context)
            for field in Self.fields(for: origin) { response.headers.append(field) }
            return response
        } catch let problem as UploadProblem {
            throw problem.adding { fields in
                for field in Self.fields(for: origin) { fields.append(field) }
            }
        }
    }

    private static func fields(for origin: String) -> HTTPFields {
        [.accessControlAllowOrigin: origin, .accessControlExposeHeaders: "*", .vary: "Origin"]
    }

    /// The response to a preflight request. It lists `Authorization` by name, because `*` does not include that field.
    private static func offer(to origin: String) -> HTTPFields {
        var fields = fields(for: origin)
        fields[.accessControlAllowMethods] = "*"
        fields[.accessControlAllowHeaders] = "*, Authorization"
        fields[.accessControlMaxAge] = "600"
        return fields
    }
}

/// Decides which web pages may send requests that change data without a token.
///
/// A browser sends such a request for any page on the web. `Sec-Fetch-Site` shows the relation of that page to the
/// receiver. `Origin` is the fallback: older browsers never send `Sec-Fetch-Site`, and no browser sends it to another
/// machine over plain HTTP. A request without both fields is not from a browser.
struct OriginPolicy: Sendable {
    /// The origins that requests may come from, in lower case, such as `https://app.example`.
    let allowed: Set<String>
    /// Whether the receiver's connections use TLS.
    let isSecure: Bool

    func allows(_ origin: String) -> Bool { allowed.contains(origin.lowercased()) }

    func check(_ request: Request) throws(UploadProblem) {
        guard ![.get, .head, .options, .trace].contains(request.method) else { return }
        let origin = request.headers[.origin]
        if let origin, allows(origin) { return }
        if let name = HTTPField.Name("Sec-Fetch-Site"), let site = request.headers[name] {
            // The value "none" marks a request that the user made directly, for example with a bookmark.
            guard ["same-origin", "none"].contains(site) else { throw .originNotAllowed }
            return
        }
        guard let origin else { return }
        guard isOwn(origin, of: request) else { throw .originNotAllowed }
    }

    /// Whether an origin is the receiver's own. A proxy may provide TLS, so `https` is accepted even without TLS.
    private func isOwn(_ origin: String, of request: Request) -> Bool {
        guard let host = request.host else { return false }
        return ["https", "http"].prefix(isSecure ? 1 : 2).contains { scheme in
            origin.hasPrefix(scheme + "://")
                && Authority.isSame(origin.dropFirst(scheme.count + 3), host, in: scheme)
        }
    }
}

extension UploadProblem {
    fileprivate static let originNotAllowed = UploadProblem(
        status: 403, code: "origin-not-allowed",
        message: "A page of another origin made the browser send the request.",
        advice: "Start the receiver with tokens, or with --allow-origin and the origin, such as https://app.example.")
}
