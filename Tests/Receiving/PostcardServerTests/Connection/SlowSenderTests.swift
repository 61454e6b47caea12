import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct SlowSenderTests {
    @Test func `a client that sends constantly but too slowly is refused after the grace period`() async throws {
        try await withReceiver {
            $0.connections.minimumBytesPerSecond = 100_000
            $0.connections.gracePeriod = .milliseconds(300)
        } _: { receiver in
            let port = receiver.port
            let response = try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send(Form.head(contentLength: 1_000_000) + Form.fileHeader)
                // Until the receiver refuses the form and reads no more, or a minute is over.
                for _ in 0..<3_000 where !socket.hasReceived(within: 20) { try socket.send("x") }
                return try RawResponse(socket.receiveAll())
            }
            #expect(response.status == 408)
            #expect(response.problem?.code == "below-minimum-rate")
            #expect(response.problem?.limit?.value == 100_000)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a client is asked to retry later if too many forms are being received`() async throws {
        try await withReceiver({ $0.uploads.maximumConcurrentUploads = 1 }) { receiver in
            let port = receiver.port
            let socket = try RawSocket(port: port)
            let body = Form.fileHeader + String(repeating: "x", count: 600_000) + Form.end
            try await socket.send(
                Form.head(contentLength: body.utf8.count, fields: ["Connection: close"]) + body.dropLast(100_000))
            try await eventually { try !receiver.incoming.isEmpty }
            let refused = try await receiver.exchange(Form.request(body: Form.small))
            #expect(refused.status == 503)
            #expect(refused.problem?.code == "too-many-uploads")
            #expect(refused.headers["retry-after"] == "5")
            try await socket.send(String(body.suffix(100_000)))
            let taken = try await RawResponse(socket.receiveAll())
            #expect(taken.status == 201)
            let next = try await receiver.exchange(Form.request(body: Form.small))
            #expect(next.status == 201)
        }
    }
}
