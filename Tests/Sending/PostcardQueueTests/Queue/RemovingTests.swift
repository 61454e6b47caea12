import Foundation
import HTTPTypes
import PostcardTestSupport
import Testing

@testable import PostcardQueue

/// What an app removes from its queue, and what stays.
@Suite(.timeLimit(.minutes(10))) struct RemovingTests {
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/uploads"))
    }

    private func queue() -> UploadQueue {
        UploadQueue(
            directory: folder.url.appending(path: "queue"), session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(kept))
    }

    private var bodies: Int {
        get throws {
            try FileManager.default.contentsOfDirectory(atPath: folder.url.appending(path: "queue/bodies").path).count
        }
    }

    /// A queue with an upload that is done, one that has failed, one that was cancelled and one that is being sent.
    private func filledQueue() async throws -> UploadQueue {
        let queue = queue()
        for status in [201, 422] {
            try await queue.enqueue(QueuedForms.form(), to: url)
            try await queue.handOver()
            try kept.end(.response(status: status, headerFields: [:], url: url, method: .post))
            try await queue.handOver()
        }
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: url) }
        try await queue.cancel(3)
        try await queue.handOver()
        #expect(try await queue.uploads().map(\.state.name) == ["done", "failed", "cancelled", "sending"])
        return queue
    }

    @Test func `only what is done is cleared unless the app names other states`() async throws {
        let queue = try await filledQueue()
        #expect(try await queue.clear() == 1)
        #expect(try await queue.uploads().map(\.id) == [2, 3, 4])
        #expect(try bodies == 3)
        #expect(try await queue.clear([.cancelled, .done]) == 1)
        #expect(try await queue.bodyExists(2))
        #expect(try await queue.clear(.ended) == 1)
        #expect(try await queue.uploads().map(\.id) == [4])
        #expect(try bodies == 1 && kept.handedOver.count == 1)
        await queue.disconnect()
    }

    @Test(arguments: Array(Int64(1)...4))
    func `an upload in any state can be removed, and the others stay`(id: QueuedUpload.ID) async throws {
        let queue = try await filledQueue()
        let bodies = try bodies
        try await queue.remove(id)
        #expect(try await queue.uploads().map(\.id) == [1, 2, 3, 4].filter { $0 != id })
        #expect(try self.bodies == (id == 1 ? bodies : bodies - 1))
        let error = await #expect(throws: UploadQueueError.self) { try await queue.remove(id) }
        #expect(error?.code == .unknownUpload)
        // The system stops.
        try await queue.handOver()
        #expect(kept.handedOver.count == (id == 4 ? 0 : 1))
        await queue.disconnect()
    }

    @Test func `uploads that are being sent are stopped when their state is cleared`() async throws {
        let queue = try await filledQueue()
        #expect(try await queue.clear([.sending, .waiting]) == 1)
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        // What the system reports of it changes nothing.
        await queue.disconnect()
        #expect(try await queue.uploads().map(\.id) == [1, 2, 3])
    }

    @Test func `the next upload of a group follows one that was removed`() async throws {
        let queue = queue()
        let conditions = UploadConditions(group: "pets")
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: url, conditions: conditions) }
        try await queue.handOver()
        try kept.end(.response(status: 422, headerFields: [:], url: url, method: .post))
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        try await queue.remove(1)
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        await queue.disconnect()
    }
}
