import Foundation
import GRDB
import Observation
import PostcardAsyncHTTP
import PostcardClient
import PostcardFiles
import PostcardTestSupport
import Testing

@testable import PostcardQueue

@MainActor @Suite(.timeLimit(.minutes(5)))
struct UploadQueueListTests {
    private static var client: UploadClient { UploadClient(transport: AsyncHTTPTransport()) }

    @Test func `the list for a screen follows the queue`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let list = UploadQueueList(queue)
        let following = Task { await list.follow() }
        try await queue.enqueue(QueuedForms.form("1"), to: server.uploads)
        try await queue.run(Self.client, options: QueueOptions.draining)
        await Self.wait { list.uploads.contains(where: \.state.isDone) }
        following.cancel()
        await following.value
        #expect(list.error == nil)
    }

    @Test func `one call runs the queue and follows it, and starts both again after an error`() async throws {
        let folder = try TemporaryFolder()
        let pauses = AsyncStream.makeStream(of: Void.self)
        // No time passes between the attempts to run a queue that another process has.
        let time = QueueTime(sleep: { end in
            pauses.continuation.yield()
            try await Task.sleep(until: min(end, .now + .milliseconds(20)), clock: .continuous)
        })
        let queue = UploadQueue(directory: folder.url, session: nil, service: nil, time: time)
        let server = try await ReceivingServer()
        try await queue.enqueue(QueuedForms.form("1"), to: server.uploads)
        var lock: FileLock? = try await queue.opening.store().directory.lock()
        let list = UploadQueueList(queue)
        let running = Task { await list.run() }
        await Self.wait { list.error?.code == .inUse }
        #expect(list.uploads.map(\.state) == [.waiting] || list.uploads.isEmpty)
        _ = lock.take()
        await Self.wait { list.uploads.contains(where: \.state.isDone) }
        running.cancel()
        await running.value
    }

    @Test func `what was done before does not count as progress`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        try await queue.enqueue(QueuedForms.form("1"), to: server.uploads)
        try await queue.run(Self.client, options: QueueOptions.draining)
        let list = UploadQueueList(queue)
        let following = Task { await list.follow() }
        await Self.wait { list.uploads.contains(where: \.state.isDone) }
        #expect(list.fraction == 0)
        try await queue.enqueue(QueuedForms.form("2"), to: server.uploads)
        await Self.wait { list.uploads.count == 2 }
        #expect(list.fraction == 0)
        try await queue.run(Self.client, options: QueueOptions.draining)
        await Self.wait { list.uploads.filter(\.state.isDone).count == 2 }
        #expect(list.fraction == 1)
        following.cancel()
        await following.value
    }

    @Test func `the list goes on after a failure that passes, which an action does not hide`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let id = try await queue.enqueue(QueuedForms.form(), to: #require(URL(string: "http://127.0.0.1:1/uploads")))
        let list = UploadQueueList(queue)
        let following = Task { await list.follow() }
        await Self.wait { list.uploads.count == 1 }
        let database = try DatabaseQueue(path: folder.url.appending(path: "queue.sqlite").path)
        // More than the queue reads into memory.
        try await database.write { try $0.execute(sql: "UPDATE queue SET isPaused = zeroblob(70000000)") }
        queue.opening.updates.notify()
        await Self.wait { list.error != nil }
        #expect(list.error?.code == .databaseFailed)
        await list.pause(id).value
        #expect(list.error?.code == .databaseFailed)
        try await database.write { try $0.execute(sql: "UPDATE queue SET isPaused = 0") }
        await Self.wait { list.error == nil }
        await Self.wait { list.uploads.first?.state == .paused }
        following.cancel()
        await following.value
    }

    /// Waits until a condition holds for what a list shows.
    private static func wait(until isMet: () -> Bool) async {
        while !isMet() {
            await withCheckedContinuation { continuation in
                withObservationTracking {
                    _ = isMet()
                } onChange: {
                    continuation.resume()
                }
            }
        }
    }
}
