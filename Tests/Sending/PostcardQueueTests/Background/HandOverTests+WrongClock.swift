import Foundation
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

/// What becomes of uploads that the system has when the clock was wrong.
extension HandOverTests {
    /// Leaves an upload that the system has for a year, in a queue with a ``SteppedClock``.
    private func misdate(
        _ queue: UploadQueue, _ conditions: UploadConditions = UploadConditions(), to address: URL? = nil
    ) async throws -> QueuedUpload.ID {
        let id = try await queue.enqueue(
            QueuedForms.form(), to: address ?? Self.address(), conditions: conditions)
        try await queue.handOver()
        try kept.end(.failed(.connectionLost(to: Self.address(), "it broke")))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [2])
        #expect(try #require(kept.handedOver.first?.earliestBegin) > Date(timeIntervalSinceNow: 30_000_000))
        return id
    }

    @Test func `a retry begins soon when the clock was a year ahead and is right again`() async throws {
        kept.setResumeData(Data("rest".utf8))
        let first = queue(time: SteppedClock().time)
        _ = try await misdate(first)
        await first.disconnect()
        let queue = queue()
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [3])
        // The end of the attempt that the system had may still be reported.
        #expect(try #require(kept.handedOver.first?.earliestBegin) < Date(timeIntervalSinceNow: 6))
        #expect(kept.handedOver.first?.resumeData == Data("rest".utf8))
        await queue.disconnect()
    }

    @Test func `a retry begins soon when the clock is set back while the app runs`() async throws {
        let clock = SteppedClock()
        let queue = queue(time: clock.time)
        _ = try await misdate(queue)
        clock.advance(by: .seconds(-31_536_000))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [3])
        let begin = try #require(kept.handedOver.first?.earliestBegin)
        #expect(abs(begin.timeIntervalSince(clock.date) - 5) < 0.001)
        await queue.disconnect()
    }

    @Test func `an upload that was paused while it was sent is sent soon when the clock is right again`() async throws {
        let clock = SteppedClock()
        // None is handed over before it is due.
        let queue = queue(maximumOpen: 1, time: clock.time)
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        try kept.end(.failed(.connectionLost(to: Self.address(), "it broke")))
        try await queue.handOver()
        clock.advance(by: .seconds(60))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .sending)
        try await queue.pause()
        clock.advance(by: .seconds(-31_536_000))
        try await queue.resume()
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        clock.advance(by: .seconds(6))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [3])
        await queue.disconnect()
    }

    @Test func `the deadline counts from now if the first attempt was made while the clock was ahead`() async throws {
        let clock = SteppedClock()
        var policy = RetryPolicy.persistent
        policy.deadline = .seconds(3600)
        let queue = queue(policy: policy, time: clock.time)
        let id = try await misdate(queue)
        clock.advance(by: .seconds(-31_536_000))
        try await queue.handOver()
        clock.advance(by: .seconds(7200))
        try kept.end(.failed(.connectionLost(to: Self.address(), "it broke")))
        try await queue.handOver()
        let reason = try #require(try await queue.upload(id)?.state.failure)
        #expect(reason.contains("3600 seconds after the first"), "\(reason)")
        await queue.disconnect()
    }

    @Test(arguments: [false, true])
    func `what is done after the clock was ahead is listed before what was done then`(
        isSameProcess: Bool
    ) async throws {
        let clock = SteppedClock()
        func open() -> UploadQueue {
            UploadQueue(
                directory: folder.url, session: BackgroundSession(identifier: identifier),
                service: KeepingService(kept), retention: UploadRetention(maximumCount: 1), time: clock.time)
        }
        var queue = open()
        let (first, second) = try await (
            queue.enqueue(QueuedForms.form(), to: Self.address()), queue.enqueue(QueuedForms.form(), to: Self.address())
        )
        try await queue.handOver()
        kept.endFirst(1, try response(201))
        try await queue.handOver()
        try await queue.acknowledge(try await queue.uploads())
        #expect(try await queue.uploads().map(\.id) == [first, second])
        if !isSameProcess { await queue.disconnect() }
        clock.advance(by: .seconds(-31_536_000))
        if !isSameProcess { queue = open() }
        try kept.end(try response(201))
        try await queue.handOver()
        try await queue.acknowledge(try await queue.uploads())
        #expect(try await queue.uploads().map(\.id) == [second])
        await queue.disconnect()
    }

    @Test func `a retry whose upload has a time of its own waits for it when the clock is right again`() async throws {
        let time = Date(timeIntervalSinceNow: 500_000)
        let first = queue(time: SteppedClock().time)
        _ = try await misdate(first, UploadConditions(notBefore: time))
        await first.disconnect()
        // Once, and not with each process.
        for _ in 0..<2 {
            let queue = queue()
            try await queue.handOver()
            let begin = try #require(kept.handedOver.first?.earliestBegin)
            #expect(kept.handedOver.map(\.id.number) == [3] && abs(begin.timeIntervalSince(time)) < 1)
            await queue.disconnect()
        }
    }

    @Test func `a retry for which the policy allows such a delay is left with the system`() async throws {
        let clock = SteppedClock()
        var policy = RetryPolicy.persistent
        policy.maximumRetryAfter = .seconds(40_000_000)
        let queue = queue(policy: policy, time: clock.time)
        _ = try await misdate(queue)
        clock.advance(by: .seconds(-31_536_000))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.id.number) == [2])
        await queue.disconnect()
    }

    @Test func `a sender in this process leaves another's retry to its session when the clock is right`() async throws {
        let server = try await ReceivingServer()
        let first = queue(time: SteppedClock().time)
        let id = try await misdate(first, to: server.uploads)
        await first.disconnect()
        let local = UploadQueue(directory: folder.url.appending(path: "queue"))
        let other = try await local.enqueue(QueuedForms.form(), to: server.uploads)
        try await local.run(UploadClient(), options: .draining)
        #expect(try await local.upload(other)?.state.isDone == true)
        let upload = try #require(try await local.upload(id))
        #expect(upload.state.isRetrying && upload.attempts == 2)
    }

    @Test func `a sender in this process sends a retry soon when the clock is right again`() async throws {
        let server = try await ReceivingServer()
        let clock = SteppedClock()
        let first = queue(time: clock.time)
        let id = try await first.withoutSession.enqueue(QueuedForms.form(), to: server.uploads)
        kept.refuseNext { throw CocoaError(.fileReadNoPermission) }
        try await first.handOver()
        await first.disconnect()
        #expect(kept.handedOver.isEmpty)
        clock.advance(by: .seconds(-31_536_000))
        let local = UploadQueue(
            directory: folder.url.appending(path: "queue"), session: nil, service: nil, time: clock.time)
        #expect(try await local.upload(id)?.state.isRetrying == true)
        let running = Task { try await local.run(UploadClient(), options: .draining) }
        // The queue before has slept too.
        await clock.waitForSleep(ofAtMost: .seconds(10))
        guard case .retrying(let due, _) = try await local.upload(id)?.state else { Issue.record("It is not."); return }
        #expect(abs(due.timeIntervalSince(clock.date) - 5) < 0.001)
        clock.advance(by: .seconds(31_600_000))
        try await running.value
        #expect(try await local.upload(id)?.state.isDone == true)
    }
}
