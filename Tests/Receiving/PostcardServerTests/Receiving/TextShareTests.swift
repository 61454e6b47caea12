import Hummingbird
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Synchronization
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
                #expect(try await Self.post(800, to: receiver).status == 201)
            }
        }
    }

    @Test func `text that fills exactly what all forms may hold is received, and one byte more is not`() async throws {
        try await withReceiver {
            // A field takes 128 bytes besides its texts.
            $0.uploads.maximumHeldBytes = 529
            $0.uploads.clientShare = 1
        } _: { receiver in
            // The name is a byte of it.
            #expect(try await Self.post(400, to: receiver).status == 201)
            let refused = try await Self.post(401, to: receiver)
            #expect(refused.status == 503)
            #expect(refused.problem?.limit?.value == 529)
        }
    }

    @Test func `the texts of a form's fields count together`() async throws {
        try await withReceiver {
            $0.uploads.maximumHeldBytes = 1100
            $0.uploads.clientShare = 1
        } _: { receiver in
            let text = String(repeating: "x", count: 300)
            let field = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n\(text)\r\n"
            for (count, status) in [(2, 201), (3, 503)] {
                let body = String(repeating: field, count: count) + "--b--\r\n"
                let response = try await receiver.exchange(Form.request(body: body))
                #expect(response.status == status)
                #expect(response.problem?.code == (status == 503 ? "too-much-text" : nil))
            }
        }
    }

    private struct Parts: Sendable {
        let name: String
        let part: [UInt8]
        let count: Int
        let isReceived: Bool
    }

    /// Forms that take more memory than their texts have bytes.
    private static let expanding = [
        Parts(name: "bytes that are UTF-8", part: field(of: 0x7E, 2000), count: 1, isReceived: true),
        Parts(name: "bytes that become three times as many", part: field(of: 0xFF, 2000), count: 1, isReceived: false),
        Parts(name: "fields", part: field(of: 0, 0), count: 20, isReceived: true),
        Parts(name: "many fields", part: field(of: 0, 0), count: 40, isReceived: false),
        Parts(name: "files", part: file, count: 7, isReceived: true),
        Parts(name: "many files", part: file, count: 8, isReceived: false),
    ]

    private static let file = Array((Form.fileHeader + "\r\n").utf8)

    private static func field(of byte: UInt8, _ count: Int) -> [UInt8] {
        var part = Array("--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n".utf8)
        part += [UInt8](repeating: byte, count: count)
        part += Array("\r\n".utf8)
        return part
    }

    @Test(arguments: expanding.indices)
    func `a form counts with the memory that it takes`(index: Int) async throws {
        let parts = Self.expanding[index]
        try await withReceiver {
            $0.uploads.maximumHeldBytes = 5000
            $0.uploads.clientShare = 1
        } _: { receiver in
            var body: [UInt8] = []
            for _ in 0..<parts.count { body += parts.part }
            body += Array("--b--\r\n".utf8)
            let head = Form.head(contentLength: body.count, fields: ["Connection: close"])
            let response = try await receiver.exchange(Array(head.utf8) + body)
            #expect(response.status == (parts.isReceived ? 201 : 503), "\(parts.name)")
            #expect(response.problem?.code == (parts.isReceived ? nil : "too-much-text"), "\(parts.name)")
        }
    }

    @Test func `text counts until the app has it and the response is made, and not while that is not read`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            var options = UploadOptions()
            options.clientShare = 1
            let shares = ShareAccount(ShareLimits(options, connections: 100))
            let total = options.maximumHeldBytes
            let held = Mutex(0)
            var routes = Routes<BasicRequestContext>()
            routes.addUploads(to: try LocalUploadStore(directory: directory), options: options, shares: shares) {
                _, _, _ in
                held.withLock { $0 = total - shares.free(of: .textBytes) }
                return nil
            }
            let router = Router()
            routes.install(on: router)
            try await withApplication(router: router) { receiver in
                // Six times as many bytes as a response.
                let text = String(repeating: "\u{1}", count: 1_000_000)
                let body = Form.part("Content-Disposition: form-data; name=\"a\"", text)
                let socket = try RawSocket(port: receiver.port, receiveBufferBytes: 4096)
                try await onThread { try socket.send(Form.request(body: body)) }
                try await eventually { shares.free(of: .responseBytes) < options.maximumHeldResponseBytes }
                #expect(held.withLock { $0 } >= 1_000_000)
                #expect(shares.free(of: .textBytes) == total)
                #expect(shares.free(of: .uploads) < shares.limits[.uploads])
                let response = try await onThread { try RawResponse(socket.receiveAll()) }
                #expect(response.status == 201)
                #expect(response.body.utf8.count > 6_000_000)
            }
            #expect(shares.free(of: .responseBytes) == options.maximumHeldResponseBytes)
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
