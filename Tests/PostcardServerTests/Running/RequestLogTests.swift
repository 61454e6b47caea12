import Logging
import PostcardReceiver
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

/// Keeps what is logged.
private struct CapturedLog: LogHandler {
    final class Lines: Sendable {
        private let lines = Mutex<[Logger.Metadata]>([])

        var all: [Logger.Metadata] { lines.withLock { $0 } }

        func add(_ metadata: Logger.Metadata) { lines.withLock { $0.append(metadata) } }
    }

    let lines: Lines
    var logLevel = Logger.Level.info
    var metadata: Logger.Metadata = [:]

    subscript(metadataKey key: String) -> Logger.Metadata.Value? {
        get { metadata[key] }
        set { metadata[key] = newValue }
    }

    func log(event: LogEvent) {
        guard let request = event.metadata, request["method"] != nil else { return }
        lines.add(request)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct RequestLogTests {
    @Test func `each request is one line, whatever becomes of it`() async throws {
        let lines = CapturedLog.Lines()
        func capture(_ receiver: inout Receiver) {
            receiver.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
        }
        try await withReceiver(capture) { receiver in
            let made = try await receiver.exchange(Form.request(body: Form.small))
            _ = try await receiver.exchange(Form.request(body: "no form"))
            _ = try await receiver.curl("\(receiver.url)/nothing?token=secret")
            _ = try await receiver.curl("-X", "DELETE", receiver.url + (made.headers["location"] ?? ""))
            // Anyone who knows an upload's address can resume it.
            _ = try await receiver.curl(
                "-X", "PATCH", receiver.url + "/uploads/resumable/0123456789abcdefghjkmnpqrstvwxyz")
            _ = try await receiver.exchange("GET /\u{1B}[31m HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n")
            let logged = lines.all.map { line in
                ["method", "path", "status", "code"].map { line[$0].map { "\($0)" } ?? "" }.joined(separator: " ")
            }
            #expect(
                logged == [
                    "POST /uploads 201 ", "POST /uploads 400 delimiter-not-found", "GET /nothing 404 not-found",
                    "DELETE \(made.headers["location"] ?? "") 204 ",
                    "PATCH /uploads/resumable/*** 415 not-partial-upload", "GET /?[31m 400 malformed-request",
                ])
            #expect(
                lines.all.first?["upload"].map { "\($0)" }
                    == made.headers["location"]?.split(separator: "/").last.map(String.init))
        }
    }
}
