import Foundation
import HTTPTypes
import PostcardTestSupport
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
        for _ in 0..<4 { ids.append(try await shareExtension.enqueue(QueuedForms.form(), to: url)) }
        try await shareExtension.handOver()
        await shareExtension.disconnect()
        #expect(other.handedOver.count == 4)

        let app = UploadQueue(
            directory: directory, session: BackgroundSession(identifier: name), service: KeepingService(own)
        ) { session in
            KeepingService(session.identifier == otherName ? other : own)
        }
        try await app.cancel(ids[0])
        #expect(other.handedOver.count == 3)
        try await app.pause(ids[1])
        #expect(other.handedOver.count == 2)
        // An end that no one has settled yet is not lost.
        other.endFirst(1, .response(status: 201, headerFields: HTTPFields(), url: url, method: .post))
        try await app.cancel(ids[3])
        #expect(other.handedOver.isEmpty)
        #expect(try await app.uploads().map(\.state.name) == ["cancelled", "paused", "done", "cancelled"])
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
