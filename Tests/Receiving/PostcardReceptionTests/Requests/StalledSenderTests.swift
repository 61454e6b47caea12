import HTTPTypes
import NIOCore
import Testing

@testable import PostcardReception

/// The memory of a stalled sender, of which there may be thousands.
struct StalledSenderTests {
    @Test(arguments: [1, 100, 1000, 2049, 4095])
    func `a few bytes are kept in a buffer less than twice as large`(count: Int) {
        let kept = ByteBuffer(repeating: 7, count: 64 << 10).getSlice(at: 100, length: count)?.kept
        #expect(kept?.readableBytes == count)
        #expect((kept?.capacity ?? .max) < 2 * count)
    }

    @Test(arguments: [1, 7, 1000])
    func `bytes that arrive in small pieces are collected up to 4 KiB`(pieceBytes: Int) {
        var buffer = ByteBuffer(repeating: 0, count: pieceBytes).kept
        var count = 1
        while buffer.appendIfSmall(ByteBuffer(repeating: UInt8(truncatingIfNeeded: count), count: pieceBytes)) {
            count += 1
        }
        #expect(count == 4096 / pieceBytes)
        #expect(buffer.capacity <= 4096)
        #expect(buffer.readableBytesView.enumerated().allSatisfy { $1 == UInt8(truncatingIfNeeded: $0 / pieceBytes) })
    }

    @Test func `many bytes are not copied, and no others are appended to them`() {
        let large = ByteBuffer(repeating: 7, count: 4096)
        var kept = large.kept
        #expect(
            kept.readableBytesView.withUnsafeBytes(\.baseAddress)
                == large.readableBytesView.withUnsafeBytes(\.baseAddress))
        let isAppended = kept.appendIfSmall(ByteBuffer(repeating: 7, count: 1))
        #expect(!isAppended)
    }

    /// Every asynchronous function that may throw a problem reserves room for it in its frame while it waits.
    @Test func `a problem is as small as a pointer, and still a value`() {
        #expect(MemoryLayout<UploadProblem>.size == MemoryLayout<Int>.size)
        let problem = UploadProblem(status: 400, code: "some-code", message: "Something.", advice: "Something else.")
        var other = problem
        other.advice = nil
        other.offset = 7
        other.partIndex = 1
        other.limit = UploadProblem.Limit(name: "some", value: 3)
        other.retryAfterSeconds = 5
        other.allowedMethods = ["GET"]
        other.challenge = "Bearer"
        #expect(problem.advice == "Something else." && problem.offset == nil && problem.allowedMethods.isEmpty)
        #expect(other.advice == nil && other.offset == 7 && other.partIndex == 1 && other.limit?.value == 3)
        #expect(other.retryAfterSeconds == 5 && other.allowedMethods == ["GET"] && other.challenge == "Bearer")
        #expect(other.code == "some-code" && other.status == 400 && other.message == "Something." && other != problem)
    }
}
