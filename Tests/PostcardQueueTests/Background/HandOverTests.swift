import Foundation
import GRDB
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// Which uploads are handed to the system, and when.
@Suite(.timeLimit(.minutes(10))) struct HandOverTests {
    /// A service that keeps its transfers until the test ends them.
    private final class KeepingService: TransferService {
        private struct State {
            var transfers: [Transfer] = []
            var report: (@Sendable (AttemptEvent) -> Void)?
            var refusal: (@Sendable () throws -> Void)?
        }

        private let state = Mutex(State())

        var handedOver: [Transfer] { state.withLock { $0.transfers } }

        func connect(_ report: @escaping @Sendable (AttemptEvent) -> Void) async throws {
            state.withLock { $0.report = report }
        }

        func transfers() async throws -> [AttemptID: Bool] {
            Dictionary(handedOver.map { ($0.id, false) }, uniquingKeysWith: { first, _ in first })
        }

        func begin(_ transfer: Transfer) async throws {
            try state.withLock { $0.refusal.take() }?()
            state.withLock { $0.transfers.append(transfer) }
        }

        func cancel(_ id: AttemptID) async { state.withLock { $0.transfers.removeAll { $0.id == id } } }

        func disconnect() async {}

        /// Refuses the next transfer with the error that the closure throws.
        func refuseNext(_ refusal: @escaping @Sendable () throws -> Void) {
            state.withLock { $0.refusal = refusal }
        }

        /// Ends the only transfer.
        func end(_ end: AttemptEnd) throws {
            let transfer = try #require(handedOver.first)
            #expect(handedOver.count == 1)
            let report = state.withLock { state in
                state.transfers = []
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

    @Test func `all uploads are handed over at once, including those that are due later`() async throws {
        let queue = try queue()
        // A whole number, which the database stores exactly.
        let later = Date(timeIntervalSince1970: (Date().timeIntervalSince1970 + 3600).rounded())
        for _ in 0..<120 { try await queue.enqueue(QueuedForms.form(), to: Self.address()) }
        let last = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(notBefore: later, networks: .unmetered, priority: 1))
        try await queue.handOver()
        #expect(service.handedOver.count == 121)
        let first = try #require(service.handedOver.first)
        #expect(first.networks == .unmetered)
        #expect(first.earliestBegin == later)
        #expect(try queue.upload(last)?.state == .waiting)
        #expect(service.handedOver.dropFirst().allSatisfy { $0.earliestBegin == nil && $0.networks == .all })
        #expect(Set(service.handedOver.map { $0.headerFields.idempotencyKey }).count == 121)
        await queue.disconnect()
    }

    @Test func `header fields are made when an upload is handed over, and not stored`() async throws {
        let queue = try queue { _ in [.authorization: "Bearer fresh"] }
        try await queue.enqueue(QueuedForms.form(), to: Self.address(), headerFields: [.authorization: "Bearer old"])
        try await queue.handOver()
        #expect(service.handedOver.map { $0.headerFields[.authorization] } == ["Bearer fresh"])
        let database = try Data(contentsOf: folder.url.appending(path: "queue/queue.sqlite"))
        #expect(database.range(of: Data("fresh".utf8)) == nil)
        await queue.disconnect()
    }

    @Test func `an upload is handed over later if its header fields cannot be made now`() async throws {
        let queue = try queue { _ in throw UploadError.connectionLost(to: try Self.address(), "there is no network") }
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let upload = try #require(try queue.upload(id))
        guard case .retrying(let due, let reason) = upload.state else {
            throw ProgramFailure("The upload is \(upload.state).")
        }
        #expect(due > Date() && reason.contains("no network") && upload.attempts == 1)
        #expect(service.handedOver.isEmpty)
        await queue.disconnect()
    }

    @Test func `the uploads of a group are handed over one by one, also after one was cancelled and retried`()
        async throws
    {
        let queue = try queue()
        let conditions = UploadConditions(group: "g")
        let first = try await queue.enqueue(QueuedForms.form(), to: Self.address(), conditions: conditions)
        let second = try await queue.enqueue(QueuedForms.form(), to: Self.address(), conditions: conditions)
        try queue.cancel(first)
        try queue.retry(first)
        try await queue.handOver()
        #expect(service.handedOver.count == 1)
        #expect(try queue.upload(first)?.attempts == 1 && queue.upload(second)?.attempts == 0)
        await queue.disconnect()
    }

    @Test func `the transfers of paused, cancelled and cleared uploads are cancelled`() async throws {
        let queue = try queue()
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<4 { ids.append(try await queue.enqueue(QueuedForms.form(), to: Self.address())) }
        try await queue.handOver()
        try queue.pause(ids[0])
        try queue.cancel(ids[1])
        try queue.cancel(ids[2])
        try queue.clear()
        try await queue.handOver()
        #expect(service.handedOver.count == 1)
        try queue.pause()
        try await queue.handOver()
        #expect(service.handedOver.isEmpty)
        try queue.resume()
        try queue.resume(ids[0])
        try await queue.handOver()
        #expect(service.handedOver.count == 2)
        await queue.disconnect()
    }

    @Test func `uploads are handed over later if neither that nor their failure could be saved`() async throws {
        let queue = try queue()
        let first = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let second = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        let file = folder.url.appending(path: "queue/queue.sqlite").path
        let trigger = "CREATE TRIGGER refusal BEFORE UPDATE ON upload BEGIN SELECT RAISE(ABORT, 'refused'); END"
        service.refuseNext {
            try DatabaseQueue(path: file).write { try $0.execute(sql: trigger) }
            throw UploadQueueError(.failed, "refused")
        }
        await #expect(throws: UploadQueueError.self) { try await queue.handOver() }
        #expect(try [first, second].allSatisfy { try queue.upload($0)?.state == .sending })
        #expect(service.handedOver.isEmpty)
        try await DatabaseQueue(path: file).write { try $0.execute(sql: "DROP TRIGGER refusal") }
        try await queue.handOver()
        #expect(service.handedOver.map(\.id.number) == [2])
        let waiting = try #require(try queue.upload(first))
        #expect(waiting.state.isRetrying && waiting.attempts == 1, "\(waiting.state)")
        #expect(try queue.upload(second)?.attempts == 2)
        await queue.disconnect()
    }

    private static let firstEnds: [(AttemptEnd, state: String)] = [
        (.failed(.connectionLost(to: URL(filePath: "/"), "it broke")), "done"), (.cancelled, "done"),
        (.response(status: 503, headerFields: HTTPFields(), url: nil, method: nil), "failed"),
    ]

    /// A server may accept a form before it has read it again, but only if it can know its key.
    @Test(arguments: firstEnds)
    func `an early success counts only if an earlier transfer may have delivered the form`(
        end: AttemptEnd, state: String
    ) async throws {
        let first = try queue()
        let id = try await first.enqueue(QueuedForms.form(), to: Self.address())
        try await first.handOver()
        try service.end(end)
        try await first.handOver()
        await first.disconnect()
        // The app's next process.
        let second = try queue()
        try await second.handOver()
        try service.end(
            .response(status: 201, headerFields: HTTPFields(), url: try Self.address(), method: .post, bytesSent: 10))
        try await second.handOver()
        let upload = try #require(try second.upload(id))
        #expect(upload.state.name == state && upload.attempts == 2, "\(upload.state)")
        await second.disconnect()
    }

    @Test func `two queues of a process cannot use the same session`() throws {
        let session = BackgroundSession(identifier: identifier)
        let queue = try UploadQueue(directory: folder.url, session: session, service: service)
        let error = #expect(throws: UploadQueueError.self) {
            try UploadQueue(directory: folder.url, session: session, service: KeepingService())
        }
        #expect(error?.code == .inUse)
        withExtendedLifetime(queue) {}
    }
}
