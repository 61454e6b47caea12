import Testing

@testable import PostcardServer

struct TransferRateTests {
    private let start = ContinuousClock.now

    private func rate() -> TransferRate {
        var rate = TransferRate(minimumBytesPerSecond: 100, gracePeriod: .seconds(10))
        rate.bodyBegins(at: start)
        return rate
    }

    @Test func `nobody is judged before the grace is over`() {
        var rate = rate()
        #expect(rate.check(at: start + .seconds(4)) == .seconds(6))
    }

    @Test(arguments: [(1000, true), (999, false)])
    func `the rate counts at the end of the grace`(bytes: Int, isFastEnough: Bool) {
        var rate = rate()
        rate.received(bytes)
        #expect((rate.check(at: start + .seconds(10)) != nil) == isFastEnough)
    }

    @Test func `who was fast at first cannot be slow for ever`() {
        var rate = rate()
        rate.received(1_000_000)
        #expect(rate.check(at: start + .seconds(10)) == .seconds(10))
        #expect(rate.check(at: start + .seconds(20)) == nil)
    }

    @Test func `the time in which nobody read is not the sender's`() {
        var rate = rate()
        rate.readingPauses(at: start)
        rate.readingPauses(at: start + .seconds(5))
        #expect(rate.check(at: start + .seconds(60)) == .seconds(10))
        rate.readingResumes(at: start + .seconds(60))
        #expect(rate.check(at: start + .seconds(69)) == .seconds(1))
        #expect(rate.check(at: start + .seconds(70)) == nil)
    }

    @Test func `without a minimum everybody takes their time`() {
        var rate = TransferRate(minimumBytesPerSecond: 0, gracePeriod: .seconds(10))
        rate.bodyBegins(at: start)
        #expect(rate.check(at: start + .seconds(1000)) == .seconds(10))
    }
}
