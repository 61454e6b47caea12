import NIOCore
import Testing

@testable import PostcardReception
@testable import PostcardServer

struct TransferRateTests {
    private let start = NIODeadline.uptimeNanoseconds(1_000_000_000)

    private func rate() -> TransferRate {
        var rate = TransferRate(minimumBytesPerSecond: 100, gracePeriod: .seconds(10))
        rate.bodyBegins(at: start)
        return rate
    }

    @Test func `no client is too slow before the grace period is over`() {
        var rate = rate()
        #expect(rate.check(at: start + .seconds(4)) == .seconds(6))
    }

    @Test(arguments: [(1000, true), (999, false)])
    func `the rate is checked at the end of the grace period`(bytes: Int, isFastEnough: Bool) {
        var rate = rate()
        rate.received(bytes)
        #expect((rate.check(at: start + .seconds(10)) != nil) == isFastEnough)
    }

    @Test func `a client that was fast at first cannot be slow forever`() {
        var rate = rate()
        rate.received(1_000_000)
        #expect(rate.check(at: start + .seconds(10)) == .seconds(10))
        #expect(rate.check(at: start + .seconds(20)) == nil)
    }

    @Test func `the time in which the server did not read is not counted`() {
        var rate = rate()
        rate.readingPauses(at: start)
        rate.readingPauses(at: start + .seconds(5))
        #expect(rate.check(at: start + .seconds(60)) == .seconds(10))
        rate.readingResumes(at: start + .seconds(60))
        #expect(rate.check(at: start + .seconds(69)) == .seconds(1))
        #expect(rate.check(at: start + .seconds(70)) == nil)
    }

    @Test func `without a minimum no client is too slow`() {
        var rate = TransferRate(minimumBytesPerSecond: 0, gracePeriod: .seconds(10))
        rate.bodyBegins(at: start)
        #expect(rate.check(at: start + .seconds(1000)) == .seconds(10))
    }
}
