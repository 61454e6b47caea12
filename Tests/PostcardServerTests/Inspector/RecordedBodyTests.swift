import NIOCore
import Testing

@testable import PostcardReceiver
@testable import PostcardServer

struct RecordedBodyTests {
    @Test(arguments: [1, 3, 4095, 4096, 5000, 70_000])
    func `both ends of a body are kept in whatever pieces it comes`(pieceBytes: Int) {
        let body = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var builder = RecordedBody.Builder()
        for start in stride(from: 0, to: body.count, by: pieceBytes) {
            let piece = body[start..<min(start + pieceBytes, body.count)]
            builder.take(ByteBuffer(bytes: piece), maximumEndBytes: 10_000)
        }
        let kept = builder.body(isComplete: true, maximumEndBytes: 10_000)
        #expect(kept.first == Array(body.prefix(10_000)))
        #expect(kept.last == Array(body.suffix(10_000)))
    }

    @Test func `what is kept of a body stays its two ends while more or less may be kept`() {
        let body = (0..<100_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var builder = RecordedBody.Builder()
        var start = 0
        for maximum in [10_000, 100, 50_000, 200, 70_000] {
            builder.take(ByteBuffer(bytes: body[start..<(start + 20_000)]), maximumEndBytes: maximum)
            start += 20_000
            let kept = builder.body(isComplete: false, maximumEndBytes: maximum)
            #expect(kept.length == Int64(start))
            #expect(kept.first == Array(body.prefix(kept.first.count)))
            #expect(kept.last == Array(body[..<start].suffix(kept.last.count)))
            #expect(kept.last.count <= maximum)
        }
    }
}
