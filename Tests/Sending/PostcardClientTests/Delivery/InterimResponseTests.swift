import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Creations whose 104 (Upload Resumption Supported) comes last: proxies take it for the final response, or the
/// connection breaks after it.
@Suite(.timeLimit(.minutes(10))) struct InterimResponseTests {
    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: try folder.file("a.jpg", size: 10_000), named: "image")
        return form
    }

    /// An interim response in the version that the clients of these tests ask for first.
    private static func interim(_ field: String) -> String {
        "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 8\r\n\(field)\r\n\r\n"
    }

    private static let offer = ["Accept-Patch": "application/partial-upload"]

    @Test(arguments: Carrier.allCases)
    func `a connection lost after a 104 resumes at the resource that it named`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let body = try await form.layout().bytes()
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", Self.offer)
                case "POST":
                    try await connection.write(
                        Self.interim("Location: /uploads/a") + Self.interim("Upload-Offset: 0"))
                    return
                case "HEAD":
                    try await connection.respond("204 No Content", ["Upload-Offset": "0", "Upload-Complete": "?0"])
                default: try await connection.respond("201 Created", ["Upload-Complete": "?1"])
                }
            }
        } while: { server in
            let response = try await ResumptionTests.client(carrier).upload(form, to: server.url)
            #expect(response.status == .created && response.attempts == 2)
            return server.requests.whole
        }
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "HEAD", "PATCH"])
        #expect(requests.last?.path == "/uploads/a" && requests.last?.body == body)
    }

    @Test(arguments: Carrier.allCases)
    func `a proxy that breaks two creations gets an ordinary upload without the fields of resumption`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let body = try await form.layout().bytes()
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", Self.offer)
                case "POST" where request.head["Upload-Complete"] != nil: return
                default: try await connection.respond("201 Created")
                }
            }
        } while: { server in
            let response = try await ResumptionTests.client(carrier).upload(form, to: server.url)
            #expect(response.status == .created && response.attempts == 3)
            return server.requests.whole
        }
        // libcurl may repeat a creation by itself, which has no content.
        let creations = requests.dropFirst().dropLast()
        #expect(creations.count >= 2 && creations.allSatisfy { $0.head["Upload-Complete"] == "?0" })
        let last = try #require(requests.last)
        #expect(last.head.fields.allSatisfy { !$0.name.lowercased().hasPrefix("upload-") })
        #expect(last.body == body)
        #expect(Set(requests.compactMap { $0.head["Idempotency-Key"] }).count == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `a server that sends nothing but 104 ends the upload with an error`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                if request.method == "OPTIONS" {
                    try await connection.respond("204 No Content", Self.offer)
                    continue
                }
                let interim = Self.interim("Location: /uploads/a")
                try await connection.write(String(repeating: interim, count: 500))
                _ = try await connection.readToEnd()
            }
        } while: { server in
            var client = ResumptionTests.client(carrier)
            client.timeouts.idle = .milliseconds(200)
            var methods: [String] = []
            var delivery: UploadError.Delivery?
            // A busy machine may need longer than that to come as far as the creation, and a form whose offer is late is
            // sent whole.
            repeat {
                let impatient = client
                let count = server.requests.whole.count
                let error = try await #require(throws: UploadError.self) {
                    try await impatient.upload(form, to: server.url)
                }
                delivery = error.delivery
                methods = server.requests.whole.dropFirst(count).map(\.method)
                client.timeouts.idle = client.timeouts.idle.map { $0 * 2 }
            } while Array(methods.suffix(5)) != Self.unanswered && client.timeouts.idle ?? .zero < .seconds(30)
            #expect(Array(methods.suffix(5)) == Self.unanswered)
            #expect(delivery == .neverArrived)
        }
    }

    /// The requests of an upload whose server only ever sends 104: five attempts.
    private static let unanswered = ["POST", "HEAD", "HEAD", "HEAD", "HEAD"]

    /// A transport of a caller, which returns a 104 like a final response.
    private struct Simple: UploadTransport {
        let methods: AsyncStream<String>.Continuation

        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            methods.yield(request.method.rawValue)
            let (status, answer): (Int, HTTPFields) =
                switch request.method {
                case .options: (204, [.acceptPatch: "application/partial-upload"])
                case .post: (104, [.location: "/uploads/a"])
                case .head: (204, [.uploadOffset: "0"])
                default: (201, [:])
                }
            var fields = answer
            fields[.uploadDraftInteropVersion] = request.headerFields[.uploadDraftInteropVersion]
            return UploadResponse(status: .init(code: status), headerFields: fields, body: Data())
        }
    }

    @Test func `a final 104 is an interruption, whichever transport returns it`() async throws {
        let folder = try TemporaryFolder()
        let (methods, log) = AsyncStream.makeStream(of: String.self)
        var client = UploadClient(transport: Simple(methods: log))
        client.resumption = ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 5), minimumBytes: 0)
        try await client.upload(
            try Self.form(in: folder), to: try #require(URL(string: "http://example.org/uploads")))
        log.finish()
        var seen: [String] = []
        for await method in methods { seen.append(method) }
        #expect(seen == ["OPTIONS", "POST", "HEAD", "PATCH"])
    }
}
