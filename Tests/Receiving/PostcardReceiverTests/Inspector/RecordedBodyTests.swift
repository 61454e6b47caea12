import HTTPTypes
import Hummingbird
import NIOCore
import Testing

@testable import PostcardReceiver
@testable import PostcardReception
@testable import PostcardServer

struct RecordedBodyTests {
    @Test(arguments: [1, 3, 4095, 4096, 5000, 70_000])
    func `both ends of a body are kept in whatever pieces it comes`(pieceBytes: Int) {
        let body = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        var builder = RecordedBody.Builder()
        for start in stride(from: 0, to: body.count, by: pieceBytes) {
            let piece = body[start..<min(start + pieceBytes, body.count)]
            builder.take(ByteBuffer(bytes: piece), maximumEndBytes: 10_000, maximumBytes: 50_000)
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
            let piece = ByteBuffer(bytes: body[start..<(start + 20_000)])
            builder.take(piece, maximumEndBytes: maximum, maximumBytes: 0)
            start += 20_000
            let kept = builder.body(isComplete: false, maximumEndBytes: maximum)
            #expect(kept.length == Int64(start))
            #expect(kept.first == Array(body.prefix(kept.first.count)))
            #expect(kept.last == Array(body[..<start].suffix(kept.last.count)))
            #expect(kept.last.count <= maximum)
        }
    }

    @Test(arguments: [1, 4095, 5000, 70_000])
    func `a body is kept whole up to the share of its request, and not longer`(pieceBytes: Int) {
        let body = (0..<70_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        for (maximum, isWhole) in [(70_000, true), (69_999, false)] {
            var builder = RecordedBody.Builder()
            for start in stride(from: 0, to: body.count, by: pieceBytes) {
                let piece = ByteBuffer(bytes: body[start..<min(start + pieceBytes, body.count)])
                builder.take(piece, maximumEndBytes: 10_000, maximumBytes: maximum)
            }
            #expect(builder.wholeBytes == (isWhole ? body.count : 0))
            let kept = builder.body(isComplete: true, maximumEndBytes: 10_000)
            #expect(kept.bytes == (isWhole ? body : nil))
            #expect(kept.length == 70_000)
        }
    }

    @Test func `of a whole body both ends are left, and what is around its problems`() throws {
        let bytes = (0..<10_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        let whole = RecordedBody(
            pieces: [.init(offset: 0, bytes: bytes)], length: Int64(bytes.count), isComplete: true)
        let cut = whole.cut(toEnds: 1000, around: [9_999, 5_050, 1_050, 5_000, 0, 7_000], reach: 100)
        #expect(cut.pieces.map(\.range) == [0..<1000, 1000..<1150, 4900..<5150, 6900..<7100, 9000..<10_000])
        for piece in cut.pieces { #expect(piece.bytes == Array(bytes[Int(piece.offset)...].prefix(piece.bytes.count))) }
        #expect(cut.bytes == nil && cut.first == Array(bytes.prefix(1000)) && cut.last == Array(bytes.suffix(1000)))
        #expect(try #require(cut.bytes(around: 1050, reach: 100)).range == 950..<1150)
        #expect(try #require(cut.bytes(around: 10_000, reach: 100)).range == 9900..<10_000)
        #expect(cut.bytes(around: 6_000, reach: 100) == nil)
        #expect(whole.cut(toEnds: 6000, around: [5], reach: 100).bytes == bytes)
    }

    @Test func `all requests in progress keep no more bytes together than may be recorded`() async throws {
        var options = InspectionOptions()
        options.maximumBytes = 1 << 20
        let inspector = RequestInspector(options: options) { _ in }
        var recorders: [RequestRecorder] = []
        // Each keeps what it has while the next one begins.
        for _ in 0..<50 {
            let chunk = ByteBuffer(repeating: 1, count: 8 << 10)
            let request = Request(
                head: HTTPRequest(method: .post, scheme: nil, authority: nil, path: "/uploads"),
                body: RequestBody(
                    asyncSequence: AsyncStream { continuation in
                        for _ in 0..<256 { continuation.yield(chunk) }
                        continuation.finish()
                    }))
            let recorder = RequestRecorder(request, for: inspector)
            for _ in 0..<40 { _ = try await recorder.next() }
            recorders.append(recorder)
            #expect(inspector.wholeBytesInProgress <= options.maximumBytes / 2)
        }
        #expect(inspector.wholeBytesInProgress > 0)
        while try await recorders[0].next() != nil {}
        recorders = []
        #expect(inspector.wholeBytesInProgress == 0)
    }
}
