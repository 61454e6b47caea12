import Foundation
import HTTPTypes
import PostcardReception

/// Receives a form without a server, in a folder that is removed again.
@main
struct Consumer {
    static func main() async throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "consumer-\(UUID().uuidString)")
        defer { try? FileManager.default.removeItem(at: folder) }
        let receiver = FormReceiver(store: try LocalUploadStore(directory: folder.path))
        let form = "--b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\n초코\r\n--b--\r\n"
        let head = HTTPRequest(
            method: .post, scheme: nil, authority: nil, path: "/uploads",
            headerFields: [.contentType: "multipart/form-data; boundary=b"])
        let body = AsyncStream<Data> { continuation in
            for byte in form.utf8 { continuation.yield(Data([byte])) }
            continuation.finish()
        }
        let response = await receiver.respond(to: head, body)
        guard response.head.status == .created else { throw Refused(status: response.head.status.code) }
    }
}

struct Refused: Error {
    let status: Int
}
