import Testing

@testable import PostcardClient

@Suite struct TokenBucketTests {
    @Test(arguments: [1, 7, 19, 20, 21, 1_000, 1_000_003, 1 << 40])
    func `bursts follow one another at the rate`(rate: Int) {
        var bucket = TokenBucket(bytesPerSecond: rate)
        var now = Duration.zero
        var bytes = 0
        for _ in 0..<100 {
            now = max(now, bucket.take(at: now))
            // Two bursts go out before the first is paid for: one at once, one because nothing was sent before.
            #expect(bytes <= Int(now / .seconds(1) * Double(rate) * 1.000_001) + 2 * bucket.burst)
            bytes += bucket.burst
        }
        #expect(bytes >= Int(now / .seconds(1) * Double(rate) * 0.999_999))
    }

    @Test(arguments: [(1, 1), (19, 1), (1_000, 50), (1 << 20, 52_428)])
    func `a burst is a twentieth of a second's worth`(rate: Int, burst: Int) {
        #expect(TokenBucket(bytesPerSecond: rate).burst == burst)
    }

    @Test func `time in which nothing went out is not saved up`() {
        var bucket = TokenBucket(bytesPerSecond: 1_000)
        #expect(bucket.take(at: .seconds(3600)) <= .seconds(3600))
        #expect(bucket.take(at: .seconds(3600)) <= .seconds(3600))
        #expect(bucket.take(at: .seconds(3600)) == .seconds(3600) + .milliseconds(50))
    }

    @Test func `a late request catches up by one burst`() {
        var bucket = TokenBucket(bytesPerSecond: 1_000)
        #expect(bucket.take(at: .zero) == .zero)
        #expect(bucket.take(at: .milliseconds(90)) == .milliseconds(50))
        #expect(bucket.take(at: .milliseconds(90)) == .milliseconds(100))
        #expect(bucket.take(at: .milliseconds(290)) == .milliseconds(240))
    }

    @Test func `what is taken back shortens the wait of those who come`() {
        var bucket = TokenBucket(bytesPerSecond: 1_000)
        for _ in 0..<3 { _ = bucket.take(at: .zero) }
        bucket.giveBack(50)
        #expect(bucket.take(at: .zero) == .milliseconds(100))
    }
}
