import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

/// What follows attempts that failed, and uploads that are retried by hand.
extension HandOverTests {
    private static let firstEnds: [AttemptEnd] = [
        .failed(.connectionLost(to: URL(filePath: "/"), "it broke")), .interrupted(.cancelled),
        .response(status: 503, headerFields: HTTPFields(), url: nil, method: nil),
    ]

    /// The system repeats a request without a report, and loses the count of its bytes: what it has sent says nothing.
    @Test(arguments: firstEnds)
    func `a success counts, whatever became of the transfers before it`(end: AttemptEnd) async throws {
        let first = queue()
        let id = try await first.enqueue(QueuedForms.form(), to: Self.address())
        try await first.handOver()
        try kept.end(end)
        try await first.handOver()
        await first.disconnect()
        // The app's next process.
        let second = queue()
        try await second.handOver()
        try kept.end(try response(201))
        try await second.handOver()
        let upload = try #require(try await second.upload(id))
        #expect(upload.state.isDone && upload.attempts == 2, "\(upload.state)")
        await second.disconnect()
    }

    @Test func `after a 409, a form may have arrived that the system may have sent before`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        for attempt in 1...10 {
            try await queue.handOver()
            try kept.end(try response(409))
            try await queue.handOver()
            let upload = try #require(try await queue.upload(id))
            switch upload.state {
            case .retrying(_, let failure): #expect(failure.delivery.mayHaveArrived && attempt < 10)
            case .failed(let failure): #expect(failure.delivery.mayHaveArrived && failure.response?.status == 409)
            default: Issue.record("\(upload.state)")
            }
        }
        #expect(try await queue.upload(id)?.state.failure != nil)
        await queue.disconnect()
    }

    @Test func `an upload with a new address is done if the server at the old one has accepted it`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let attempt = try #require(kept.handedOver.first?.id)
        try await queue.retry(id, to: try #require(URL(string: "https://example.net/uploads")))
        try await queue.handOver()
        let url = try Self.address()
        kept.reportLate(
            attempt, Data("old".utf8),
            .response(status: 201, headerFields: [:], url: url, method: .post, requestURL: url))
        try await queue.handOver()
        let state = try #require(try await queue.upload(id)?.state)
        guard case .done(let response) = state else { Issue.record("\(state)"); return }
        #expect(response.body == Data("old".utf8) && kept.handedOver.isEmpty)
        await queue.disconnect()
    }

    @Test func `an upload that is retried by hand holds back those of its group that the system has`() async throws {
        let queue = queue()
        let first = try await queue.enqueue(
            QueuedForms.form("1"), to: Self.address(), conditions: UploadConditions(group: "g"))
        let second = try await queue.enqueue(
            QueuedForms.form("2"), to: Self.address(),
            conditions: UploadConditions(notBefore: Date(timeIntervalSinceNow: 3600), group: "g"))
        try await queue.cancel(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1 && kept.handedOver.first?.earliestBegin != nil)
        try await queue.retry(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1 && kept.handedOver.first?.earliestBegin == nil)
        try kept.end(try response(422))
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        #expect(try await queue.upload(second)?.state == .waiting)
        try await queue.cancel(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1 && kept.handedOver.first?.earliestBegin != nil)
        await queue.disconnect()
    }

    @Test func `an upload that was being sent when an earlier one was retried waits for it after a failure`()
        async throws
    {
        let queue = queue()
        let (first, second) = try await (
            queue.enqueue(QueuedForms.form("1"), to: Self.address(), conditions: UploadConditions(group: "g")),
            queue.enqueue(QueuedForms.form("2"), to: Self.address(), conditions: UploadConditions(group: "g"))
        )
        try await queue.cancel(first)
        try await queue.handOver()
        try await queue.retry(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 2)
        // The second one is still being sent, and fails before the first.
        let url = try Self.address()
        kept.endFirst(
            1, .response(status: 503, headerFields: [.retryAfter: "120"], url: url, method: .post))
        try await queue.handOver()
        #expect(try await queue.upload(second)?.state.isRetrying == true && kept.handedOver.count == 1)
        try kept.end(try response(422))
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        try await queue.cancel(first)
        try await queue.handOver()
        // It still waits as long as the server has said.
        let begin = try #require(kept.handedOver.first?.earliestBegin)
        #expect(begin > Date(timeIntervalSinceNow: 60) && kept.handedOver.count == 1)
        await queue.disconnect()
    }

    @Test func `the deadline of an upload that never began does not pass while it is held back`() async throws {
        let clock = SteppedClock()
        var policy = RetryPolicy.persistent
        policy.deadline = .seconds(3600)
        let queue = queue(policy: policy, time: clock.time)
        let first = try await queue.enqueue(
            QueuedForms.form("1"), to: Self.address(), conditions: UploadConditions(group: "g"))
        let second = try await queue.enqueue(
            QueuedForms.form("2"), to: Self.address(),
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(3600), group: "g"))
        try await queue.cancel(first)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        try await queue.retry(first)
        try await queue.handOver()
        clock.advance(by: .seconds(3 * 3600))
        try kept.end(try response(201))
        try await queue.handOver()
        #expect(try await queue.upload(second)?.state == .sending && kept.handedOver.count == 1)
        await queue.disconnect()
    }

    @Test func `an upload that is retried by hand before its time still waits for it`() async throws {
        let server = try await ReceivingServer()
        let clock = SteppedClock()
        let queue = UploadQueue(directory: folder.url, session: nil, service: nil, time: clock.time)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: server.uploads,
            conditions: UploadConditions(notBefore: clock.date.addingTimeInterval(60)))
        try await queue.cancel(id)
        try await queue.retry(id)
        try await queue.run(UploadClient(), options: .draining)
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state == .waiting && upload.attempts == 0)
        clock.advance(by: .seconds(61))
        try await queue.run(UploadClient(), options: .draining)
        #expect(try await queue.upload(id)?.state.isDone == true)
    }

    @Test func `an upload that expires after it was retried has no response of an earlier failure`() async throws {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(expires: clock.date.addingTimeInterval(60)))
        try await queue.handOver()
        try kept.end(try response(401))
        try await queue.handOver()
        guard case .failed(let refusal) = try await queue.upload(id)?.state else { Issue.record("It has not."); return }
        #expect(refusal.response?.status == 401)
        try await queue.retry(id)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        guard case .failed(let failure) = try await queue.upload(id)?.state else { Issue.record("It has not."); return }
        #expect(failure.code == .expired && failure.response == nil)
        await queue.disconnect()
    }

    @Test func `an upload that expires between two attempts has no response of the first`() async throws {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        let id = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(expires: clock.date.addingTimeInterval(60)))
        try await queue.handOver()
        try kept.end(try response(503))
        clock.advance(by: .seconds(61))
        try await queue.handOver()
        try await queue.handOver()
        guard case .failed(let failure) = try await queue.upload(id)?.state else { Issue.record("It has not."); return }
        #expect(failure.code == .expired && failure.response == nil)
        await queue.disconnect()
    }

    // MARK: - What an app can show
}
