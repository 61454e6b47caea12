import Foundation
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import PostcardQueue

/// What follows failures of servers and of interceptors.
extension LocalSenderTests {
    @Test func `an upload is retried only if its failure may pass, and keeps the reason`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let server = try await ReceivingServer("--max-file", "1kB")
        let file = try folder.file("a.jpg", size: 100_000)
        let unreached = try await queue.enqueue(QueuedForms.form("unreached"), to: closed)
        let tooLarge = try await queue.enqueue(QueuedForms.form("large", file), to: server.uploads)
        let bodies = folder.url.appending(path: "queue/bodies")
        let known = try Set(FileManager.default.contentsOfDirectory(atPath: bodies.path))
        let removed = try await queue.enqueue(QueuedForms.form("removed", file), to: server.uploads)
        let changed = try await queue.enqueue(QueuedForms.form("changed", file), to: server.uploads)
        let new = try Set(FileManager.default.contentsOfDirectory(atPath: bodies.path)).subtracting(known).sorted()
        try FileManager.default.removeItem(at: bodies.appending(path: new[0]))
        try Data(repeating: 2, count: 101).write(to: bodies.appending(path: new[1]))
        try await queue.run(Self.client, options: QueueOptions.draining)
        for (id, attempts, reason) in [
            (unreached, 5, "127.0.0.1:1"), (tooLarge, 1, "413"), (removed, 1, "Enqueue it again"),
            (changed, 1, "Enqueue it again"),
        ] {
            let upload = try #require(try await queue.upload(id))
            guard case .failed(let failure) = upload.state else { Issue.record("\(upload.state)"); continue }
            #expect(failure.message.contains(reason))
            #expect(upload.attempts == attempts)
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `an upload fails if the server accepts it before it has read the form`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 8 << 20)
        let early = Fault.earlyResponse(Fault.Response(200, body: "ok"), atByte: 100_000, .reading)
        try await FaultProxy.run([early, early], before: server.url) { proxy in
            let id = try await queue.enqueue(QueuedForms.form("early", file), to: proxy.uploads)
            var options = QueueOptions.draining
            options.resumption = nil
            // A retry by hand fails as well: no attempt can have delivered the form.
            for attempt in 1...2 {
                try await queue.run(Self.client, options: options)
                let upload = try #require(try await queue.upload(id))
                guard case .failed(let failure) = upload.state else { Issue.record("\(upload.state)"); return }
                #expect(failure.message.contains("before it had the whole form") && upload.attempts == attempt)
                try await queue.retry(id)
            }
            try await queue.run(Self.client, options: options)
            #expect(try await queue.upload(id)?.state.name == "done")
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `after a lost response, the server may respond before it has read the form again`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 8 << 20)
        let replay = Fault.earlyResponse(Fault.Response(201, body: "known"), atByte: 100_000, .reading)
        try await FaultProxy.run([.responseLost, replay], before: server.url) { proxy in
            let id = try await queue.enqueue(QueuedForms.form("lost", file), to: proxy.uploads)
            var options = QueueOptions.draining
            options.resumption = nil
            try await queue.run(Self.client, options: options)
            let upload = try #require(try await queue.upload(id))
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); return }
            #expect(response.body == Data("known".utf8) && upload.attempts == 2)
        }
        #expect(try await server.end().records.count == 1)
    }

    @Test func `an interceptor that gives up ends the upload`() async throws {
        struct Strict: UploadInterceptor {
            func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision { .giveUp }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(QueuedForms.form("unreached"), to: closed)
        var client = Self.client
        client.interceptors = [Strict()]
        try await queue.run(client, options: QueueOptions.draining)
        let upload = try #require(try await queue.upload(id))
        #expect(upload.state.failure?.contains("127.0.0.1:1") == true && upload.attempts == 1, "\(upload.state)")
    }

    @Test(arguments: ["before the upload", "after it"])
    func `an upload whose interceptor fails is sent later`(moment: String) async throws {
        /// Has no network to get a token.
        struct Offline: UploadInterceptor {
            let moment: String

            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                if moment == "before the upload" { throw URLError(.notConnectedToInternet) }
            }

            func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
                throw URLError(.notConnectedToInternet)
            }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(QueuedForms.form("unsent"), to: closed)
        var client = Self.client
        client.interceptors = [Offline(moment: moment)]
        let running = Task { [client] in try await queue.run(client) }
        var failure: QueuedUpload.Failure?
        for try await uploads in queue.updates() {
            guard let state = uploads.first(where: { $0.id == id })?.state else { continue }
            if case .retrying(_, let latest) = state { failure = latest }
            guard failure == nil, !state.isEnded else { break }
        }
        running.cancel()
        _ = await running.result
        #expect(failure?.message.contains(". An interceptor failed: ") == true, "\(String(describing: failure))")
        #expect(failure?.code == .interceptorFailed && failure?.delivery.mayHaveArrived == false)
    }

    @Test func `an upload may have arrived if its interceptor fails after a lost response`() async throws {
        /// Has no network any longer when it is to make a second request.
        struct Offline: UploadInterceptor {
            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                if attempt > 1 { throw URLError(.notConnectedToInternet) }
            }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { request in
            // The form is sent to an upload resource.
            (request["Content-Length"].flatMap(Int.init) ?? 0) > 1_000_000 ? .responseLost : .none
        } while: { proxy in
            let id = try await queue.enqueue(QueuedForms.form("lost", file), to: proxy.uploads)
            var client = Self.client
            client.interceptors = [Offline()]
            var options = QueueOptions.draining
            options.retryPolicy.maximumAttempts = 1
            options.resumption?.retryPolicy.firstDelay = .milliseconds(1)
            try await queue.run(client, options: options)
            guard case .failed(let failure) = try await queue.upload(id)?.state else {
                Issue.record("It has not failed.")
                return
            }
            #expect(failure.code == .interceptorFailed && failure.delivery.mayHaveArrived, "\(failure)")
        }
        #expect(try await server.end().records.count == 1)
    }
}
