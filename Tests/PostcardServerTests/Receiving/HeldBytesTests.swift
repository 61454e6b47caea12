import Foundation
import NIOCore
import Testing

@testable import PostcardServer

@Suite(.timeLimit(.minutes(1)))
struct HeldBytesTests {
    @Test func `text beyond what all forms may hold is refused for a moment, and room is given back`() async throws {
        try await withReceiver({ $0.uploads.maximumHeldBytes = 1000 }) { receiver in
            func post(_ count: Int) async throws -> RawResponse {
                let text = String(repeating: "x", count: count)
                return try await receiver.exchange(
                    Form.request(body: Form.part("Content-Disposition: form-data; name=\"a\"", text)))
            }
            for _ in 0..<3 {
                let refused = try await post(1000)
                #expect(refused.status == 503)
                #expect(refused.problem?.code == "too-much-text")
                #expect(refused.headers["retry-after"] != nil)
                #expect(try await post(900).status == 201)
            }
        }
    }

    @Test(arguments: [1, 3, 4095, 4096, 5000, 70_000])
    func `both ends of a body are kept in whatever pieces it comes`(pieceBytes: Int) {
        let body = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var builder = KeptBody.Builder()
        for start in stride(from: 0, to: body.count, by: pieceBytes) {
            let piece = body[start..<min(start + pieceBytes, body.count)]
            builder.take(ByteBuffer(bytes: piece), maximumEndBytes: 10_000)
        }
        let kept = builder.body(isComplete: true, maximumEndBytes: 10_000)
        #expect(kept.first == Array(body.prefix(10_000)))
        #expect(kept.last == Array(body.suffix(10_000)))
    }
}
