import Foundation
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Synchronization
import Testing

/// A process that is killed while it sends, and the next one.
@Suite(.timeLimit(.minutes(10))) struct KilledSenderTests {
    private let folder: TemporaryFolder
    private let directory: URL

    init() throws {
        folder = try TemporaryFolder()
        directory = folder.url.appending(path: "queue")
    }

    /// The command that sends the queue's uploads.
    private var command: [String] { ["queue", "run", "--drain", "--queue", directory.path] }

    @Test func `an upload resumes after the sender was killed`() async throws {
        let form = QueuedForms.form("초코", try folder.file("a.bin", size: 6_000_000))
        let length = try #require(try form.layout().contentLength)
        let receiver = try await ReceivingServer()
        // The proxy is not killed. It stalls the first PATCH and passes the second.
        let cut = 4_000_000
        try await FaultProxy.run(before: receiver.url) { request in
            request.method == "PATCH" && request["Upload-Offset"] == "0" ? .stall(atByte: cut) : .none
        } while: { proxy in
            let queue = UploadQueue(directory: directory)
            let id = try await queue.enqueue(form, to: proxy.uploads)
            let sender = try RunningProgram(command)
            await proxy.waitForBody(of: cut)
            sender.kill()
            let ending = try await Program.run(command)
            #expect(ending.status == 0, "\(ending.messages)")
            let upload = try #require(try await queue.upload(id))
            #expect(upload.state.isDone && upload.bytesSent == length && upload.attempts == 2)
            // OPTIONS may be repeated if its connection breaks.
            // On a machine with no time for it, the receiver may end the second PATCH too.
            let requests = proxy.seen.filter { $0.method != "OPTIONS" }
            #expect(requests.prefix(4).map(\.method) == ["POST", "PATCH", "HEAD", "PATCH"])
            let offset = try #require(requests.dropFirst(3).first?["Upload-Offset"].flatMap(Int.init))
            #expect(offset > 0 && offset <= cut)
            #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
        }
        #expect(try await receiver.end().records.count == 1)
    }

    @Test func `after the sender was killed, the server may respond before it has read the form again`() async throws {
        let form = QueuedForms.form("초코", try folder.file("a.bin", size: 8 << 20))
        let length = Int(try #require(try form.layout().contentLength))
        let receiver = try await ReceivingServer()
        let posts = Mutex(0)
        try await FaultProxy.run(before: receiver.url) { request in
            // A server that does not resume uploads.
            guard request.method == "POST" else { return .response(Fault.Response(404)) }
            posts.withLock { $0 += 1 }
            return posts.withLock { $0 } == 1
                ? .stall(atByte: length) : .earlyResponse(Fault.Response(201, body: "known"), atByte: 100_000, .reading)
        } while: { proxy in
            let queue = UploadQueue(directory: directory)
            let id = try await queue.enqueue(form, to: proxy.uploads)
            let sender = try RunningProgram(command)
            await proxy.waitForBody(of: length)
            sender.kill()
            #expect(try await Program.run(command).status == 0)
            let upload = try #require(try await queue.upload(id))
            guard case .done(let response) = upload.state else { Issue.record("\(upload.state)"); return }
            #expect(response.body == Data("known".utf8) && upload.attempts == 2)
        }
    }
}
