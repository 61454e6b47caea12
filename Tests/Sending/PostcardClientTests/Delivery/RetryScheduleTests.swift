import Foundation
import HTTPTypes
import PostcardTestSupport
import PostcardWire
import Testing

@testable import PostcardClient

@Suite struct RetryScheduleTests {
    private static let resource = URL(string: "http://example.org/uploads/1")
    private static let other = URL(string: "http://example.org/uploads/2")

    @Test(
        arguments: [
            ([.neverArrived, .refused], .refused), ([.refused, .neverArrived], .neverArrived),
            ([.responseLost, .refused], .responseLost(resource: nil)),
            ([.responseLost, .neverArrived, .responseLost], .responseLost(resource: nil)),
            ([.responseLost, .accepted], .accepted), ([.accepted, .refused], .accepted),
        ] as [([UploadError.Delivery], PossibleDelivery)])
    func `no later failure says what became of a form whose response was lost`(
        failures: [UploadError.Delivery], expected: PossibleDelivery
    ) {
        var delivery = PossibleDelivery.neverArrived
        for (index, failure) in failures.enumerated() {
            delivery.add(failure, resource: index == 0 ? Self.resource : Self.other)
        }
        #expect(delivery == expected)
    }

    @Test func `only the upload resource that a form was sent to can say that it did not arrive`() throws {
        let resource = try #require(Self.resource)
        let other = try #require(Self.other)
        for (delivery, server, expected) in [
            (.responseLost(resource: resource), resource, .neverArrived),
            (.responseLost(resource: resource), other, .responseLost(resource: resource)),
            (.responseLost(resource: nil), resource, .responseLost(resource: nil)), (.accepted, resource, .accepted),
        ] as [(PossibleDelivery, URL, PossibleDelivery)] {
            var delivery = delivery
            delivery.ruleOut(server)
            #expect(delivery == expected)
        }
    }

    /// A failure of an attempt at random.
    private static func failure(using chance: inout SeededGenerator) -> RetrySchedule.Failure {
        let codes: [UploadError.Code] = [
            .connectionLost, .connectionFailed, .timedOut, .tls, .earlyResponse, .decoding,
        ]
        var error: UploadError
        if Bool.random(using: &chance) {
            let status = [401, 409, 409, 422, 500, 503].randomElement(using: &chance) ?? 503
            var fields = HTTPFields()
            if Int.random(in: 0..<3, using: &chance) == 0 {
                fields[.retryAfter] = "\(Int.random(in: 0...200, using: &chance))"
            }
            error = UploadError(
                .refused, "refused",
                response: UploadResponse(status: .init(code: status), headerFields: fields, body: Data()))
        } else {
            error = UploadError(codes.randomElement(using: &chance) ?? .tls, "failed")
        }
        if Int.random(in: 0..<3, using: &chance) == 0 { error.delivery = .responseLost }
        if Int.random(in: 0..<20, using: &chance) == 0 { error.delivery = .accepted }
        var failure = RetrySchedule.Failure(error)
        switch Int.random(in: 0..<6, using: &chance) {
        case 0: failure.wish = .retry(after: .seconds(Int.random(in: 0...30, using: &chance)))
        case 1: failure.wish = .giveUp
        default: break
        }
        failure.isReplayable = Int.random(in: 0..<20, using: &chance) > 0
        return failure
    }

