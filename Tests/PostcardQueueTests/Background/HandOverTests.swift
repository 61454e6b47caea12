import Foundation
import GRDB
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// What is handed to the system, and when.
@Suite(.timeLimit(.minutes(5))) struct HandOverTests {
    /// A service that keeps what it is given, and ends transfers when a test says so.
    private final class KeepingService: TransferService {
        private struct State {
            var kept: [Transfer] = []
            var report: (@Sendable (TransferEvent) -> Void)?
            var refusal: (@Sendable () throws -> Void)?
        }

        private let state = Mutex(State())

        var begun: [Transfer] { state.withLock { $0.kept } }

        func connect(_ report: @escaping @Sendable (TransferEvent) -> Void) async throws {
            state.withLock { $0.report = report }
        }

        func transfers() async throws -> [Transfer.ID: Bool] {
            Dictionary(begun.map { ($0.id, false) }, uniquingKeysWith: { first, _ in first })
        }

        func begin(_ transfer: Transfer) async throws {
            try state.withLock { $0.refusal.take() }?()
            state.withLock { $0.kept.append(transfer) }
        }

        func cancel(_ id: Transfer.ID) async { state.withLock { $0.kept.removeAll { $0.id == id } } }

        func disconnect() async {}

        /// Refuses the next transfer with what a closure throws.
        func refuseNext(_ refusal: @escaping @Sendable () throws -> Void) {
            state.withLock { $0.refusal = refusal }
        }

        /// Ends the only transfer.
        func end(_ end: TransferEnd) throws {
            let transfer = try #require(begun.first)
            #expect(begun.count == 1)
            let report = state.withLock { state in
                state.kept = []
                return state.report
            }
            report?(.ended(transfer.id, end))
        }
    }

    private let folder: TemporaryFolder
    private let service = KeepingService()
    private let identifier = "org.example.\(UUID().uuidString)"

    init() throws {
        folder = try TemporaryFolder()
    }

    private func queue(
        headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)? = nil
    ) throws -> UploadQueue {
        var session = BackgroundSession(identifier: identifier)
        session.headerFields = headerFields
        return try UploadQueue(directory: folder.url.appending(path: "queue"), session: session, service: service)
    }

    private static func address() throws -> URL { try #require(URL(string: "https://example.com/uploads")) }

    private static func form() -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        return form
    }

    @Test func `everything is handed over at once, also what is due later`() async throws {
        let queue = try queue()
        let later = Date(timeIntervalSinceNow: 3600)
        for _ in 0..<120 { try await queue.enqueue(Self.form(), to: Self.address()) }
        let last = try await queue.enqueue(
            Self.form(), to: Self.address(),
            conditions: UploadConditions(notBefore: later, networks: .unmetered, priority: 1))
        try await queue.handOver()
        #expect(service.begun.count == 121)
        let first = try #require(service.begun.first)
        #expect(first.networks == .unmetered)
        #expect(first.earliestBegin.map { abs($0.timeIntervalSince(later)) < 1 } == true)
        #expect(try queue.upload(last)?.state == .waiting)
        #expect(service.begun.dropFirst().allSatisfy { $0.earliestBegin == nil && $0.networks == .all })
        #expect(Set(service.begun.map { $0.headerFields.idempotencyKey }).count == 121)
        await queue.disconnect()
    }

    @Test func `header fields are made when an upload is handed over, and not kept`() async throws {
        let queue = try queue { _ in [.authorization: "Bearer fresh"] }
        try await queue.enqueue(Self.form(), to: Self.address(), headerFields: [.authorization: "Bearer old"])
        try await queue.handOver()
        #expect(service.begun.map { $0.headerFields[.authorization] } == ["Bearer fresh"])
        let database = try Data(contentsOf: folder.url.appending(path: "queue/queue.sqlite"))
        #expect(database.range(of: Data("fresh".utf8)) == nil)
        await queue.disconnect()
    }

    @Test func `an upload whose header fields cannot be made now is handed over later`() async throws {
        let queue = try queue { _ in throw UploadError.connectionLost(to: try Self.address(), "there is no network") }
        let id = try await queue.enqueue(Self.form(), to: Self.address())
        try await queue.handOver()
        let upload = try #require(try queue.upload(id))
        guard case .retrying(let due, let reason) = upload.state else { throw ProgramFailure("It is \(upload.state).") }
        #expect(due > Date() && reason.contains("no network") && upload.attempts == 1)
        #expect(service.begun.isEmpty)
        await queue.disconnect()
    }

    @Test func `a group goes one after the other, also after one was cancelled and retried`() async throws {
        let queue = try queue()
        let conditions = UploadConditions(group: "g")
        let first = try await queue.enqueue(Self.form(), to: Self.address(), conditions: conditions)
        let second = try await queue.enqueue(Self.form(), to: Self.address(), conditions: conditions)
        try queue.cancel(first)
        try queue.retry(first)
        try await queue.handOver()
        #expect(service.begun.count == 1)
        #expect(try queue.upload(first)?.attempts == 1 && queue.upload(second)?.attempts == 0)
        await queue.disconnect()
    }

    @Test func `what is paused, cancelled or cleared is taken back from the system`() async throws {
        let queue = try queue()
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<4 { ids.append(try await queue.enqueue(Self.form(), to: Self.address())) }
        try await queue.handOver()
        try queue.pause(ids[0])
        try queue.cancel(ids[1])
        try queue.cancel(ids[2])
        try queue.clear()
        try await queue.handOver()
        #expect(service.begun.count == 1)
        try queue.pause()
        try await queue.handOver()
        #expect(service.begun.isEmpty)
        try queue.resume()
        try queue.resume(ids[0])
        try await queue.handOver()
        #expect(service.begun.count == 2)
        await queue.disconnect()
    }

    @Test func `uploads that could be neither handed over nor put back are handed over later`() async throws {
        let queue = try queue()
        let first = try await queue.enqueue(Self.form(), to: Self.address())
        let second = try await queue.enqueue(Self.form(), to: Self.address())
        let file = folder.url.appending(path: "queue/queue.sqlite").path
        let trigger = "CREATE TRIGGER refusal BEFORE UPDATE ON upload BEGIN SELECT RAISE(ABORT, 'refused'); END"
        service.refuseNext {
            try DatabaseQueue(path: file).write { try $0.execute(sql: trigger) }
            throw UploadQueueError(.failed, "refused")
        }
        await #expect(throws: UploadQueueError.self) { try await queue.handOver() }
        #expect(try [first, second].allSatisfy { try queue.upload($0)?.state == .sending } && service.begun.isEmpty)
        try await DatabaseQueue(path: file).write { try $0.execute(sql: "DROP TRIGGER refusal") }
        try await queue.handOver()
        #expect(service.begun.map(\.id.attempt) == [2])
        let waiting = try #require(try queue.upload(first))
        #expect(waiting.state.isRetrying && waiting.attempts == 1, "\(waiting.state)")
        #expect(try queue.upload(second)?.attempts == 2)
        await queue.disconnect()
    }

    private static let firstEnds: [(TransferEnd, state: String)] = [
        (.failed(.connectionLost(to: URL(filePath: "/"), "it broke")), "done"), (.cancelled, "done"),
        (.response(status: 503, headerFields: HTTPFields(), url: nil, method: nil), "failed"),
    ]

    /// A server that knows the form by its key answers before it has read the form again; one that cannot know it is no
    /// server for forms.
    @Test(arguments: firstEnds)
    func `an early success counts only if an earlier transfer may have delivered the form`(
        end: TransferEnd, state: String
    ) async throws {
        let first = try queue()
        let id = try await first.enqueue(Self.form(), to: Self.address())
        try await first.handOver()
        try service.end(end)
        try await first.handOver()
        await first.disconnect()
        // The next process of the app.
        let second = try queue()
        try await second.handOver()
        try service.end(
            .response(status: 201, headerFields: HTTPFields(), url: try Self.address(), method: .post, bytesSent: 10))
        try await second.handOver()
        let upload = try #require(try second.upload(id))
        #expect(upload.state.name == state && upload.attempts == 2, "\(upload.state)")
        await second.disconnect()
    }

    @Test func `two queues of a process do not share a session`() throws {
        let session = BackgroundSession(identifier: identifier)
        let queue = try UploadQueue(directory: folder.url, session: session, service: service)
        let error = #expect(throws: UploadQueueError.self) {
            try UploadQueue(directory: folder.url, session: session, service: KeepingService())
        }
        #expect(error?.code == .inUse)
        withExtendedLifetime(queue) {}
    }
}
