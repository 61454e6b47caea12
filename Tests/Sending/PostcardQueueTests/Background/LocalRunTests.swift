import Foundation
import HTTPTypes
import PostcardFoundation
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// A queue whose app sends as long as the system lets it, and whose session takes over then.
@Suite(.timeLimit(.minutes(10))) struct LocalRunTests {
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

    /// Begins to send in this process.
    private func run(_ queue: UploadQueue, _ server: Server) async throws -> Task<Void, any Error> {
        let sending = Task { try await queue.run(UploadClient(transport: server)) }
        let sender = try #require(queue.sender)
        while !sender.isProcessSending { await Task.yield() }
        return sending
    }

    /// A server that says nothing until the sender gives up, or has the form at once.
    private struct Server: UploadTransport {
        let requests = AsyncStream.makeStream(of: String.self)
        var isSilent = true

        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            requests.continuation.yield(request.headerFields[.idempotencyKey] ?? "")
            if isSilent { try await Task.sleep(for: .seconds(3600)) }
            return UploadResponse(status: .created, headerFields: HTTPFields(), body: Data())
        }

        func next() async throws -> String {
            for await key in requests.stream { return key }
            throw CancellationError()
        }
    }

    @Test func `the session gets nothing while the app sends, and what is left when the time for that is over`()
        async throws
    {
        let queue = queue()
        let server = Server()
        let sending = try await run(queue, server)
        try await queue.enqueue(QueuedForms.form(), to: url)
        let key = try await server.next()
        // As a screen does, and an intent that enqueues.
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        sending.cancel()
        await #expect(throws: CancellationError.self) { try await sending.value }
        try await queue.handOver()
        #expect(kept.handedOver.count == 1)
        #expect(kept.handedOver.first?.headerFields[.idempotencyKey] == key)
        #expect(kept.handedOver.first?.id.number == 2)
        // Never both: what the session has stays with it.
        let again = Server()
        let rest = try await run(queue, again)
        try await queue.enqueue(QueuedForms.form(), to: url)
        #expect(try await again.next() != key)
        rest.cancel()
        _ = await rest.result
        kept.endFirst(1, .response(status: 201, headerFields: [:], url: url, method: .post))
        try await queue.handOver()
        #expect(try await queue.uploads().map(\.state.name) == ["done", "sending"])
        await queue.disconnect()
    }

    @Test func `what the app sends by itself is done without the session`() async throws {
        let queue = queue()
        var server = Server()
        server.isSilent = false
        let sending = try await run(queue, server)
        try await queue.enqueue(QueuedForms.form(), to: url)
        _ = try await server.next()
        while try await queue.doneCount == 0 { await Task.yield() }
        sending.cancel()
        _ = await sending.result
        #expect(kept.handedOver.isEmpty)
        await queue.disconnect()
    }

    @Test func `what the app sends by itself goes on for a while when the user leaves`() async throws {
        let begun = Atomic(0)
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        try await queue.enqueue(QueuedForms.form(), to: url)
        var server = Server()
        server.isSilent = false
        var client = UploadClient(transport: server)
        client.network.continuesInBackground = true
        client.network.activity = ExpiringActivity(
            SystemActivity { _ in
                begun.add(1, ordering: .relaxed)
                return {}
            })
        try await queue.run(client, options: QueueOptions(endsWhenEmpty: true))
        #expect(try await queue.doneCount == 1)
        #expect(begun.load(ordering: .relaxed) == 1)
    }

    @Test func `what a process sent that was killed meanwhile is handed over by the next one`() async throws {
        let first = queue()
        let server = Server()
        let sending = try await run(first, server)
        try await first.enqueue(QueuedForms.form(), to: url)
        let key = try await server.next()
        // The copy is what a kill leaves.
        let copy = folder.url.appending(path: "copy")
        try FileManager.default.copyItem(at: folder.url.appending(path: "queue"), to: copy)
        sending.cancel()
        _ = await sending.result
        await first.disconnect()
        let others = KeptTransfers()
        let next = UploadQueue(
            directory: copy, session: BackgroundSession(identifier: UUID().uuidString), service: KeepingService(others))
        try await next.handOver()
        #expect(others.handedOver.map(\.headerFields[.idempotencyKey]) == [key])
        await next.disconnect()
    }
}
