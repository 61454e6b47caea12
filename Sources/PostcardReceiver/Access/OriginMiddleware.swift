import HTTPTypes
import Hummingbird
import PostcardServer

/// Lets the pages of named origins send requests and read the answers (CORS, as the Fetch standard has it). Browsers
/// keep the answers from the pages of all others.
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

    /// The answer to a browser that asks before it sends a request. The asterisk does not stand for `Authorization`.
    private static func offer(to origin: String) -> HTTPFields {
        var fields = fields(for: origin)
        fields[.accessControlAllowMethods] = "*"
        fields[.accessControlAllowHeaders] = "*, Authorization"
        fields[.accessControlMaxAge] = "600"
        return fields
    }
}

/// Which pages may have a browser send what changes something, where no token shows who sends it.
///
/// A browser sends such a request for any page on the web. It says in `Sec-Fetch-Site` whose page it was, or in
/// `Origin` where that is missing: older browsers, and all of them over plain HTTP from another machine. A request
/// with neither is no browser's.
struct OriginPolicy: Sendable {
    /// The origins that may, in lower case, such as `https://app.example`.
    let allowed: Set<String>
    /// Whether the receiver's own connections are of TLS.
    let isSecure: Bool

    func allows(_ origin: String) -> Bool { allowed.contains(origin.lowercased()) }

    func check(_ request: Request) throws(UploadProblem) {
        guard ![.get, .head, .options, .trace].contains(request.method) else { return }
        let origin = request.headers[.origin]
        if let origin, allows(origin) { return }
        if let name = HTTPField.Name("Sec-Fetch-Site"), let site = request.headers[name] {
            // "none" is what a person did, such as with a bookmark.
            guard ["same-origin", "none"].contains(site) else { throw .originNotAllowed }
            return
        }
        guard let origin else { return }
        guard isOwn(origin, of: request) else { throw .originNotAllowed }
    }

    /// Whether an origin is the receiver's own. Behind a proxy that speaks TLS the receiver does not.
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
        detail: "A page of another origin than the receiver's own had the browser send the request.",
        fix: "Start the receiver with tokens, or with --allow-origin and the origin, such as https://app.example.")
}
