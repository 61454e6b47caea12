import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// A program that is killed, and another that comes after it.
@Suite(.timeLimit(.minutes(10))) struct BackgroundKillTests {
    /// How far an upload got before the program was killed.
    enum Step: String, CaseIterable {
        /// The database knows the identity, and nothing was handed over.
        case named
        /// The body lies in the folder, and nobody has begun to send it.
        case written
        /// A part of it has gone out.
        case underWay
        /// The server's answer is in the folder.
        case answered
        /// The answer is in the database, and the folder still has it, too.
        case finished
        /// The folder has nothing left, and the database does not know it.
        case removed
    }

    private static let options = QueueOptions(
        concurrency: 4,
        retryPolicy: RetryPolicy(maximumAttempts: 20, firstDelay: .milliseconds(1), maximumDelay: .milliseconds(50)),
        endsWhenEmpty: true)

    private static func queue(in folder: URL) throws -> UploadQueue {
        try UploadQueue(directory: folder.appending(path: "queue"))
    }

    private static func uploads(in folder: URL) async throws -> BackgroundUploads {
        try await BackgroundUploads(identifier: "test", directory: folder.appending(path: "background"))
    }

    private static func form(_ file: URL) -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: file, named: "petImage")
        return form
    }

    /// Goes as far as a step, as a run of the queue does, and is killed.
    private static func die(at step: Step, in folder: URL) async throws {
        // A step that is never reached must not hold up the tests for ever.
        alarm(120)
        let queue = try queue(in: folder)
        let uploads = try await uploads(in: folder)
        let identity = UUID()
        let claimed = try queue.database.write { db in
            let claimed = try db.claimUpload(isUnmetered: true, excluding: [], at: Date())
            if let claimed { try db.beginHandover(of: claimed.upload.id, as: identity) }
            return claimed
        }
        let sending = BackgroundSending(
            claimed: try #require(claimed), queue: queue, uploads: uploads, identity: identity, retryPolicy: .never)
        switch step {
        case .named: break
        case .written:
            let layout = try sending.form().layout()
            _ = try await UploadsFolder(folder.appending(path: "background")).create(identity, layout) { length in
                UploadManifest(
                    id: identity, url: sending.claimed.upload.url, method: .post, contentType: layout.contentType,
                    headerFields: sending.claimed.headerFields, bodyLength: length, filenames: [], added: Date(),
                    isFollowed: true)
            }
        case .underWay:
            async let _ = sending.response()
            for await list in uploads.updates {
                if case .sending(let bytesSent) = list.first?.state, bytesSent > 500_000 { break }
            }
            kill(getpid(), SIGKILL)
        case .answered: _ = try await sending.response()
        case .finished, .removed:
            let response = try await sending.response()
            try queue.database.write { db in
                try db.finishUpload(
                    sending.id, with: .init(status: response.status.code, contentType: nil, body: response.body))
            }
            if step == .removed { try uploads.remove(identity) }
        }
        kill(getpid(), SIGKILL)
    }

    /// Runs a program of its own that is killed at a step.
    private static func runKilled(at step: Step, in folder: TemporaryFolder) async throws {
        try await BlockingTurn.take {
            try await #require(processExitsWith: .signal(SIGKILL)) {
                [path = folder.path as String, step = step.rawValue as String] in
                try await BackgroundKillTests.die(at: try #require(Step(rawValue: step)), in: URL(filePath: path))
            }
        }
    }

    @Test(arguments: Step.allCases)
    func `whatever a killed program had done, the next one goes on there`(step: Step) async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        let faults: [Fault] = step == .underWay ? [.stall(atByte: 1_000_000)] : []
        try await FaultProxy.run(faults, before: server.url) { proxy in
            let queue = try Self.queue(in: folder.url)
            let id = try queue.enqueue(
                Self.form(file), to: proxy.uploads, headerFields: [.authorization: "Bearer abc"])
            try await Self.runKilled(at: step, in: folder)
            // The proxy may read what was sent after its sender is gone.
            if step == .underWay { await proxy.waitForBody(of: 1) }
            #expect(try queue.upload(id)?.state.name == (step == .finished || step == .removed ? "done" : "sending"))
            // What was written to the folder needs the file no more.
            if step != .named { try FileManager.default.removeItem(at: file) }
            let uploads = try await Self.uploads(in: folder.url)
            try await queue.run(in: uploads, options: Self.options)
            let upload = try #require(try queue.upload(id))
            #expect(upload.state.name == "done" && upload.bytesSent == upload.totalBytes)
            #expect(proxy.seen.count == (step == .underWay ? 2 : 1))
            #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
            #expect(proxy.seen.allSatisfy { $0["Authorization"] == "Bearer abc" })
            #expect(uploads.uploads.isEmpty && uploads.problems.isEmpty)
            #expect(try queue.database.read { try $0.handovers() }.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test(arguments: [Step.written, .underWay], [false, true])
    func `what was cancelled while nobody ran the queue is not sent again`(
        step: Step, isCleared: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.stall(atByte: 1_000_000)], before: server.url) { proxy in
            let queue = try Self.queue(in: folder.url)
            let id = try queue.enqueue(Self.form(file), to: proxy.uploads)
            try await Self.runKilled(at: step, in: folder)
            // The proxy may read what was sent after its sender is gone.
            if step == .underWay { await proxy.waitForBody(of: 1) }
            try queue.cancel(id)
            if isCleared { try queue.clear() }
            let uploads = try await Self.uploads(in: folder.url)
            try await queue.run(in: uploads, options: Self.options)
            #expect(try queue.upload(id)?.state == (isCleared ? nil : .cancelled))
            #expect(proxy.seen.count == (step == .underWay ? 1 : 0))
            #expect(uploads.uploads.isEmpty)
            #expect(try queue.database.read { try $0.handovers() }.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test(arguments: [false, true])
    func `one that was cancelled when the server had taken it is done, and is not sent again`(
        isRetried: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let queue = try Self.queue(in: folder.url)
        let id = try queue.enqueue(Self.form(try folder.file("a.jpg", size: 1000)), to: server.uploads)
        try await Self.runKilled(at: .answered, in: folder)
        try queue.cancel(id)
        if isRetried { try queue.retry(id) }
        let uploads = try await Self.uploads(in: folder.url)
        try await queue.run(in: uploads, options: Self.options)
        let upload = try #require(try queue.upload(id))
        #expect(upload.state.name == "done" && upload.attempts == 1)
        #expect(uploads.uploads.isEmpty)
        await uploads.close()
        #expect(try await server.end().records.count == 1)
    }

    @Test(arguments: [false, true])
    func `one that was cancelled and retried does not depend on the attempt before`(
        isRunInTheBackground: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 2_000_000)
        try await FaultProxy.run([.stall(atByte: 1_000_000)], before: server.url) { proxy in
            let queue = try Self.queue(in: folder.url)
            let id = try queue.enqueue(Self.form(file), to: proxy.uploads)
            try await Self.runKilled(at: .underWay, in: folder)
            await proxy.waitForBody(of: 1)
            try queue.cancel(id)
            try queue.retry(id)
            // A client takes it, and is killed.
            _ = try queue.database.write { try $0.claimUpload(isUnmetered: true, excluding: [], at: Date()) }
            let uploads = try await Self.uploads(in: folder.url)
            // The one who cancelled it had come as far as the session.
            for upload in uploads.uploads {
                try await uploads.restart(upload.id)
                try uploads.cancel(upload.id)
            }
            if !isRunInTheBackground {
                try await queue.run(UploadClient(transport: AsyncHTTPTransport()), options: Self.options)
                #expect(try queue.upload(id)?.state.name == "done")
            }
            try await queue.run(in: uploads, options: Self.options)
            #expect(try queue.upload(id)?.state.name == "done")
            #expect(uploads.uploads.isEmpty)
            #expect(try queue.database.read { try $0.handovers() }.isEmpty)
            await uploads.close()
        }
        #expect(try await server.end().records.count == 1)
    }

    /// Ends of the program as a power cut makes them, at moments that chance decides.
    @Test func `every form arrives once, whenever the program is killed`() async throws {
        let kills = ProcessInfo.processInfo.environment["POSTCARD_KILLS"].flatMap(Int.init) ?? 8
        let folder = try TemporaryFolder()
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 200_000)
        let queue = try Self.queue(in: folder.url)
        for _ in 0..<(kills * 3) { try queue.enqueue(Self.form(file), to: server.uploads, files: .copied) }
        for _ in 0..<kills {
            try await BlockingTurn.take {
                try await #require(processExitsWith: .signal(SIGKILL)) { [path = folder.path as String] in
                    alarm(120)
                    Task.detached {
                        // When it ends is the test's chance and not what it waits for.
                        try await Task.sleep(for: .milliseconds(Int.random(in: 0..<150)))
                        kill(getpid(), SIGKILL)
                    }
                    let uploads = try await Self.uploads(in: URL(filePath: path))
                    var options = Self.options
                    options.endsWhenEmpty = false
                    try await Self.queue(in: URL(filePath: path)).run(in: uploads, options: options)
                }
            }
        }
        let uploads = try await Self.uploads(in: folder.url)
        try await queue.run(in: uploads, options: Self.options)
        let list = try queue.uploads()
        #expect(list.count == kills * 3)
        #expect(list.allSatisfy { $0.state.name == "done" })
        #expect(uploads.uploads.isEmpty && uploads.problems.isEmpty)
        await uploads.close()
        let remains = try await server.end()
        #expect(remains.records.count == kills * 3 && remains.unfinished.isEmpty)
    }
}
