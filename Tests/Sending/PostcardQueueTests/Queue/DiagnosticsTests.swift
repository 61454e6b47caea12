import Foundation
import GRDB
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// What a support mail says of a queue that seems to do nothing.
@Suite(.timeLimit(.minutes(10))) struct DiagnosticsTests {
    private let folder: TemporaryFolder
    private let kept = KeptTransfers()
    private let url: URL

    init() throws {
        folder = try TemporaryFolder()
        url = try #require(URL(string: "https://example.com/people/nabi?token=secret"))
    }

    private var directory: URL { folder.url.appending(path: "queue") }

    private func queue() -> UploadQueue {
        UploadQueue(
            directory: directory, session: BackgroundSession(identifier: UUID().uuidString),
            service: KeepingService(kept))
    }

    @Test func `the diagnostics name states, attempts and the system's last codes, and nothing of the forms`()
        async throws
    {
        let queue = queue()
        var form = MultipartForm()
        form.append("a private text", named: "diary")
        for end in [
            AttemptEnd.response(status: 201, headerFields: [:], url: url, method: .post),
            .response(status: 422, headerFields: [:], url: url, method: .post),
            .failed(UploadError(URLError(.secureConnectionFailed), of: url, bytesSent: 0)),
        ] {
            try await queue.enqueue(form, to: url, headerFields: [.authorization: "Bearer secret"])
            try await queue.handOver()
            try kept.end(end)
            try await queue.handOver()
        }
        let text = await queue.diagnostics()
        #expect(text.contains("Uploads: 1 done, 1 failed, 1 retrying"))
        #expect(text.contains("Upload 3: retrying, 2 attempts, 1 failures"))
        #expect(text.contains("to https://example.com:443, "))
        #expect(text.contains("Attempt 1 of upload 3 ended (NSURLErrorDomain -1200): tls."))
        #expect(text.contains("Upload 2: failed, 1 attempts") && text.contains("It has failed."))
        #expect(text.contains("Attempt 1 of upload 1 ended with status 201: it is done."))
        #expect(!text.contains("\nUpload 1: "))
        for secret in ["private", "diary", "nabi", "secret"] { #expect(!text.contains(secret)) }
        await queue.disconnect()
        // What another process has seen is in the rows.
        let next = self.queue()
        #expect(await next.diagnostics().contains("Upload 3: retrying, 2 attempts, 1 failures"))
        await next.disconnect()
    }

    @Test func `a queue that cannot be read, and an upload that is damaged, are described too`() async throws {
        let queue = queue()
        try await queue.enqueue(QueuedForms.form(), to: url)
        await queue.disconnect()
        let database = try DatabaseQueue(path: directory.appending(path: "queue.sqlite").path)
        try await database.write { try $0.execute(sql: "UPDATE upload SET attempts = 'many', state = 'lost'") }
        try database.close()
        let text = await self.queue().diagnostics()
        #expect(text.contains("Uploads: 1 lost") && text.contains("Upload 1: its row is damaged."))
        let file = folder.url.appending(path: "file")
        try Data().write(to: file)
        let unreadable = UploadQueue(directory: file, session: nil, service: nil)
        #expect(await unreadable.diagnostics().contains("The queue cannot be read (unusable-directory): "))
    }

    @Test func `only the latest events are kept`() {
        let log = QueueLog()
        for number in 0..<1000 { log.note("event \(number)", at: Date(timeIntervalSince1970: 0)) }
        #expect(log.lines.count == 200)
        #expect(log.lines.last == "1970-01-01T00:00:00Z event 999")
    }
}
