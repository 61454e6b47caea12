import Foundation
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct CancellationTests {
    /// One reading of a stream, which ends when nothing holds it any more.
    private final class Reading: Sendable {
        let chunk = Data(count: 10_000)
        private let onEnd: @Sendable () -> Void

        init(onEnd: @escaping @Sendable () -> Void) {
            self.onEnd = onEnd
        }

        deinit {
            onEnd()
        }
    }

    /// Not by URLSession, which on Linux lets go of a body's stream when it likes.
    @Test func `a cancelled upload closes its connection and lets go of the form's stream`() async throws {
        let (ended, end) = AsyncStream.makeStream(of: Void.self)
        let (closed, close) = AsyncStream.makeStream(of: Void.self)
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        var form = MultipartForm()
        form.append(
            FormStream(length: nil) {
                let reading = Reading { end.finish() }
                return AsyncStream { reading.chunk }
            }, named: "endless", filename: "endless.bin")
        let sent = form
        try await RawServer.run { connection in
            guard try await connection.readHead() != nil else { return }
            begin.finish()
            _ = try? await connection.readToEnd()
            close.finish()
        } while: { server in
            let upload = Task {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(sent, to: server.url)
            }
            for await _ in begun {}
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            for await _ in closed {}
            for await _ in ended {}
        }
    }

    enum Way: CaseIterable {
        case events, batch, progressInTask, progress
    }

    @Test(arguments: Way.allCases)
    func `nothing is sent that is cancelled beforehand`(way: Way) async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        await confirmation(expectedCount: 0) { sends in
            let client = UploadClient(
                transport: Scripted {
                    sends()
                    return 100
                })
            for _ in 0..<100 {
                let (begun, begin) = AsyncStream.makeStream(of: Void.self)
                let upload = Task {
                    for await _ in begun {}
                    switch way {
                    case .events: for try await _ in client.events(of: MultipartForm(), to: url) {}
                    case .batch:
                        for await _ in client.uploadEach([MultipartForm(), MultipartForm()], to: url) {}
                    case .progressInTask, .progress:
                        let progress = Progress(totalUnitCount: 1)
                        if way == .progress { progress.cancel() }
                        try await client.upload(MultipartForm(), to: url, reportingTo: progress)
                    }
                }
                if way != .progress { upload.cancel() }
                begin.finish()
                _ = await upload.result
            }
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `an upload that waits for its next attempt can be cancelled`(carrier: Carrier) async throws {
        try await Responses.run([("503 Service Unavailable", ["Retry-After": "100"]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: RetryPolicy(maximumAttempts: 2))
            let (waiting, wait) = AsyncStream.makeStream(of: Void.self)
            let upload = Task {
                for try await event in client.events(of: MultipartForm(), to: server.url) {
                    if case .retrying = event { wait.finish() }
                }
            }
            for await _ in waiting {}
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            #expect(server.requests.heads.count == 1)
        }
    }
}
