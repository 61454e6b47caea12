import Foundation
import PostcardClient
import PostcardForm
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(5))) struct URLSessionConnectionsTests {
    /// In its own process: 1,000 sessions use up most of the files that a process may open.
    @Test func `more clients than Dispatch has threads can wait for another's stream`() async {
        await #expect(processExitsWith: .success) {
            // A deadlock would hang this process, so it ends itself.
            Thread.detachNewThread {
                sleep(240)
                print("The uploads have not ended in time.")
                exit(EXIT_FAILURE)
            }
            try await RawServer.run { connection in
                _ = try await connection.readRequest()
                try await connection.respond("201 Created")
            } while: { server in
                let (asked, released) = (Gate(), Gate())
                var form = MultipartForm()
                let stream = FormStream {
                    AsyncStream<Data> {
                        asked.open()
                        await released.wait()
                        return nil
                    }
                }
                form.append(stream, named: "late", filename: nil)
                let late = form
                async let sent = UploadClient(transport: URLSessionTransport()).upload(late, to: server.url)
                // The queue that all sessions share waits for the stream from now on.
                await asked.wait()
                async let others: Void = withDiscardingTaskGroup { group in
                    for _ in 0..<1000 {
                        group.addTask {
                            // Nothing listens there.
                            guard let url = URL(string: "http://127.0.0.1:1/") else { return }
                            await #expect(throws: UploadError.self) {
                                try await UploadClient(transport: URLSessionTransport()).upload(
                                    MultipartForm(), to: url)
                            }
                        }
                    }
                }
                // Time for many of them to wait. Fewer would make the test easier, and never fail it.
                try await Task.sleep(for: .seconds(2))
                released.open()
                await others
                _ = try await sent
            }
        }
    }
}
