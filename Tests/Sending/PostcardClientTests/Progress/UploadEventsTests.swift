import Foundation
import HTTPTypes
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct UploadEventsTests {
    /// An event by its name.
    private static func name(_ event: UploadEvent) -> String {
        switch event {
        case .preparing: "preparing"
        case .waitingForNetwork: "waiting for network"
        case .sending(let progress): "sending \(progress.attempt)"
        case .awaitingResponse(let progress): "awaiting response \(progress.attempt)"
        case .retrying(let retry): "retrying as \(retry.nextAttempt)"
        case .done(let response): "done \(response.status.code)"
        }
    }

    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.jpg", size: 900_000), named: "image")
        return form
    }

    @Test(arguments: Carrier.allCases)
    func `an upload reports everything from its preparation to its response, with every retry`(carrier: Carrier)
        async throws
    {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let isSecond = Mutex(false)
        var names: [String] = []
        var last: UploadProgress?
        var retries: [UploadRetry] = []
        let events = try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                let status = isSecond.withLock { isSecond in
                    defer { isSecond = true }
                    return isSecond ? "201 Created" : "503 Service Unavailable"
                }
                try await connection.respond(status)
            }
        } while: { server in
            let policy = RetryPolicy.withoutDelays(maximumAttempts: 2)
            let client = UploadClient(transport: carrier.transport(), retryPolicy: policy)
            var received: [UploadEvent] = []
            for try await event in client.events(of: form, to: server.url) { received.append(event) }
            return received
        }
        for event in events {
            if names.last != Self.name(event) { names.append(Self.name(event)) }
            if case .sending(let progress) = event { last = progress }
            if case .retrying(let retry) = event { retries.append(retry) }
        }
        #expect(
            names == [
                "preparing", "sending 1", "awaiting response 1", "retrying as 2", "sending 2", "awaiting response 2",
                "done 201",
            ])
        #expect(last?.fraction == 1)
        #expect(retries.map(\.error.response?.status.code) == [503])
        #expect(retries.map(\.delay) == [.zero])
    }

    @Test(arguments: Carrier.allCases)
    func `a failure is thrown after the last event, and then there is nothing more`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("422 Unprocessable Content")
        } while: { server in
            var events = UploadClient(transport: carrier.transport()).events(of: MultipartForm(), to: server.url)
                .makeAsyncIterator()
            let error = try await #require(throws: UploadError.self) {
                while try await events.next() != nil {}
            }
            #expect(error.code == .refused)
            let further = try await events.next()
            #expect(further == nil)
        }
    }

    @Test(arguments: Carrier.allCases, ["leaving the loop", "cancelling the task"])
    func `the connection is closed by`(carrier: Carrier, way: String) async throws {
        let folder = try TemporaryFolder()
        var form = MultipartForm()
        let size: UInt64 = 8 << 30
        form.append(fileAt: try folder.sparseFile("large.bin", size: size), named: "file")
        let sent = form
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (left, leave) = AsyncStream.makeStream(of: Void.self)
        let (closed, close) = AsyncStream.makeStream(of: Int.self)
        try await RawServer.run { connection in
            // A body may be read before the connection is made, so sending begins here.
            guard try await connection.readHead() != nil else { return }
            begin.finish()
            for await _ in left {}
            close.yield((try? await connection.readToEnd()) ?? 0)
            close.finish()
        } while: { server in
            let upload = Task {
                for try await event in UploadClient(transport: carrier.transport()).events(of: sent, to: server.url) {
                    guard way == "leaving the loop", event.progress != nil else { continue }
                    for await _ in begun {}
                    break
                }
            }
            if way == "cancelling the task" {
                for await _ in begun {}
                upload.cancel()
                await #expect(throws: CancellationError.self) { try await upload.value }
            } else {
                try await upload.value
            }
            leave.finish()
            #expect(await closed.first { _ in true } ?? .max < Int(size))
        }
    }

    @Test func `nothing is sent before the first event is requested, and each loop is an upload`() async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            let events = UploadClient().events(of: MultipartForm(), to: server.url)
            _ = events.makeAsyncIterator()
            for try await _ in events {}
            for try await _ in events {}
            #expect(server.requests.whole.count == 2)
        }
    }

    @Test func `a slow loop misses outdated progress and nothing else`() async throws {
        let layout = try MultipartForm().layout()
        func step(_ bytes: Int64) -> UploadProgress {
            UploadProgress(attempt: 1, bytesSent: bytes, totalBytes: nil, parts: layout.parts, contentRanges: [])
        }
        let queue = UploadEventQueue(by: SystemClock())
        queue.put(.preparing)
        queue.put(.sending(step(0)))
        for bytes in 1..<1_000 as Range<Int64> { queue.put(.sending(step(bytes)), isReplaceable: true) }
        queue.put(.awaitingResponse(step(1_000)))
        queue.put(.retrying(UploadRetry(after: .invalidURL(URL(filePath: "/"), ""), nextAttempt: 2, delay: .zero)))
        for bytes in 0..<7 as Range<Int64> { queue.put(.sending(step(bytes)), isReplaceable: true) }
        queue.finish(throwing: CancellationError())
        var received: [String] = []
        await #expect(throws: CancellationError.self) {
            while let event = try await queue.next() {
                received.append("\(Self.name(event)) \(event.progress.map { "\($0.bytesSent)" } ?? "")")
            }
        }
        #expect(
            received == [
                "preparing ", "sending 1 0", "sending 1 999", "awaiting response 1 1000", "retrying as 2 ",
                "sending 1 6",
            ])
        let further = try await queue.next()
        #expect(further == nil)
    }
}
