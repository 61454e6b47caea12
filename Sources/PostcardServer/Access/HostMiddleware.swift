#if Server
import Hummingbird

/// Refuses what a browser sends here under a name that is not this machine's.
///
/// A page on the web can have its own name resolve to 127.0.0.1, and is then, to the browser, of the same origin as a
/// receiver that listens there: it could read what was received. Its name in `Host` gives it away.
struct HostMiddleware<Context: RequestContext>: RouterMiddleware {
    /// The names by which the receiver may be called beside this machine's own, in lower case.
    let allowed: Set<String>
    let meter: UploadMeter

    func handle(
        _ request: Request, context: Context, next: @concurrent (Request, Context) async throws -> Response
    ) async throws -> Response {
        if let authority = request.head.authority {
            let host = Self.host(of: authority)
            guard LoopbackAddress.contains(host) || allowed.contains(host) else {
                let problem = UploadProblem.hostNotAllowed
                meter.refused(problem)
                throw problem
            }
        }
        return try await next(request, context)
    }

    /// The name or address of an authority, without port and brackets, in lower case.
    static func host(of authority: String) -> String {
        if authority.hasPrefix("[") { return authority.dropFirst().prefix { $0 != "]" }.lowercased() }
        let host = authority.prefix { $0 != ":" }.lowercased()
        return host.hasSuffix(".") ? String(host.dropLast()) : host
    }
}

extension UploadProblem {
    fileprivate static let hostNotAllowed = UploadProblem(
        status: .misdirectedRequest, code: "host-not-allowed",
        detail: "The receiver listens to this machine alone, and the request's Host is another name.",
        fix: "Use localhost or 127.0.0.1, or start the receiver with --allow-host and the name.")
}
#endif
