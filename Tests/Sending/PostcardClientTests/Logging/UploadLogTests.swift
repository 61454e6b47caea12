import Foundation
import HTTPTypes
import Logging
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct UploadLogTests {
    /// Keeps what is logged, as text.
    private final class Lines: Sendable {
        private let lines = Mutex<[(text: String, id: String)]>([])
        var all: [String] { lines.withLock { $0.map(\.text) } }
        var ids: Set<String> { lines.withLock { Set($0.map(\.id)) } }
        func add(_ text: String, id: String) { lines.withLock { $0.append((text, id)) } }
    }

    private struct Handler: LogHandler {
        let lines: Lines
        var metadata: Logger.Metadata = [:]
        var logLevel = Logger.Level.trace

        subscript(metadataKey key: String) -> Logger.Metadata.Value? {
            get { metadata[key] }
            set { metadata[key] = newValue }
        }

        func log(event: LogEvent) {
            let all = metadata.merging(event.metadata ?? [:]) { $1 }
            lines.add("\(event.level) \(event.message) \(all)", id: "\(all["upload-id"] ?? "")")
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an upload is logged under one identity, without secrets and values`(carrier: Carrier) async throws {
        let lines = Lines()
        var form = MultipartForm()
        form.append("the field's value", named: "name")
        let sent = form
        try await RawServer.run { connection in
            var count = 0
            while try await connection.readRequest() != nil {
                count += 1
                try await connection.respond(
                    count == 1 ? "503 Service Unavailable" : "201 Created",
                    ["Set-Cookie": "session=secret-5", "X-Token": "secret-6", "Retry-After": "0"],
                    body: "the field's value")
            }
        } while: { server in
            var client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 2))
            client.reporting.logger = Logger(label: "test") { _ in Handler(lines: lines) }
            client.reporting.requestIDField = HTTPField.Name("X-Request-ID")
            let port = server.url.port ?? 0
            let url = try #require(URL(string: "http://user:secret-1@127.0.0.1:\(port)/uploads?key=secret-2"))
            let apiKey = try #require(HTTPField.Name("X-Api-Key"))
            try await client.upload(
                sent, to: url, headerFields: [.authorization: "Bearer secret-3", apiKey: "secret-4", .accept: "a/b"])
            #expect(lines.ids.count == 1)
            let ids = Set(server.requests.heads.map { $0["X-Request-ID"] ?? "" })
            #expect(ids == lines.ids)
        }
        let text = lines.all.joined(separator: "\n")
        #expect(!text.contains("secret-"))
        #expect(!text.contains("the field's value"))
        for expected in [
            "debug Sending a form", "/uploads", "Accept: a/b", "Authorization: …", "debug The server responded",
            "info An attempt failed", "503", "info Trying again", "201",
        ] {
            #expect(text.contains(expected), "\(expected)")
        }
    }
}
