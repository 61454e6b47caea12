import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardQueue

/// Which queue has the session, and what its end leaves.
extension HandOverTests {
    @Test func `what the system reports while a queue is closed is not lost`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let url = try Self.address()
        kept.beforeDisconnecting { [kept] in
            kept.endFirst(1, .response(status: 201, headerFields: HTTPFields(), url: url, method: .post))
        }
        await queue.disconnect()
        let state = try await UploadQueue(directory: folder.url.appending(path: "queue")).upload(id)?.state
        #expect(state?.name == "done")
    }

    @Test func `a run ends with the reason if the system does not carry the session`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let running = Task { try await queue.run() }
        try await eventually { !kept.handedOver.isEmpty }
        kept.invalidate(.inUse)
        let error = await #expect(throws: UploadQueueError.self) { try await running.value }
        #expect(error?.code == .sessionInUse && error?.advice?.contains("of its own") == true)
        await queue.disconnect()
    }

    // MARK: - Queues that are made again

    /// An app may make its queue again before it has released the one before.
    @Test(arguments: [false, true])
    func `a queue that is made again gets the events, also if the one before is closed late`(
        isClosedLate: Bool
    ) async throws {
        let first = queue()
        let id = try await first.enqueue(QueuedForms.form(), to: Self.address())
        try await first.handOver()
        let second = queue()
        if isClosedLate {
            try await second.handOver()
            await first.disconnect()
        } else {
            await first.disconnect()
            try await second.handOver()
        }
        try kept.end(try response(201))
        try await second.handOver()
        #expect(try await second.upload(id)?.state.isDone == true)
        #expect(try await second.upload(id)?.attempts == 1)
        await second.disconnect()
    }

    @Test func `a queue says so whose session a later queue uses, and cannot send with it`() async throws {
        let first = queue()
        try await first.enqueue(QueuedForms.form(), to: Self.address())
        let running = Task { try await first.run() }
        try await eventually { !kept.handedOver.isEmpty }
        let second = queue()
        let error = await #expect(throws: UploadQueueError.self) { try await running.value }
        #expect(error?.code == .inUse && error?.message.contains("later queue") == true)
        await #expect(throws: (any Error).self) { try await first.handOver() }
        try await second.handOver()
        #expect(kept.handedOver.count == 1)
        await second.disconnect()
    }

    // MARK: - Uploads that are done
}
