import PostcardReceiver
import PostcardServer
import Testing

@Suite(.timeLimit(.minutes(10)))
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
}
