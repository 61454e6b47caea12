import Foundation
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardQueue
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct QueueResumptionTests {
    private static func form(_ file: URL) -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: file, named: "image")
        return form
    }

    @Test func `a sender that is killed goes on where it stopped`() async throws {
        let folder = try TemporaryFolder()
        let directory = folder.url.appending(path: "queue")
        let file = try folder.file("a.bin", size: 6_000_000)
        let length = try #require(try Self.form(file).layout().contentLength)
        let receiver = try await ReceivingServer()
        // The proxy is no part of what is killed: the first append comes to stand, and the second goes on.
        let cut = 4_000_000
        try await FaultProxy.run(before: receiver.url) { request in
            request.method == "PATCH" && request["Upload-Offset"] == "0" ? .stall(atByte: cut) : .none
        } while: { proxy in
            let queue = try UploadQueue(directory: directory)
            let id = try await queue.enqueue(Self.form(file), to: proxy.uploads)
            let options = ["queue", "run", "--drain", "--queue", directory.path]
            let sender = try RunningProgram(options)
            await proxy.waitForBody(of: cut)
            sender.kill()
            let ending = try await Program.run(options)
            #expect(ending.status == 0, "\(ending.messages)")
            let upload = try #require(try queue.upload(id))
            #expect(upload.state.name == "done" && upload.bytesSent == length && upload.attempts == 2)
            // Asking what the server can do may be repeated when its connection breaks.
            #expect(proxy.seen.map(\.method).filter { $0 != "OPTIONS" } == ["POST", "PATCH", "HEAD", "PATCH"])
            let offset = try #require(proxy.seen.last?["Upload-Offset"].flatMap(Int.init))
            #expect(offset > 0 && offset <= cut)
            #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
        }
        #expect(try await receiver.end().records.count == 1)
    }
}
