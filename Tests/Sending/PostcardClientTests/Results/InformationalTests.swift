import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import Testing

/// Responses of 1xx, of which any number may come before the one that counts (RFC 9110 §15.2).
@Suite(.timeLimit(.minutes(10))) struct InformationalTests {
    @Test(arguments: Carrier.allCases, [("100 Continue", 1), ("102 Processing", 1), ("103 Early Hints", 100)])
    func `what comes before the response is no response`(carrier: Carrier, informational: (status: String, count: Int))
        async throws
    {
        var form = MultipartForm()
        form.append("초코", named: "name")
        let sent = form
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                let hint = "HTTP/1.1 \(informational.status)\r\nLink: </a.css>; rel=preload\r\n\r\n"
                try await connection.write(String(repeating: hint, count: informational.count))
                _ = try await connection.readBody(of: head)
                try await connection.write(hint)
                try await connection.respond("201 Created", body: "stored")
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            for _ in 0..<2 {
                let response = try await client.upload(sent, to: server.url)
                #expect(response.status == .created)
                #expect(response.text == "stored")
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that goes over to another protocol has not taken the form`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.write(
                "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n\u{1}\u{2}")
        } while: { server in
            await #expect(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
        }
    }
}
