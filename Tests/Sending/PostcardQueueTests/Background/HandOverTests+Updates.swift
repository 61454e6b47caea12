import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardQueue

/// What an app can show of the uploads that the system has.
extension HandOverTests {
    @Test func `an upload that was handed over before its time is being sent from its first bytes on`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(
            QueuedForms.form(), to: Self.address(),
            conditions: UploadConditions(notBefore: Date(timeIntervalSinceNow: 3600)))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .waiting)
        let transfer = try #require(kept.handedOver.first)
        var changes = try await queue.store.changes.stream().makeAsyncIterator()
        _ = await changes.next()
        kept.report(.sent(transfer.id, bytes: 1))
        // The run of the queue looks at it again: the system may have another such upload now.
        _ = await changes.next()
        try await queue.handOver()
        #expect(try await queue.upload(id)?.state == .sending)
        await queue.disconnect()
    }

    @Test func `a list of uploads follows whenever the system has sent more of one`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        let transfer = try #require(kept.handedOver.first)
        var shown: [Int64] = []
        for try await uploads in queue.updates() {
            let bytes = try #require(uploads.first?.bytesSent)
            shown.append(bytes)
            if bytes == 20 { break }
            kept.report(.sent(transfer.id, bytes: bytes + 10))
        }
        #expect(shown == [0, 10, 20])
        await queue.disconnect()
    }

    @Test(arguments: [false, true])
    func `an upload that begins again shows nothing of what was sent before`(isCancelled: Bool) async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        kept.report(.sent(try #require(kept.handedOver.first?.id), bytes: 50))
        try await queue.handOver()
        #expect(try await queue.upload(id)?.bytesSent == 50)
        if isCancelled {
            try await queue.cancel(id)
        } else {
            try kept.end(try response(422))
        }
        try await queue.handOver()
        try await queue.retry(id)
        try await queue.handOver()
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state == .sending && upload.bytesSent == 0)
        await queue.disconnect()
    }

    @Test func `an app can show that background updates are disabled, and what the server said`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        try await queue.handOver()
        try kept.end(.interrupted(.updatesDisabled))
        try await queue.handOver()
        guard case .retrying(let due, let failure) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It is not retrying.")
        }
        #expect(
            failure.code == .backgroundUpdatesDisabled && failure.advice?.contains("Background App Refresh") == true)
        #expect(failure.delivery.mayHaveArrived && failure.response == nil && due > Date())
        #expect(failure.localizedMessage?.key == "UploadFailure.background-updates-disabled")
        try kept.end(
            .response(
                status: 422, headerFields: [.contentType: "text/plain", .location: "/help"], url: try Self.address(),
                method: .post))
        try await queue.handOver()
        guard case .failed(let refusal) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(refusal.code == .refused && refusal.response?.status == 422 && refusal.localizedMessage == nil)
        #expect(refusal.response?.headerFields[.location] == "/help" && refusal.response?.contentType == "text/plain")
        #expect(refusal.advice?.contains("refused a value") == true && refusal.message.contains("422"))
        try await queue.retry(id)
        #expect(try await queue.upload(id)?.state == .waiting)
        await queue.disconnect()
    }

    @Test func `the latest uploads that the app knows to be done are listed, and all of them are counted`() async throws
    {
        var session = BackgroundSession(identifier: identifier)
        session.maximumConnectionsPerHost = 1
        let now = Mutex(Date(timeIntervalSince1970: 2_000_000_000))
        let time = QueueTime(date: { now.withLock { $0 } })
        let queue = UploadQueue(
            directory: folder.url, session: session, service: KeepingService(kept),
            retention: UploadRetention(maximumCount: 2, maximumAge: .seconds(1000)), time: time)
        var ids: [QueuedUpload.ID] = []
        for _ in 0..<4 {
            ids.append(try await queue.enqueue(QueuedForms.form(), to: Self.address()))
            try await queue.handOver()
            try kept.end(try response(201))
            try await queue.handOver()
            #expect(try await queue.uploads().last?.state.isDone == true)
            try await queue.acknowledge(try await queue.uploads())
            now.withLock { $0 += 100 }
        }
        let waiting = try await queue.enqueue(QueuedForms.form(), to: Self.address())
        #expect(try await queue.uploads().map(\.id) == [ids[2], ids[3], waiting])
        #expect(try await queue.doneCount == 4)
        // They become too old while nothing else is done.
        now.withLock { $0 += 850 }
        try await queue.store.sweep(at: time.date())
        #expect(try await queue.uploads().map(\.id) == [ids[3], waiting])
        try await queue.clear(.ended)
        try await queue.pause()
        #expect(try await queue.uploads().map(\.id) == [waiting])
        #expect(try await queue.doneCount == 4)
        await queue.disconnect()
    }
}
