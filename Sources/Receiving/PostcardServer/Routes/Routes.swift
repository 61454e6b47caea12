package import HTTPTypes
package import Hummingbird
import Logging
package import PostcardReception
import PostcardStore

/// Routes by path and method. Each path can list its methods in a 405.
package struct Routes<Context: RequestContext> {
    /// Responds to a request. The connection is `nil` on servers other than
    /// ``HummingbirdCore/HTTPServerBuilder/uploads(options:)``.
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

    /// Adds handlers for GET and for HEAD, which gets the same response without its body (RFC 9110 §9.3.2).
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

/// The app's handler for stored forms, called before the response. The handler gets the request that completed the
/// form, and its context. The handler returns the app's own response, or `nil` to respond with the record.
package typealias StoredFormHandler<Context> =
    @Sendable (CommittedUpload, Request, Context) async throws -> Response?

extension CommittedUpload {
    /// Makes a handler that passes this request and context to the app's handler.
    static func handler<Context: RequestContext>(
        _ handler: StoredFormHandler<Context>?, _ request: Request, _ context: Context
    ) -> (@Sendable (CommittedUpload) async throws -> FormResponse?)? {
        guard let handler else { return nil }
        return { upload in try await upload.pass(to: handler, request, context) }
    }

    /// The maximum size of an app's own response, in bytes.
    private static var maximumResponseBytes: Int { 512 << 10 }

    /// Passes the upload to an app, and collects the app's response. If the app throws an `UploadProblem` or an
    /// `HTTPError`, throws that error as a problem. Throws a 503 for any other error.
    package func pass<Context: RequestContext>(
        to handler: StoredFormHandler<Context>, _ request: Request, _ context: Context
    ) async throws(UploadProblem) -> FormResponse? {
        do {
            guard let response = try await handler(self, request, context) else { return nil }
            let collector = BodyCollector(maximumBytes: Self.maximumResponseBytes)
            try await response.body.write(collector)
            return FormResponse(status: response.status, headers: response.headers, body: .bytes(collector.bytes, nil))
        } catch let problem as UploadProblem {
            throw problem
        } catch let error as HTTPError {
            throw UploadProblem(error)
        } catch is CancellationError {
            throw .notProcessed
        } catch {
            context.logger.error(
                "The app could not process a stored form", metadata: ["upload": "\(record.id)", "error": "\(error)"])
            throw .notProcessed
        }
    }
}

/// Collects a response in memory, so that the store can keep it.
private final class BodyCollector: ResponseBodyWriter {
    private(set) var bytes = ByteBuffer()
    private let maximumBytes: Int

    init(maximumBytes: Int) {
        self.maximumBytes = maximumBytes
    }

    func write(_ buffer: ByteBuffer) async throws {
        guard bytes.readableBytes + buffer.readableBytes <= maximumBytes else { throw ResponseTooLarge() }
        bytes.writeImmutableBuffer(buffer)
    }

    func finish(_ trailingHeaders: HTTPFields?) async throws {}

    /// The error for a response that is too large, which is logged like other errors of the app.
    private struct ResponseTooLarge: Error, CustomStringConvertible {
        let description = "The app's response has more than 512 KiB, which are too many to be kept."
    }
}
