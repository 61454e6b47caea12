import Hummingbird
import NIOCore
import Testing

@testable import PostcardServer

/// What a sender who stalls costs, of whom there may be thousands.
struct StalledSenderTests {
    @Test(arguments: [1, 100, 1000, 2049, 4095])
    func `few bytes are held in a buffer less than twice as large`(count: Int) {
        let kept = ByteBuffer(repeating: 7, count: 64 << 10).getSlice(at: 100, length: count)?.kept
        #expect(kept?.readableBytes == count)
        #expect((kept?.capacity ?? .max) < 2 * count)
    }

    @Test(arguments: [1, 7, 1000])
    func `bytes that come in small pieces are gathered up to 4 KiB`(pieceBytes: Int) {
        var gathered = ByteBuffer(repeating: 0, count: pieceBytes).kept
        var count = 1
        while gathered.appendIfSmall(ByteBuffer(repeating: UInt8(truncatingIfNeeded: count), count: pieceBytes)) {
            count += 1
        }
        #expect(count == 4096 / pieceBytes)
        #expect(gathered.capacity <= 4096)
        #expect(gathered.readableBytesView.enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: $0 / pieceBytes) })
    }

    @Test func `many bytes are not copied, and take in no others`() {
        let large = ByteBuffer(repeating: 7, count: 4096)
        var kept = large.kept
        #expect(
            kept.readableBytesView.withUnsafeBytes(\.baseAddress)
                == large.readableBytesView.withUnsafeBytes(\.baseAddress))
        let isTaken = kept.appendIfSmall(ByteBuffer(repeating: 7, count: 1))
        #expect(!isTaken)
    }

    /// Every asynchronous function that may throw a problem has room for it in its frame, for as long as it waits.
    @Test func `a problem takes a single word, and is a value all the same`() {
        #expect(MemoryLayout<UploadProblem>.size == MemoryLayout<Int>.size)
        let problem = UploadProblem(status: 400, code: "some-code", detail: "Something.", fix: "Something else.")
        var other = problem
        other.fix = nil
        other.offset = 7
        other.partIndex = 1
        other.limit = UploadProblem.Limit(name: "some", value: 3)
        other.retryAfterSeconds = 5
        other.allowedMethods = ["GET"]
        other.challenge = "Bearer"
        #expect(problem.fix == "Something else." && problem.offset == nil && problem.allowedMethods.isEmpty)
        #expect(other.fix == nil && other.offset == 7 && other.partIndex == 1 && other.limit?.value == 3)
        #expect(other.retryAfterSeconds == 5 && other.allowedMethods == ["GET"] && other.challenge == "Bearer")
        #expect(other.code == "some-code" && other.status == 400 && other.detail == "Something." && other != problem)
    }
}
