import Foundation
import HTTPTypes
import PostcardClient
import PostcardSendingSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct UploadRequestTests {
    @Test(arguments: Carrier.allCases)
    func `a request without a body is a head alone, and its response is given back`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                try await connection.respond("200 OK", body: head.line)
            }
        } while: { server in
            let request = try UploadRequest(
                url: server.url, method: .get,
                headerFields: [.accept: "application/json", .contentType: "multipart/form-data; boundary=x"],
                body: nil, maximumResponseBytes: 1_000)
            let transport = carrier.transport()
            // Anything after the first head would be read as the beginning of the second.
            for _ in 0..<2 {
                let response = try await transport.send(request) { event in
                    if case .sent = event { Issue.record("A request without a body has nothing to send.") }
                }
                #expect(response.status == .ok)
                #expect(response.text == "GET /uploads HTTP/1.1")
            }
            #expect(server.requests.heads.count == 2)
            for head in server.requests.heads {
                #expect(head["Accept"] == "application/json")
                for name in ["Content-Type", "Content-Length", "Transfer-Encoding", "Expect"] {
                    #expect(head[name] == nil, "\(name)")
                }
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a user name and password in the URL go out as Basic, unless there is another authorization`(
        carrier: Carrier
    ) async throws {
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                try await connection.respond("200 OK", body: head["Authorization"] ?? "")
            }
        } while: { server in
            let address = server.url.absoluteString.replacing("http://", with: "http://%EC%B4%88%EC%BD%94:a%3Ab@")
            let url = try #require(URL(string: address))
            for (fields, expected) in [
                ([:], "Basic \(Data("초코:a:b".utf8).base64EncodedString())"),
                ([.authorization: "Bearer abc"], "Bearer abc"),
            ] as [(HTTPFields, String)] {
                let request = try UploadRequest(
                    url: url, method: .get, headerFields: fields, body: nil, maximumResponseBytes: 1_000)
                #expect(request.url == server.url)
                #expect(try await carrier.transport().send(request) { _ in }.text == expected)
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a request without a body can be cancelled while its response is awaited`(carrier: Carrier) async throws {
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            begin.finish()
            _ = try? await connection.readToEnd()
        } while: { server in
            let request = try UploadRequest(
                url: server.url, method: .get, headerFields: [:], body: nil, maximumResponseBytes: 1_000)
            let transport = carrier.transport()
            let sending = Task { try await transport.send(request) { _ in } }
            for await _ in began {}
            sending.cancel()
            await #expect(throws: CancellationError.self) { try await sending.value }
        }
    }
}
