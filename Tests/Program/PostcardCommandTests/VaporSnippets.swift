import Foundation
import HTTPTypes
import PostcardReception

// The Swift of the article on Vapor, compiled with a stub of the declarations of Vapor 4 that it uses. Vapor itself is not
// among the packages of this one.

// MARK: - The stub

private struct HTTPMethod: Sendable {
    let rawValue: String

    static let GET = Self(rawValue: "GET")
    static let HEAD = Self(rawValue: "HEAD")
    static let POST = Self(rawValue: "POST")
    static let PATCH = Self(rawValue: "PATCH")
    static let DELETE = Self(rawValue: "DELETE")
    static let OPTIONS = Self(rawValue: "OPTIONS")
}

private struct HTTPHeaders: Sequence, Sendable {
    private let fields: [(name: String, value: String)]

    init(_ fields: [(String, String)] = []) {
        self.fields = fields.map { (name: $0.0, value: $0.1) }
    }

    func makeIterator() -> IndexingIterator<[(name: String, value: String)]> { fields.makeIterator() }
}

private struct HTTPResponseStatus: Sendable {
    let code: Int

    static let badRequest = Self(statusCode: 400)

    init(statusCode: Int) { code = statusCode }
}

private struct SocketAddress: Sendable {
    let ipAddress: String?
}

private struct URI: Sendable {
    let string: String
}

private struct Request: Sendable {
    let method: HTTPMethod
    let url: URI
    let headers: HTTPHeaders
    let body: AsyncThrowingStream<Data, any Error>
    let remoteAddress: SocketAddress?
}

private struct Response: Sendable {
    struct Body: Sendable {
        let data: Data
    }

    let status: HTTPResponseStatus
    var headers = HTTPHeaders()
    var body = Body(data: Data())
}

private enum HTTPBodyStreamStrategy {
    case stream
}

private struct Application {
    func on(
        _ method: HTTPMethod, _ path: String..., body: HTTPBodyStreamStrategy,
        use closure: @escaping @Sendable (Request) async throws -> Response
    ) {}
}

// MARK: - The article

private func routes(_ app: Application) throws {
    let receiver = FormReceiver(store: try LocalUploadStore(directory: "received"))
    for method in [HTTPMethod.POST, .OPTIONS] {
        app.on(method, "uploads", body: .stream) { await respond(to: $0, by: receiver) }
    }
    for method in [HTTPMethod.HEAD, .GET, .PATCH, .DELETE] {
        app.on(method, "uploads", "resumable", ":id", body: .stream) { await respond(to: $0, by: receiver) }
    }
}

private func respond(to request: Request, by receiver: FormReceiver) async -> Response {
    guard let method = HTTPRequest.Method(request.method.rawValue) else { return Response(status: .badRequest) }
    var head = HTTPRequest(method: method, scheme: nil, authority: nil, path: request.url.string)
    for (name, value) in request.headers {
        if let name = HTTPField.Name(name) { head.headerFields.append(HTTPField(name: name, value: value)) }
    }
    // Vapor stops the process if the body of a request without one is read.
    if !head.headerFields.contains(.transferEncoding), !head.headerFields.contains(.contentLength) {
        head.headerFields[.contentLength] = "0"
    }
    let response = await receiver.respond(to: head, request.body, from: request.remoteAddress?.ipAddress)
    return Response(
        status: HTTPResponseStatus(statusCode: response.head.status.code),
        headers: HTTPHeaders(response.head.headerFields.map { ($0.name.rawName, $0.value) }),
        body: Response.Body(data: Data(response.body)))
}
