import PostcardReceiver
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct TextShareTests {
    private static func post(_ count: Int, to receiver: RunningReceiver) async throws -> RawResponse {
        let text = String(repeating: "x", count: count)
        return try await receiver.exchange(
            Form.request(body: Form.part("Content-Disposition: form-data; name=\"a\"", text)))
    }

    @Test func `text beyond what all forms may hold is refused for a moment, and room is given back`() async throws {
        try await withReceiver {
            $0.uploads.maximumHeldBytes = 1000
            $0.uploads.clientShare = 1
        } _: { receiver in
            for _ in 0..<3 {
                let refused = try await Self.post(1000, to: receiver)
                #expect(refused.status == 503)
                #expect(refused.problem?.code == "too-much-text")
                #expect(refused.problem?.limit?.name == "maximumHeldBytes")
                #expect(refused.headers["retry-after"] != nil)
                #expect(try await Self.post(900, to: receiver).status == 201)
            }
        }
    }

    @Test func `text that fills exactly what all forms may hold is received, and one byte more is not`() async throws {
        try await withReceiver {
            $0.uploads.maximumHeldBytes = 256
            $0.uploads.clientShare = 1
        } _: { receiver in
            // The name is a byte of it.
            #expect(try await Self.post(255, to: receiver).status == 201)
            let refused = try await Self.post(256, to: receiver)
            #expect(refused.status == 503)
            #expect(refused.problem?.limit?.value == 256)
        }
    }

    @Test func `the texts of a form's fields count together`() async throws {
        try await withReceiver {
            $0.uploads.maximumHeldBytes = 1000
            $0.uploads.clientShare = 1
        } _: { receiver in
            let text = String(repeating: "x", count: 300)
            let field = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\(text)\r\n"
            for (count, status) in [(2, 201), (4, 503)] {
                let body = String(repeating: field, count: count) + "--b--\r\n"
                let response = try await receiver.exchange(Form.request(body: body))
                #expect(response.status == status)
                #expect(response.problem?.code == (status == 503 ? "too-much-text" : nil))
            }
        }
    }

    @Test func `an address that has used up its share of the text is refused`() async throws {
        try await withReceiver({ $0.uploads.maximumHeldBytes = 100_000 }) { receiver in
            let refused = try await Self.post(60_000, to: receiver)
            #expect(refused.status == 429)
            #expect(refused.problem?.code == "too-much-text-of-client")
            #expect(refused.problem?.limit?.name == "maximumHeldBytesOfClient")
            #expect(refused.headers["retry-after"] == "5")
            #expect(try await Self.post(40_000, to: receiver).status == 201)
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `text that one address holds leaves room for another's`() async throws {
        try await withReceiver({ $0.uploads.maximumHeldBytes = 100_000 }) { receiver in
            let port = receiver.port
            // Forms whose text is complete, and that then stop.
            let text =
                "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n" + String(repeating: "x", count: 20_000)
                + "\r\n" + Form.fileHeader
            var refused: RawResponse?
            var open: [RawSocket] = []
            while refused == nil {
                let socket = try await onThread {
                    let socket = try RawSocket(port: port)
                    try socket.send(Form.head(contentLength: 100_000) + text)
                    return socket
                }
                open.append(socket)
                if try await onThread({ socket.hasReceived(within: 200) }) {
                    refused = try await RawResponse(socket.receiveAll())
                }
            }
            #expect(refused?.status == 429)
            let response = try await onThread {
                let socket = try RawSocket(port: port, from: "127.0.0.2")
                try socket.send(Form.request(body: text + Form.end))
                return try RawResponse(socket.receiveAll())
            }
            #expect(response.status == 201)
        }
    }
}
