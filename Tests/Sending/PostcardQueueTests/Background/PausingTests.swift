import Foundation
import HTTPTypes
import PostcardClient
import PostcardFoundation
import PostcardTestSupport
import PostcardTransferDaemon
import Synchronization
import Testing

@testable import PostcardQueue

/// Uploads that a background session has and that are paused: they continue where they stopped, if the system can.
@Suite(.timeLimit(.minutes(10))) struct PausingTests {
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let identifier = "org.example.\(UUID().uuidString)"
    private let half = Data("half".utf8)
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/uploads"))
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    private func queue(
        headerFields: (@Sendable (QueuedUpload) async throws -> HTTPFields)? = nil
    ) -> UploadQueue {
        var session = BackgroundSession(identifier: identifier)
        session.headerFields = headerFields
        return UploadQueue(directory: directory, session: session, service: KeepingService(kept))
    }

    // MARK: - With the model of the system

    private static let fileBytes = 4_000_000

    /// Makes an app whose first upload stops in the middle.
    private func app(resumes: Bool, respondsToLostResources: Bool = false) async throws -> SimulatedApp {
        var options = TransferDaemon.Options()
        options.resumes = resumes
        options.holds = 1
        options.respondsToLostResources = respondsToLostResources
        return SimulatedApp(directory: directory, daemon: try await TransferDaemon(options))
    }

    /// Enqueues an upload, and returns when the system has sent half of it and the queue knows that some of it was sent.
    private func sendHalf(_ app: SimulatedApp, _ queue: UploadQueue, to url: URL) async throws -> QueuedUpload.ID {
        let id = try await queue.enqueue(SimulatedApp.form("form", fileBytes: Self.fileBytes), to: url)
        try await app.daemon.wait(for: .held, atLeast: 1)
        for try await uploads in queue.updates() where uploads.contains(where: { $0.bytesSent > 0 }) { break }
        return id
    }

    private func waitForPause(_ id: QueuedUpload.ID, in queue: UploadQueue) async throws {
        for try await _ in queue.updates() {
            if try await queue.store.database.read({ try $0.pausingAttempts().isEmpty }) { return }
        }
    }

    @Test(arguments: [true, false], [true, false])
    func `a paused upload continues where it stopped, if the server resumes uploads`(
        resumes: Bool, pausesAll: Bool
    ) async throws {
        let server = try await ReceivingServer()
        let app = try await app(resumes: resumes)
        let queue = app.queue()
        try await queue.run { [app] in
            let id = try await sendHalf(app, queue, to: server.uploads)
            try await pausesAll ? queue.pause() : queue.pause(id)
            try await app.daemon.wait(for: .paused, atLeast: 1)
            try await waitForPause(id, in: queue)
            let paused = try #require(try await queue.upload(id))
            #expect(paused.state == (pausesAll ? .waiting : .paused))
            #expect(resumes ? paused.bytesSent > 0 : paused.bytesSent == 0)
            try await pausesAll ? queue.resume() : queue.resume(id)
            for try await uploads in queue.updates() where uploads.allSatisfy(\.state.isEnded) { break }
        }
        await queue.disconnect()
        let upload = try #require(try await queue.uploads().first)
        #expect(upload.state.isDone && upload.attempts == 2, "\(upload.state)")
        let status = try await app.daemon.status()
        let sent = status[.bytesSent]
        #expect(resumes ? sent < Self.fileBytes * 11 / 10 : sent > Self.fileBytes * 14 / 10, "\(sent) bytes")
        #expect(status[.begunAgain] == (resumes ? 1 : 0) && status[.resumed] == (resumes ? 1 : 0))
        #expect(try await server.end().records.count == 1)
    }

    @Test(arguments: [true, false])
    func `a paused upload starts over if the server has forgotten what it has of it`(isResponse: Bool) async throws {
        let server = try await ReceivingServer()
        let app = try await app(resumes: true, respondsToLostResources: isResponse)
        let queue = app.queue()
        try await queue.run { [app] in
            let id = try await sendHalf(app, queue, to: server.uploads)
            try await queue.pause(id)
            try await waitForPause(id, in: queue)
            try await app.daemon.loseResources()
            try await queue.resume(id)
            for try await uploads in queue.updates() where uploads.allSatisfy(\.state.isEnded) { break }
        }
        await queue.disconnect()
        let upload = try #require(try await queue.uploads().first)
        #expect(upload.state.isDone && upload.attempts == 3, "\(upload.state)")
        #expect(try await app.daemon.status()[.begunAgain] == 1)
        #expect(try await server.end().records.count == 1)
    }

    @Test func `an upload that the system has cancelled in the middle continues there`() async throws {
        let server = try await ReceivingServer()
        let app = try await app(resumes: true)
        let queue = app.queue()
        try await queue.run { [app] in
            _ = try await sendHalf(app, queue, to: server.uploads)
            try await app.daemon.cancelAll(.forceQuit)
            for try await uploads in queue.updates() where uploads.allSatisfy(\.state.isEnded) { break }
        }
        await queue.disconnect()
        #expect(try await queue.uploads().map(\.state.isDone) == [true])
        let status = try await app.daemon.status()
        #expect(status[.begunAgain] == 1 && status[.bytesSent] < Self.fileBytes * 11 / 10)
        #expect(try await server.end().records.count == 1)
    }

    // MARK: - What is kept

    /// Enqueues an upload, hands it over, and pauses it.
    private func pause(in queue: UploadQueue) async throws -> QueuedUpload.ID {
        kept.setResumeData(half)
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try await queue.pause(id)
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty && kept.cancellations == 0)
        return id
    }

    @Test func `what a pause returned is used once`() async throws {
        let queue = queue()
        let id = try await pause(in: queue)
        kept.setResumeData(nil)
        try await queue.resume(id)
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [half])
        try kept.end(.interrupted(.forceQuit))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [nil])
        await queue.disconnect()
    }

    @Test(arguments: [(1 << 20, true), ((1 << 20) + 1, false)])
    func `of what an upload can resume with, at most 1 MiB is kept`(count: Int, isKept: Bool) async throws {
        let queue = queue()
        kept.setResumeData(Data(count: count))
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try await queue.pause(id)
        try await queue.handOver()
        try await queue.resume(id)
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData?.count) == [isKept ? count : nil])
        // The same if the system ends the attempt.
        try kept.end(.interrupted(.insufficientResources))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData?.count) == [isKept ? count : nil])
        await queue.disconnect()
    }

    @Test func `a paused upload shows how far it was, and one that has to start over shows nothing`() async throws {
        let queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        for (data, bytes) in [(half, 30), (nil, 0)] as [(Data?, Int64)] {
            kept.setResumeData(data)
            try await queue.handOver()
            kept.report(.sent(try #require(kept.handedOver.first?.id), bytes: 30))
            try await queue.handOver()
            #expect(try await queue.upload(id)?.bytesSent == 30)
            try await queue.pause(id)
            try await queue.handOver()
            #expect(try await queue.upload(id)?.bytesSent == bytes)
            try await queue.resume(id)
        }
        await queue.disconnect()
    }

    /// The system has the next attempt before its time, and has made it of what the last one left.
    @Test(arguments: [nil, Data("rest".utf8)])
    func `an upload that is tried now does not resume with what was used`(rest: Data?) async throws {
        let queue = queue()
        kept.setResumeData(half)
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        try kept.end(.interrupted(.insufficientResources))
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [half])
        kept.setResumeData(rest)
        try await queue.retry(id)
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [rest])
        await queue.disconnect()
    }

    @Test func `what a pause returned is kept if the upload could not be handed over`() async throws {
        let first = queue()
        let id = try await pause(in: first)
        await first.disconnect()
        struct NoToken: Error {}
        let second = queue { _ in throw NoToken() }
        try await second.resume(id)
        try await second.handOver()
        #expect(kept.handedOver.isEmpty)
        await second.disconnect()
        let third = queue()
        try await third.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [half])
        await third.disconnect()
    }

    /// The server may refuse the rest of a form that it does not know, and not the form.
    @Test func `a resumed upload that the server refuses is sent once more as a whole`() async throws {
        let queue = queue()
        let id = try await pause(in: queue)
        try await queue.resume(id)
        try await queue.handOver()
        let refusal = AttemptEnd.response(status: 404, headerFields: HTTPFields(), url: url, method: .head)
        try kept.end(refusal)
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [nil])
        try kept.end(.response(status: 404, headerFields: HTTPFields(), url: url, method: .post))
        try await queue.handOver()
        guard case .failed(let failure) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(failure.response?.status == 404)
        await queue.disconnect()
    }

    /// Only a person can find out whether the form arrived.
    @Test(
        arguments: [
            (201, "https://example.org/uploads/1", .patch), (200, "https://example.com/thanks", .get),
            (204, "https://example.com/uploads/1", .head),
        ] as [(Int, String, HTTPRequest.Method)])
    func `a resumed upload whose end is unclear is not sent again by itself`(
        status: Int, address: String, method: HTTPRequest.Method
    ) async throws {
        let queue = queue()
        let id = try await pause(in: queue)
        try await queue.resume(id)
        try await queue.handOver()
        try kept.end(.response(status: status, headerFields: [:], url: URL(string: address), method: method))
        try await queue.handOver()
        #expect(kept.handedOver.isEmpty)
        guard case .failed(let failure) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It has not failed.")
        }
        #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
        await queue.disconnect()
    }

    /// The server has the form, and what it says of it is reported in this process or only in the next one.
    @Test(arguments: [false, true])
    func `an upload that had arrived before it was paused is done with its response`(isNextProcess: Bool) async throws {
        var queue = queue()
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        let attempt = try #require(kept.handedOver.first?.id)
        try await queue.pause(id)
        try await queue.handOver()
        if isNextProcess {
            await queue.disconnect()
            queue = self.queue()
        }
        kept.reportLate(
            attempt, Data("stored".utf8), .response(status: 201, headerFields: [:], url: url, method: .post))
        try await queue.handOver()
        guard case .done(let response) = try #require(try await queue.upload(id)).state else {
            throw ProgramFailure("It is not done.")
        }
        #expect(response.body == Data("stored".utf8))
        await queue.disconnect()
    }

    @Test(arguments: ["send elsewhere", "cancel and retry", "cancel all and retry"])
    func `an upload starts over after other changes`(change: String) async throws {
        let queue = queue()
        let id = try await pause(in: queue)
        switch change {
        case "send elsewhere": try await queue.retry(id, to: url.appending(path: "other"))
        case "cancel and retry":
            try await queue.cancel(id)
            try await queue.retry(id)
        default:
            try await queue.cancelAll()
            try await queue.retry(id)
        }
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [nil])
        await queue.disconnect()
    }

    @Test func `a resumed upload keeps the request that the system resumes`() async throws {
        let queue = queue { _ in [.authorization: "Bearer fresh"] }
        kept.setResumeData(half)
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        #expect(try await kept.freshFields() == [.authorization: "Bearer fresh"])
        try await queue.pause(id)
        try await queue.handOver()
        try await queue.resume(id)
        try await queue.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [half])
        #expect(try await kept.freshFields() == nil)
        await queue.disconnect()
    }

    @Test func `an upload that is resumed before the system has stopped it continues`() async throws {
        let queue = queue()
        kept.setResumeData(half)
        let id = try await queue.enqueue(QueuedForms.form(), to: url)
        try await queue.handOver()
        await queue.disconnect()
        // No process has the session.
        let changes = UploadQueue(directory: directory)
        try await changes.pause(id)
        try await changes.resume(id)
        #expect(kept.handedOver.count == 1)
        let next = self.queue()
        try await next.handOver()
        #expect(kept.handedOver.map(\.resumeData) == [half])
        #expect(kept.cancellations == 0)
        await next.disconnect()
    }

    // MARK: - Callbacks

    @Test func `callbacks that are never called are not waited for forever`() async throws {
        let replies: [Int: Int] = await answers(from: [1: 10, 2: 20, 3: 30], within: .seconds(1), FastTime.time) {
            asker, answer in
            if asker != 20 { answer(asker == 10 ? asker : nil) }
        }
        #expect(replies == [1: 10])
        let none: [Int: Int] = await answers(from: [Int: Int]()) { _, _ in }
        #expect(none.isEmpty)
    }
}
