import Foundation
import HTTPTypes
import PostcardClient
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// An app and its share extension, which use one queue with a session each.
@Suite(.timeLimit(.minutes(10))) struct ExtensionTests {
    private let folder: TemporaryFolder
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/uploads"))
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    @Test func `what is cancelled in the app is stopped in the session of an extension that has ended`() async throws {
        let (own, other) = (KeptTransfers(), KeptTransfers())
        let (name, otherName) = (UUID().uuidString, UUID().uuidString)
        let shareExtension = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: otherName), service: KeepingService(other))
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<5 { ids.append(try await shareExtension.enqueue(QueuedForms.form(), to: url)) }
        try await shareExtension.handOver()
        await shareExtension.disconnect()
        #expect(other.handedOver.count == 5)

        let app = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: name), service: KeepingService(own)
        ) { session in
            KeepingService(session.identifier == otherName ? other : own)
        }
        #expect(try await app.discard(ids[4], with: UploadClient()))
        #expect(other.handedOver.count == 4)
        try await app.cancel(ids[0])
        #expect(other.handedOver.count == 3)
        try await app.pause(ids[1])
        #expect(other.handedOver.count == 2)
        // An end that no one has settled yet is not lost.
        other.endFirst(1, .response(status: 201, headerFields: HTTPFields(), url: url, method: .post))
        try await app.cancel(ids[3])
        #expect(other.handedOver.isEmpty)
        #expect(try await app.uploads().map(\.state.name) == ["cancelled", "paused", "done", "cancelled", "cancelled"])
        #expect(own.handedOver.isEmpty)
        await app.disconnect()
    }

    @Test func `what is paused in the app continues where the extension's session stopped`() async throws {
        let (own, other) = (KeptTransfers(), KeptTransfers())
        let (name, otherName) = (UUID().uuidString, UUID().uuidString)
        let shareExtension = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: otherName), service: KeepingService(other))
        let id = try await shareExtension.enqueue(QueuedForms.form(), to: url)
        try await shareExtension.handOver()
        await shareExtension.disconnect()
        other.setResumeData(Data("half".utf8))

        let app = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: name), service: KeepingService(own)
        ) { session in
            KeepingService(session.identifier == otherName ? other : own)
        }
        try await app.pause(id)
        #expect(other.handedOver.isEmpty && other.cancellations == 0)
        try await app.resume(id)
        try await app.handOver()
        #expect(own.handedOver.map(\.resumeData) == [Data("half".utf8)])
        await app.disconnect()
    }

    @Test func `an extension's queue in the same process stops its own uploads`() async throws {
        let (own, other) = (KeptTransfers(), KeptTransfers())
        let shareExtension = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(other))
        let id = try await shareExtension.enqueue(QueuedForms.form(), to: url)
        try await shareExtension.handOver()
        let app = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(own))
        try await app.cancel(id)
        // It is done when what follows is done.
        try await shareExtension.handOver()
        #expect(other.handedOver.isEmpty && other.cancellations == 1)
        await shareExtension.disconnect()
        await app.disconnect()
    }

    /// Notifications between processes, without the processes.
    private final class Hub: Sendable {
        private let listeners = Mutex<(next: Int, all: [Int: (name: String, notify: @Sendable () -> Void)])>((0, [:]))
        private let posts = Mutex(0)

        var count: Int { listeners.withLock { $0.all.count } }

        /// How often the queues have notified each other.
        var posted: Int { posts.withLock { $0 } }

        var broadcast: ChangeBroadcast {
            ChangeBroadcast(pollInterval: .seconds(60)) { [self] name in
                posts.withLock { $0 += 1 }
                for listener in listeners.withLock({ $0.all.values.filter { $0.name == name } }) { listener.notify() }
            } listen: { [self] name, notify in
                let key = listeners.withLock { listeners in
                    listeners.next += 1
                    listeners.all[listeners.next] = (name, notify)
                    return listeners.next
                }
                return ChangeBroadcast.Listener { [self] in listeners.withLock { $0.all[key] = nil } }
            }
        }
    }

    /// The clock stands still, so that the app never looks for changes by itself.
    @Test func `an app is notified of what its extension enqueues, and hands it over`() async throws {
        let (hub, kept, clock) = (Hub(), KeptTransfers(), SteppedClock())
        func queue(_ session: BackgroundSession?) -> UploadQueue {
            UploadQueue(
                directory: directory, session: session, service: session.map { _ in KeepingService(kept) },
                time: clock.time, broadcast: hub.broadcast)
        }
        let app = queue(BackgroundSession(identifier: UUID().uuidString))
        let running = Task { try await app.run() }
        await clock.waitForSleeper()
        let id = try await queue(nil).enqueue(QueuedForms.form(), to: url)
        try await eventually { !kept.handedOver.isEmpty }
        // The extension cancels it, and the app stops what it has handed over.
        try await queue(nil).cancel(id)
        try await eventually { kept.handedOver.isEmpty }
        // Queues that are gone are not notified any longer.
        try await eventually { hub.count <= 1 }
        running.cancel()
        _ = try? await running.value
        await app.disconnect()
    }

    /// What the other queue does here is not counted.
    @Test func `other processes are notified of all that becomes of the uploads`() async throws {
        let (hub, kept, clock) = (Hub(), KeptTransfers(), SteppedClock())
        let app = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(kept), time: clock.time, broadcast: hub.broadcast)
        let other = UploadQueue(directory: directory, session: nil, service: nil, time: clock.time)
        let id = try await other.enqueue(QueuedForms.form(), to: url)
        try await app.handOver()
        #expect(hub.posted == 1)
        try await other.pause(id)
        try await app.handOver()
        #expect(hub.posted == 2, "It was stopped.")
        try await other.resume(id)
        try await app.handOver()
        #expect(hub.posted == 3)
        try kept.end(.response(status: 422, headerFields: [:], url: url, method: .post))
        try await app.handOver()
        #expect(hub.posted == 4, "It has failed.")
        let late = try await other.enqueue(
            QueuedForms.form(), to: url, conditions: UploadConditions(expires: clock.date + 60))
        try await other.pause(late)
        clock.advance(by: .seconds(61))
        try await app.handOver()
        #expect(hub.posted == 5, "The time of the other one is over.")
        try await app.handOver()
        #expect(hub.posted == 5)
        await app.disconnect()
    }

    @Test func `many queues can be opened in a new directory at the same time`() async throws {
        try await withThrowingTaskGroup { group in
            for number in 0..<20 {
                group.addTask {
                    let queue = UploadQueue(directory: directory)
                    try await queue.enqueue(QueuedForms.form("\(number)"), to: url)
                }
            }
            try await group.waitForAll()
        }
        #expect(try await UploadQueue(directory: directory).uploads().count == 20)
    }
}
