import Foundation
import HTTPTypes
import Testing

@testable import PostcardClient

@Suite struct RetryPolicyTests {
    /// Chance that always says the same.
    private struct Fixed: RandomNumberGenerator {
        let value: UInt64
        mutating func next() -> UInt64 { value }
    }

    @Test(arguments: [(1, 500), (2, 1_000), (3, 2_000), (7, 30_000), (1_000, 30_000)])
    func `the longest wait doubles up to its maximum`(attempt: Int, milliseconds: Int) {
        var chance = Fixed(value: 0)
        let delay = RetryPolicy(maximumAttempts: 9).delay(after: attempt, retryAfter: nil, using: &chance)
        #expect(delay == .milliseconds(milliseconds))
    }

    @Test func `chance shortens a wait by the jitter's share and no more`() {
        var chance = Fixed(value: .max)
        var policy = RetryPolicy(maximumAttempts: 9)
        policy.firstDelay = .seconds(8)
        policy.jitter = 0.25
        let shortest = policy.delay(after: 1, retryAfter: nil, using: &chance)
        #expect(shortest >= .seconds(6) && shortest < .milliseconds(6_001))
        var system = SystemRandomNumberGenerator()
        for _ in 0..<1_000 {
            let delay = policy.delay(after: 1, retryAfter: nil, using: &system)
            #expect(delay >= .seconds(6) && delay <= .seconds(8))
        }
    }

    @Test func `the server's wait goes before the policy's, up to a maximum`() {
        var chance = Fixed(value: 0)
        var policy = RetryPolicy(maximumAttempts: 9)
        policy.maximumRetryAfter = .seconds(10)
        #expect(policy.delay(after: 1, retryAfter: .seconds(7), using: &chance) == .seconds(7))
        #expect(policy.delay(after: 1, retryAfter: .seconds(11), using: &chance) == .seconds(10))
        #expect(policy.delay(after: 1, retryAfter: .zero, using: &chance) == .zero)
    }

    @Test(
        arguments: [
            ("0", 0), ("120", 120), ("Sun, 06 Nov 1994 08:49:37 GMT", 37), ("Sunday, 06-Nov-94 08:49:37 GMT", 37),
            ("Sun Nov  6 08:49:37 1994", 37), ("Sun, 06 Nov 1994 08:48:00 GMT", 0),
            ("-1", nil), ("soon", nil), ("", nil), ("+5", nil),
            ("9999999999", 999_999_999), ("99999999999999999999", 999_999_999),
            ("Sun, 06 Foo 1994 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 08:49 GMT", nil), ("1.5", nil), ("Sun, 32 Nov 1994 08:49:37 GMT", nil),
            ("Sun, 06 Nov 1994 9223372036854775807:49:37 GMT", nil), ("Sun, 06 Nov 1994 08:60:37 GMT", nil),
            ("Sun, 06 Nov 1994 08:49:61 GMT", nil),
        ] as [(String, Int?)])
    func `Retry-After is seconds or a date, counted from the response's own`(value: String, seconds: Int?) {
        let response = UploadResponse(
            status: .serviceUnavailable,
            headerFields: [.retryAfter: value, .date: "Sun, 06 Nov 1994 08:49:00 GMT"], body: Data())
        #expect(response.retryAfter() == seconds.map { .seconds($0) })
    }

    @Test func `without a date of its own the response's wait is counted from now`() {
        let now = Date(timeIntervalSince1970: 784_111_770)
        let response = UploadResponse(
            status: .serviceUnavailable, headerFields: [.retryAfter: "Sun, 06 Nov 1994 08:49:37 GMT"], body: Data())
        #expect(response.retryAfter(now: now) == .seconds(7))
    }
}
