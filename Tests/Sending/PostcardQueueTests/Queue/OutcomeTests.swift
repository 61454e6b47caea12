import Foundation
import GRDB
import HTTPTypes
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Which ends of uploads an app gets to know, whatever happens to its processes.
@Suite(.timeLimit(.minutes(10))) struct OutcomeTests {
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let identifier = UUID().uuidString
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/uploads"))
    }

    /// The queue of the next process.
    private func queue(outcome: (@Sendable (QueuedUpload) async throws -> Void)? = nil) -> UploadQueue {
        var session = BackgroundSession(identifier: identifier)
        // For a busy machine.
        session.maximumWakeUp = .seconds(600)
        return UploadQueue(
            directory: folder.url.appending(path: "queue"), session: session, service: KeepingService(kept),
            retention: UploadRetention(maximumCount: 2), outcome: outcome)
    }

    /// Has the server respond to all transfers, the body being the transfer's upload.
    private func respond(_ status: Int = 201) {
        let count = kept.handedOver.count
        for transfer in kept.handedOver {
            kept.report(.received(transfer.id, Data(transfer.id.upload.uuidString.utf8)))
        }
        kept.endFirst(count, .response(status: status, headerFields: [:], url: url, method: .post))
    }

    @Test func `uploads that end while the app is gone are all given with their responses, until it acknowledges them`()
        async throws
    {
        var ids: [QueuedUpload.ID] = []
        let first = queue()
        for _ in 0..<120 { ids.append(try await first.enqueue(QueuedForms.form(), to: url)) }
        while try await first.doneCount < 120 {
            try await first.handOver()
            respond()
            try await first.handOver()
        }
        await first.disconnect()
        // No process has seen them, and only two are listed otherwise.
        for _ in 0..<2 {
            let next = queue()
            var given: [QueuedUpload] = []
            for try await upload in next.outcomes {
                given.append(upload)
                if given.count == 120 { break }
            }
            #expect(Set(given.map(\.id)) == Set(ids))
            #expect(given.allSatisfy { $0.state.response?.body.count == 36 })
            await next.disconnect()
        }
        let last = queue()
        try await last.acknowledge(try await last.unacknowledged().uploads)
        let rest = try await last.uploads().count
        #expect(rest == 72)
        while case let (uploads, _) = try await last.unacknowledged(), !uploads.isEmpty {
            try await last.acknowledge(uploads)
        }
        #expect(try await last.uploads().count == 2)
        #expect(try await last.doneCount == 120)
        await last.disconnect()
    }

    @Test func `the app's closure is called for each end before the system's handler`() async throws {
        let seen = Mutex<[QueuedUpload.ID]>([])
        let called = Mutex(false)
        let queue = queue { upload in
            // As slow as a database may be.
            for _ in 0..<100 { await Task.yield() }
            #expect(!called.withLock { $0 })
            seen.withLock { $0.append(upload.id) }
        }
        for _ in 0..<3 { try await queue.enqueue(QueuedForms.form(), to: url) }
        try await queue.handOver()
        respond()
        kept.report(.deliveredAll)
        await queue.handleEvents()
        called.withLock { $0 = true }
        #expect(Set(seen.withLock(\.self)) == [1, 2, 3])
        #expect(try await queue.unacknowledged().uploads == [])
        await queue.disconnect()
    }

    @Test func `an end for which the closure throws is given again, also to the next process`() async throws {
        struct NoSpace: Error {}
        let first = queue { _ in throw NoSpace() }
        let id = try await first.enqueue(QueuedForms.form(), to: url)
        try await first.handOver()
        respond()
        kept.report(.deliveredAll)
        await first.handleEvents()
        #expect(try await first.unacknowledged().uploads.map(\.id) == [id])
        await first.disconnect()
        let calls = Mutex(0)
        let second = queue { _ in
            let count = calls.withLock { calls in
                calls += 1
                return calls
            }
            if count == 1 { throw NoSpace() }
        }
        await second.reporter?.reportAll()
        #expect(try await second.unacknowledged().uploads.map(\.id) == [id])
        await second.reporter?.reportAll()
        #expect(calls.withLock { $0 } == 2)
        #expect(try await second.unacknowledged().uploads == [])
        await second.disconnect()
    }

    @Test func `the closure may use the queue`() async throws {
        let box = Mutex<UploadQueue?>(nil)
        let queue = queue { [url] upload in
            guard upload.id == 1, let queue = box.withLock({ $0 }) else { return }
            try await queue.enqueue(QueuedForms.form(), to: url)
            try await queue.handOver()
        }
        box.withLock { $0 = queue }
        try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        respond()
        kept.report(.deliveredAll)
        await queue.handleEvents()
        #expect(kept.handedOver.count == 1)
        box.withLock { $0 = nil }
        await queue.disconnect()
    }

    @Test func `failed, cancelled and expired uploads are given in the order in which they ended`() async throws {
        let queue = queue()
        for _ in 0..<4 { try await queue.withoutSession.enqueue(QueuedForms.form(), to: url) }
        let expires = Date(timeIntervalSinceNow: -1)
        try await queue.withoutSession.enqueue(
            QueuedForms.form(), to: url, conditions: UploadConditions(expires: expires))
        try await queue.cancel(4)
        // It had ended.
        try await queue.cancel(4)
        try await queue.handOver()
        try await queue.cancelAll()
        let names = try await queue.unacknowledged().uploads.map { "\($0.id) \($0.state.name)" }
        #expect(names == ["4 cancelled", "5 failed", "1 cancelled", "2 cancelled", "3 cancelled"])
        await queue.disconnect()
    }

    @Test func `an upload that is retried is given again when it ends again`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        respond(422)
        try await queue.handOver()
        let failed = try #require(try await queue.unacknowledged().uploads.first)
        try await queue.retry(id)
        #expect(try await queue.unacknowledged().uploads == [])
        try await queue.handOver()
        respond()
        try await queue.handOver()
        // The app was slow.
        try await queue.acknowledge(failed)
        let done = try await queue.unacknowledged().uploads
        #expect(done.map(\.state.isDone) == [true])
        try await queue.acknowledge(done)
        #expect(try await queue.unacknowledged().uploads == [])
        await queue.disconnect()
    }

    @Test func `a pause of the queue does not number ends again`() async throws {
        let queue = queue()
        for _ in 0..<2 { try await queue.enqueue(QueuedForms.form(), to: url) }
        try await queue.cancel(1)
        let first = try await queue.unacknowledged()
        try await queue.acknowledge(first.uploads)
        try await queue.pause()
        try await queue.resume()
        try await queue.cancel(2)
        #expect(try await queue.unacknowledged(after: first.last).uploads.map(\.id) == [2])
        await queue.disconnect()
    }

    /// To measure it: POSTCARD_UNREAD_ENDS=100000.
    @Test func `a queue with many unacknowledged ends is opened without reading them`() async throws {
        let count = ProcessInfo.processInfo.environment["POSTCARD_UNREAD_ENDS"].flatMap(Int.init) ?? 1000
        let first = queue()
        try await first.enqueue(QueuedForms.form(), to: url)
        try await first.cancel(1)
        try await first.opening.store().database.write { db in
            let columns = try db.columns(in: "upload").map(\.name).filter { !["id", "uuid", "ended"].contains($0) }
            let names = columns.joined(separator: ", ")
            for number in 2...count {
                try db.execute(
                    sql: """
                        INSERT INTO upload (\(names), uuid, ended) SELECT \(names), ?, ? FROM upload WHERE id = 1
                        """, arguments: [UUID().uuidString, number])
            }
            try db.execute(
                sql: """
                    UPDATE upload SET state = 'done'; UPDATE queue SET ends = \(count);
                    INSERT INTO request SELECT upload.id, idempotencyKey, headerFields, contentType, parts, signed, statuses
                        FROM upload, request WHERE request.id = 1 AND upload.id > 1;
                    INSERT INTO response SELECT id, 201, '[]', zeroblob(200) FROM upload
                    """)
        }
        await first.disconnect()
        try await Self.closed(first)
        let next = queue()
        let start = ContinuousClock.now
        try await next.open()
        let upload = try await next.unacknowledged().uploads.first
        if count > 1000 { print("Opened with \(count) unacknowledged ends in \(ContinuousClock.now - start).") }
        #expect(upload?.id == 1)
        #expect(try await !next.opening.store().database.wasReadThrough)
        await next.disconnect()
    }

    /// Notes that the files of a queue are intact, as a process does before it is suspended.
    private static func closed(_ queue: UploadQueue) async throws {
        try await queue.opening.store().database.noteRest()
    }
}

extension QueuedUpload.State {
    fileprivate var response: QueuedUpload.Response? { if case .done(let response) = self { response } else { nil } }
}
