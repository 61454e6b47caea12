import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct RefusalTests {
    /// A refusal as a server writes it, and the message for a person.
    struct Refusal: Sendable, CustomTestStringConvertible {
        let status: String
        let fields: [String: String]
        let body: String
        let message: String
        var testDescription: String { message }
    }

    static let refusals = [
        Refusal(
            status: "422 Unprocessable Content", fields: ["Content-Type": "application/problem+json"],
            body: #"{"title":"Too many","status":422,"detail":"At most 5 files named images."}"#,
            message: "responded with 422 Unprocessable Content: At most 5 files named images."),
        Refusal(
            status: "400 Bad Request", fields: ["Content-Type": "application/problem+json"],
            body: #"{"title":"No boundary","status":400}"#, message: "responded with 400 Bad Request: No boundary"),
        Refusal(
            status: "401 Unauthorized", fields: ["Content-Type": "application/json; charset=utf-8"],
            body: #"{"error":"token expired"}"#, message: "responded with 401 Unauthorized: token expired"),
        Refusal(
            status: "401 Unauthorized", fields: ["WWW-Authenticate": "Basic realm=\"x\""], body: "who are you?",
            message: "responded with 401 Unauthorized: who are you?"),
        Refusal(
            status: "401 Unauthorized", fields: ["WWW-Authenticate": "Digest realm=\"x\", nonce=\"n\""], body: "",
            message: "responded with 401 Unauthorized"),
        Refusal(
            status: "401 Unauthorized", fields: ["WWW-Authenticate": "Bearer"], body: "no",
            message: "responded with 401 Unauthorized: no"),
        Refusal(
            status: "413 Content Too Large", fields: ["Content-Type": "text/html"],
            body: "<html>\r\n<head><title>413 Request Entity Too Large</title></head></html>",
            message: "responded with 413 Content Too Large: 413 Request Entity Too Large"),
        Refusal(
            status: "500 Internal Server Error", fields: ["Content-Type": "text/plain"],
            body: "disk full\u{1B}[31m\nat line 7\n\nthird\nfourth",
            message: "responded with 500 Internal Server Error: disk full [31m at line 7 third"),
        Refusal(status: "404 Not Found", fields: [:], body: "", message: "responded with 404 Not Found"),
    ]

    @Test(arguments: Carrier.allCases, refusals)
    func `a refusal shows the server's own reason and is sent nowhere else`(
        carrier: Carrier, refusal: Refusal
    ) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond(refusal.status, refusal.fields, body: refusal.body)
            }
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.message == "127.0.0.1:\(server.url.port ?? 0) \(refusal.message)")
            #expect(error.response?.text == refusal.body)
            #expect(error.response.map { refusal.status.hasPrefix("\($0.status.code)") } == true)
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a refusal while the body is being sent is that refusal`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: 64 << 20), named: "file")
        let sent = form
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond(
                "413 Content Too Large", ["Connection": "close", "Content-Type": "application/problem+json"],
                body: #"{"detail":"At most 10 MB."}"#)
            _ = try await connection.readToEnd()
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.response?.status.code == 413)
            #expect(error.message.hasSuffix("At most 10 MB."))
            #expect(server.requests.whole.isEmpty)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a response is read up to the limit and no further`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond("200 OK", body: String(repeating: "a", count: 100_000))
            }
        } while: { server in
            var client = UploadClient(transport: carrier.transport())
            client.responses.maximumBytes = 100_000
            #expect(try await client.upload(MultipartForm(), to: server.url).body.count == 100_000)
            client.responses.maximumBytes = 99_999
            let strict = client
            let error = try await #require(throws: UploadError.self) {
                try await strict.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .responseTooLarge)
            #expect(error.message.contains("99999 bytes"))
        }
    }

    @Test(arguments: [
        ("<html>hello</html>", "it is not JSON"),
        (#"{"name":"초코"}"#, "there is no id"),
        (#"{"id":"seven"}"#, "id is not of type Int"),
        (#"{"id":null}"#, "id is null and not of type Int"),
        ("", "it is not JSON"),
    ])
    func `a response that is not the expected JSON is shown, and where it differs`(
        body: String, reason: String
    ) throws {
        struct Record: Decodable {
            let id: Int
        }
        let response = UploadResponse(status: .created, headerFields: HTTPFields(), body: Data(body.utf8))
        let error = try #require(throws: UploadError.self) { try response.decode(Record.self) }
        #expect(error.code == .decoding)
        #expect(error.message.contains(reason))
        #expect(error.message.contains("201 Created"))
        #expect(error.message.hasSuffix(body.isEmpty ? "an empty body" : body))
    }
}