    /// Plays a history until the upload fails, and returns its delays.
    private static func play(seed: UInt64) throws -> [Duration] {
        let url = try #require(URL(string: "http://example.org/"))
        var chance = SeededGenerator(seed: seed)
        var policy = RetryPolicy(maximumAttempts: Int.random(in: 1...12, using: &chance))
        policy.maximumConflicts = Int.random(in: 1...4, using: &chance)
        policy.maximumInterceptorRetries = Int.random(in: 0...3, using: &chance)
        if Bool.random(using: &chance) { policy.deadline = .seconds(Int.random(in: 1...300, using: &chance)) }
        let total = Bool.random(using: &chance) ? Duration.seconds(Int.random(in: 1...300, using: &chance)) : nil
        let schedule = RetrySchedule(policy, for: url, totalTimeout: total)
        var history = RetrySchedule.History()
        var elapsed = Duration.zero
        var delays: [Duration] = []
        var wishes = 0
        while true {
            elapsed += .seconds(Int.random(in: 0...20, using: &chance))
            let failure = failure(using: &chance)
            let hasArrived = history.delivery == .accepted || failure.error.delivery == .accepted
            history.add(failure)
            guard
                case .retry(let delay) = schedule.next(after: failure, history, elapsed: elapsed, using: &chance)
            else { return delays }
            let wasWished = failure.wish != .passOn
            if wasWished {
                wishes += 1
                history.interceptorRetries += 1
            }
            elapsed += delay
            delays.append(delay)
            #expect(!hasArrived && failure.wish != .giveUp && failure.isReplayable, "seed \(seed)")
            #expect(policy.deadline.map { elapsed <= $0 } ?? true, "seed \(seed)")
            #expect(total.map { elapsed < $0 } ?? true, "seed \(seed)")
            #expect(wasWished || history.failures < policy.maximumAttempts, "seed \(seed)")
            #expect(wishes <= policy.maximumInterceptorRetries && history.conflicts < 5, "seed \(seed)")
        }
    }

    @Test func `no random history goes beyond its limits, and the same seed gives the same history`() throws {
        var retries = 0
        for seed in 0..<UInt64(20_000) {
            let delays = try Self.play(seed: seed)
            retries += delays.count
            if seed < 100 { #expect(try Self.play(seed: seed) == delays) }
        }
        #expect(retries > 10_000)
    }

    @Test func `a conflict that lasts is met as often as the policy says, unless the server names a time`() throws {
        var policy = RetryPolicy(maximumAttempts: 100)
        policy.maximumConflicts = 3
        let schedule = RetrySchedule(policy, for: try #require(Self.resource), totalTimeout: nil)
        var history = RetrySchedule.History(after: .responseLost(resource: nil))
        var chance = SeededGenerator(seed: 1)
        /// Whether the form is sent again after a 409.
        func isRetried(_ fields: HTTPFields = [:]) -> Bool {
            let response = UploadResponse(status: .conflict, headerFields: fields, body: Data())
            let failure = RetrySchedule.Failure(UploadError(.refused, "in progress", response: response))
            history.add(failure)
            if case .retry = schedule.next(after: failure, history, elapsed: .zero, using: &chance) { return true }
            return false
        }
        // A time begins the count again.
        let retried = [isRetried(), isRetried(), isRetried([.retryAfter: "1"]), isRetried(), isRetried(), isRetried()]
        #expect(retried == [true, true, true, true, true, false])
    }

    @Test(arguments: [.passOn, .giveUp, .retry(after: .zero)] as [UploadDecision])
    func `what ends because of an interceptor's decision is tried again by no other schedule`(
        decision: UploadDecision
    ) throws {
        let url = try #require(Self.resource)
        var policy = RetryPolicy.never
        policy.maximumInterceptorRetries = 0
        var failure = RetrySchedule.Failure(UploadError(.connectionFailed, "failed"))
        failure.wish = decision
        var history = RetrySchedule.History()
        history.add(failure)
        var chance = SeededGenerator(seed: 1)
        let first = RetrySchedule(policy, for: url).next(after: failure, history, elapsed: .zero, using: &chance)
        guard case .fail(let error) = first else {
            Issue.record("It is tried again.")
            return
        }
        // A queue has a schedule of its own.
        let second = RetrySchedule(.persistent, for: url).next(
            after: RetrySchedule.Failure(error), history, elapsed: .zero, using: &chance)
        let isTriedAgain = if case .retry = second { true } else { false }
        #expect(isTriedAgain == (decision == .passOn))
    }

    @Test(arguments: [
        ("https://example.com/a", "https://EXAMPLE.com:443/b", true),
        ("http://example.com", "http://example.com:80/", true),
        ("http://example.com/", "https://example.com/", false),
        ("https://example.com/", "https://example.com:8443/", false),
        ("https://example.com/", "https://example.org/", false), ("http://[::1]/", "http://[::1]:80/", true),
        ("https://me:secret@example.com/", "https://example.com/", true),
    ])
    func `an origin is the scheme, the host and the port`(first: String, second: String, isSame: Bool) throws {
        let (first, second) = (try #require(URL(string: first)), try #require(URL(string: second)))
        #expect(first.hasOrigin(of: second) == isSame)
    }
}
