import FlyingFox
import FlyingSocks
import Foundation
import HTTPTypes
import PostcardReception
import Settings

@main
struct FlyingFoxReceiver {
    static func main() async throws {
        guard let settings = Settings(CommandLine.arguments) else { return print("PORT FOLDER NAME") }
        let store = try LocalUploadStore(directory: settings.folder)
        var receiver = FormReceiver(store: store, options: settings.options)
        receiver.timeouts = settings.timeouts
        receiver.tokens = settings.tokens.map { BearerTokens($0) }
        // FlyingFox reads the next request from where a body was left.
        receiver.maximumDiscardedBytes = .max
        let server = try HTTPServer(
            config: HTTPServer.Configuration(
                address: .inet(ip4: "127.0.0.1", port: UInt16(settings.port)), timeout: 3600,
                sharedRequestBufferSize: 32 << 10, sharedRequestReplaySize: 0, logger: .disabled))
        await server.appendRoute("*") { [receiver] in try await respond(to: $0, by: receiver) }
        try await server.run()
    }
}

// begin
private func respond(to request: FlyingFox.HTTPRequest, by receiver: FormReceiver) async throws -> FlyingFoxResponse {
    guard let method = HTTPTypes.HTTPRequest.Method(request.method.rawValue) else { throw HTTPUnhandledError() }
    var head = HTTPTypes.HTTPRequest(method: method, scheme: nil, authority: nil, path: request.target.rawValue)
    for (name, value) in request.headers {
        if let name = HTTPField.Name(name.rawValue) { head.headerFields.append(HTTPField(name: name, value: value)) }
    }
    let response = await receiver.respond(to: head, request.bodySequence, from: request.address)
    let headers = response.head.headerFields.map { (HTTPHeader($0.name.rawName), $0.value) }
    return FlyingFoxResponse(status: response.head.status, headers: headers, body: response.body)
}
// end

extension FlyingFox.HTTPRequest {
    /// The client, whatever its fields say.
    fileprivate var address: String? {
        switch remoteAddress {
        case .ip4(let address, _), .ip6(let address, _): address
        default: nil
        }
    }
}

private typealias FlyingFoxResponse = FlyingFox.HTTPResponse

extension FlyingFoxResponse {
    fileprivate init(status: HTTPTypes.HTTPResponse.Status, headers: [(HTTPHeader, String)], body: [UInt8]) {
        var fields = HTTPHeaders()
        for (name, value) in headers { fields.addValue(value, for: name) }
        self.init(
            statusCode: HTTPStatusCode(status.code, phrase: status.reasonPhrase), headers: fields, body: Data(body))
    }
}
