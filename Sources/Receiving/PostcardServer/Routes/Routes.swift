package import HTTPTypes
package import Hummingbird
import PostcardReception

/// Routes by path and method, so that every path can list its methods in a 405.
package struct Routes<Context: RequestContext> {
    /// Responds to a request on a connection, which is `nil` if the application has another server.
    package typealias Handler = @Sendable (Request, Context, UploadConnection?) async throws -> Response

    private var paths: [(path: RouterPath, handlers: [(method: HTTPRequest.Method, handler: Handler)])] = []

    package init() {}

    package mutating func add(_ path: RouterPath, _ method: HTTPRequest.Method, _ handler: @escaping Handler) {
        if let index = paths.firstIndex(where: { $0.path == path }) {
            paths[index].handlers.append((method, handler))
        } else {
            paths.append((path, [(method, handler)]))
        }
    }

    /// Adds a handler for GET, and one for HEAD with the same response without its body (RFC 9110 §9.3.2).
    package mutating func addReading(_ path: RouterPath, _ handler: @escaping Handler) {
        add(path, .get, handler)
        add(path, .head) { request, context, connection in
            try await handler(request, context, connection).withoutBody()
        }
    }

    /// Adds the routes to a router, and a 405 for all other methods of their paths.
    package func install(on router: Router<Context>) {
        for (path, handlers) in paths {
            let allowed = handlers.map(\.method)
            for (method, handler) in handlers {
                router.on(path, method: method) { request, context in
                    try await handler(request, context, .current)
                }
            }
            for method in Self.methods where !allowed.contains(method) {
                router.on(path, method: method) { request, _ -> Response in
                    throw UploadProblem.methodNotAllowed(
                        request.method.rawValue, allowed: allowed.map(\.rawValue).sorted())
                }
            }
        }
    }

    /// All methods that the HTTP decoder accepts.
    private static var methods: [HTTPRequest.Method] {
        let others = [
            "ACL", "BIND", "CHECKOUT", "COPY", "LINK", "LOCK", "M-SEARCH", "MERGE", "MKACTIVITY", "MKCALENDAR", "MKCOL",
            "MOVE", "MSEARCH", "NOTIFY", "PROPFIND", "PROPPATCH", "PURGE", "REBIND", "REPORT", "SEARCH", "SOURCE",
            "SUBSCRIBE", "UNBIND", "UNLINK", "UNLOCK", "UNSUBSCRIBE",
        ]
        return [.get, .head, .post, .put, .delete, .connect, .options, .trace, .patch]
            + others.compactMap { HTTPRequest.Method($0) }
    }
}
