import Foundation
import PostcardClient
import PostcardForm
import PostcardTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import PostcardQueue

/// What becomes of uploads that are paused, cancelled or interrupted while they are sent.
extension LocalSenderTests {
    @Test func `the server keeps what it has of a paused upload, whatever becomes of cancelled ones`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 2_000_000)
        } while: { proxy in
            let id = try await queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            var options = QueueOptions()
            options.resumption = ResumptionPolicy(deletesCancelledUploads: true)
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            for try await uploads in queue.updates() where uploads.contains(where: { $0.bytesSent > 1_000_000 }) {
                break
            }
            try await queue.pause(id)
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            let resource = try #require(try await queue.store.database.read { try $0.row(id) }?.resource)
            let ending = try await Program.run(
                "curl", ["-sI", "-H", "Upload-Draft-Interop-Version: 8", resource.absoluteString])
            let head = String(decoding: ending.output, as: UTF8.self)
            #expect(head.hasPrefix("HTTP/1.1 204"), "\(head)")
        }
    }

    @Test func `an upload goes back into the queue when the run is cancelled, whatever its interceptor then throws`()
        async throws
    {
        /// Waits for a token, as if with URLSession.
        struct Waiting: UploadInterceptor {
            let begun: AsyncStream<Void>.Continuation

            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                begun.yield()
                do { try await Task.sleep(for: .seconds(600)) } catch { throw URLError(.cancelled) }
            }
        }
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let closed = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let id = try await queue.enqueue(QueuedForms.form("unsent"), to: closed)
        let (begun, continuation) = AsyncStream.makeStream(of: Void.self)
        var client = Self.client
        client.interceptors = [Waiting(begun: continuation)]
        let running = Task { [client] in try await queue.run(client) }
        for await _ in begun { break }
        running.cancel()
        await #expect(throws: CancellationError.self) { try await running.value }
        #expect(try await queue.upload(id)?.state == .waiting)
    }

    @Test func `an upload stops when it is cancelled, and goes back into the queue when the run is`() async throws {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url)
        let server = try await ReceivingServer()
        let file = try folder.file("a.jpg", size: 3_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let cancelled = try await queue.enqueue(QueuedForms.form("1", file), to: proxy.uploads)
            let interrupted = try await queue.enqueue(QueuedForms.form("2", file), to: proxy.uploads)
            let running = Task { try await queue.run(Self.client) }
            for try await uploads in queue.updates()
            where uploads.allSatisfy({ $0.state == .sending && $0.bytesSent > 0 }) { break }
            try await queue.cancel(cancelled)
            try await queue.wait { $0[cancelled] == .cancelled }
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            #expect(try await queue.upload(cancelled)?.state == .cancelled)
            #expect(try await queue.upload(interrupted)?.state == .waiting)
        }
        #expect(try await server.end().records.isEmpty)
    }

    @Test func `a form of which all was sent when the run is cancelled is asked about, if the policy says so`()
        async throws
    {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        let file = try folder.file("a.bin", size: 50_000_000)
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let whole = try await queue.enqueue(QueuedForms.form("1"), to: proxy.uploads)
            let half = try await queue.enqueue(QueuedForms.form("2", file), to: proxy.uploads)
            var options = QueueOptions()
            options.retryPolicy.repeatsUnclear = false
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            for try await uploads in queue.updates() {
                let sent = Dictionary(uniqueKeysWithValues: uploads.map { ($0.id, $0.fraction) })
                if sent[whole] == 1, let sent = sent[half], sent > 0 { break }
            }
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            #expect(try await queue.upload(half)?.state == .waiting)
            guard case .failed(let failure) = try await queue.upload(whole)?.state else {
                Issue.record("It would be sent twice.")
                return
            }
            #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
        }
        _ = try await server.end()
    }

    @Test(arguments: [true, false])
    func `a form of which all was sent when it is paused is asked about, if the policy says so`(repeats: Bool)
        async throws
    {
        let folder = try TemporaryFolder()
        let queue = UploadQueue(directory: folder.url.appending(path: "queue"))
        let server = try await ReceivingServer()
        try await FaultProxy.run(before: server.url) { _ in
            .stall(atByte: 1)
        } while: { proxy in
            let id = try await queue.enqueue(QueuedForms.form("1"), to: proxy.uploads)
            var options = QueueOptions()
            options.retryPolicy.repeatsUnclear = repeats
            let running = Task { [options] in try await queue.run(Self.client, options: options) }
            for try await uploads in queue.updates() where uploads.first?.fraction == 1 { break }
            try await queue.pause(id)
            if !repeats {
                try await queue.wait { $0[id]?.name == "failed" }
                guard case .failed(let failure) = try await queue.upload(id)?.state else { return }
                #expect(failure.code == .unclear && failure.delivery.mayHaveArrived)
            }
            running.cancel()
            await #expect(throws: CancellationError.self) { try await running.value }
            if repeats { #expect(try await queue.upload(id)?.state == .paused) }
        }
        _ = try await server.end()
    }
}
