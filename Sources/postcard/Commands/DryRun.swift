import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import SystemPackage

/// Writes what would be sent: the head to standard error, the exact body to standard output.
struct DryRun {
    let form: MultipartForm
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields

    func write() async throws {
        let layout = try form.layout()
        let request = try UploadRequest(
            url: url, method: method, headerFields: headerFields, body: UploadBody(layout), maximumResponseBytes: 0)
        Terminal.saySequence(Self.head(of: request))
        do {
            try await layout.write(to: .standardOutput)
        } catch let error as Errno {
            throw CommandFailure.output(error)
        }
    }

    private static func head(of request: UploadRequest) -> String {
        let components = URLComponents(url: request.url, resolvingAgainstBaseURL: false)
        let path = components?.percentEncodedPath ?? ""
        let query = components?.percentEncodedQuery.map { "?\($0)" } ?? ""
        let port = request.url.port.map { ":\($0)" } ?? ""
        var lines = [
            "\(request.method.rawValue) \(path.isEmpty ? "/" : path)\(query) HTTP/1.1",
            "Host: \(components?.percentEncodedHost ?? "")\(port)",
        ]
        lines += request.headerFields.map { "\($0.name.rawName): \($0.value)" }
        if let body = request.body {
            lines.append(body.contentLength.map { "Content-Length: \($0)" } ?? "Transfer-Encoding: chunked")
        }
        return lines.map { $0 + "\r\n" }.joined() + "\r\n"
    }
}
