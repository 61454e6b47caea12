import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// The system ends an app that it has woken and that takes too long.
@Suite(.timeLimit(.minutes(10))) struct ShortWakeUpTests {
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let identifier = UUID().uuidString

    init() throws {
        folder = try TemporaryFolder()
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    private func queue(at time: QueueTime = QueueTime()) -> UploadQueue {
        UploadQueue(
            directory: directory, session: BackgroundSession(identifier: identifier), service: KeepingService(kept),
            time: time)
    }

    private func response() throws -> AttemptEnd {
        let url = try #require(URL(string: "https://example.com/uploads"))
        return .response(status: 201, headerFields: HTTPFields(), url: url, method: .post)
    }

    @Test func `a wake-up ends although the queue cannot be opened, and the events wait for the next time`()
        async throws
    {
        let url = try #require(URL(string: "https://example.com/uploads"))
        let first = queue()
        let id = try await first.enqueue(QueuedForms.form(), to: url)
        try await first.handOver()
        await first.disconnect()
        // Such as before the first unlock.
        let hidden = folder.url.appending(path: "hidden")
        try FileManager.default.moveItem(at: directory, to: hidden)
        try Data().write(to: directory)
        let second = queue()
        try kept.end(try response())
        await second.handleEvents()
        await #expect(throws: UploadQueueError.self) { try await second.handOver() }
        try FileManager.default.removeItem(at: directory)
        try FileManager.default.moveItem(at: hidden, to: directory)
        try await second.handOver()
        #expect(try await second.upload(id)?.state.isDone == true)
        await second.disconnect()
    }

    /// The clock does not move, so that the time for the wake-up is never over.
    @Test func `a wake-up ends when the system has reported all, and that is settled`() async throws {
        let clock = SteppedClock()
        let queue = queue(at: clock.time)
        let url = try #require(URL(string: "https://example.com/uploads"))
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        let calls = Mutex(0)
        BackgroundSessionRegistry.shared.wakeUp(identifier, at: clock.time) { calls.withLock { $0 += 1 } }
        try await queue.handOver()
        #expect(calls.withLock { $0 } == 0)
        try kept.end(try response())
        kept.report(.deliveredAll)
        try await queue.handOver()
        #expect(calls.withLock { $0 } == 1)
        #expect(try await queue.upload(id)?.state.isDone == true)
        await queue.disconnect()
    }

    @Test func `a wake-up ends in time although the app makes no queue with the session`() async {
        let (stream, continuation) = AsyncStream.makeStream(of: Never.self)
        BackgroundSessionRegistry.shared.wakeUp(identifier, at: QueueTime(sleep: { _ in })) { continuation.finish() }
        for await _ in stream {}
    }

    @Test func `a wake-up ends in time although the system's transfer service does not respond`() async throws {
        // The time is over at once.
        let queue = queue(at: QueueTime(sleep: { _ in }))
        let url = try #require(URL(string: "https://example.com/uploads"))
        let id = try await queue.withoutSession.enqueue(QueuedForms.form(), to: url)
        kept.setSilent(true)
        await queue.handleEvents()
        #expect(try await queue.upload(id)?.state == .waiting)
        kept.setSilent(false)
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .sending)
        await queue.disconnect()
    }
}
