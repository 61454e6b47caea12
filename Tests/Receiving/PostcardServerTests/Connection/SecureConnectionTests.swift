import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct SecureConnectionTests {
    @Test(arguments: ["--http1.1", "--http2"])
    func `forms are received over TLS in the HTTP version that the client prefers`(version: String) async throws {
        try await withSecureReceiver { receiver, certificate in
            #expect(receiver.url.hasPrefix("https://"))
            let file = receiver.directory.appending("..").appending("large.bin").string
            let content = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
            try content.write(to: URL(filePath: file))
            let response = try await receiver.curl(
                version, "--cacert", certificate, "-w", "%{stderr}%{http_version} %{http_code}", "-F", "이름=초코", "-F",
                "f=@\(file)", "\(receiver.url)/uploads")
            #expect(response.messages == (version == "--http2" ? "2 201" : "1.1 201"))
            let record = try UploadRecord(json: response.output)
            let fetched = try await receiver.curl(version, "--cacert", certificate, receiver.url + record.files[0].url)
            #expect(fetched.output == content)
        }
    }

    @Test(arguments: ["--http1.1", "--http2"])
    func `responses without content do not say its length`(version: String) async throws {
        try await withSecureReceiver { receiver, certificate in
            func head(_ option: String, _ value: String, _ path: String) async throws -> String {
                let url = receiver.url + path
                return try await receiver.curl(version, "--cacert", certificate, "-i", option, value, url).text
                    .lowercased()
            }
            let file = receiver.directory.appending("..").appending("small.bin").string
            try Data("content".utf8).write(to: URL(filePath: file))
            let response = try await receiver.curl(
                version, "--cacert", certificate, "-F", "f=@\(file)", "\(receiver.url)/uploads")
            let record = try UploadRecord(json: response.output)
            let tag = "If-None-Match: \"\(record.files[0].sha256)\""
            let unchanged = try await head("-H", tag, record.files[0].url)
            #expect(unchanged.contains(" 304") && unchanged.contains("cache-control: no-cache"))
            let deleted = try await head("-X", "DELETE", record.url)
            #expect(deleted.contains(" 204"))
            for text in [unchanged, deleted] { #expect(!text.contains("content-length"), "\(text)") }
        }
    }

    @Test(arguments: ["--http1.1", "--http2"])
    func `an early refusal reaches a client that keeps sending`(version: String) async throws {
        try await withSecureReceiver {
            $0.uploads.limits.maximumFileBytes = 1000
        } _: { receiver, certificate in
            let file = receiver.directory.appending("..").appending("large.bin").string
            try Data(count: 20_000_000).write(to: URL(filePath: file))
            let response = try await receiver.curl(
                version, "--cacert", certificate, "-F", "f=@\(file)", "\(receiver.url)/uploads")
            #expect(response.status == 0, "\(response.messages)")
            let problem = try JSONDecoder().decode(Problem.self, from: response.output)
            #expect(problem.code == "file-too-large")
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a form with an invalid head is refused before its body over HTTP/2 too`() async throws {
        try await withSecureReceiver {
            $0.uploads.limits.maximumBodyBytes = 1000
        } _: { receiver, certificate in
            let file = receiver.directory.appending("..").appending("large.bin").string
            try Data(count: 20_000_000).write(to: URL(filePath: file))
            let response = try await receiver.curl(
                "--http2", "--cacert", certificate, "-H", "Expect: 100-continue", "-F", "f=@\(file)",
                "\(receiver.url)/uploads")
            let problem = try JSONDecoder().decode(Problem.self, from: response.output)
            #expect(problem.code == "body-too-large")
        }
    }

    @Test func `a client that does not start the handshake is disconnected after the idle timeout`() async throws {
        try await withSecureReceiver {
            $0.connections.idleTimeout = .milliseconds(200)
        } _: { receiver, _ in
            let response = try await receiver.exchange("")
            #expect(response.text.isEmpty)
        }
    }

    @Test(arguments: ["", #"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"#])
    func `an HTTP/2 client that sends no request is disconnected after the idle timeout`(
        beginning: String
    ) async throws {
        try await withSecureReceiver {
            $0.connections.idleTimeout = .milliseconds(200)
        } _: { receiver, certificate in
            // It speaks only TLS, and stays connected until the server closes.
            let client = "openssl s_client -quiet -alpn h2 -connect 127.0.0.1:\(receiver.port) -CAfile '\(certificate)'"
            let ending = try await Program.run(
                "bash", ["-c", "printf '\(beginning)' | timeout 30 \(client); test ${PIPESTATUS[1]} != 124"])
            #expect(ending.status == 0, "\(ending.messages)")
        }
    }

    @Test func `an HTTP/2 client that stays after its requests and ignores the GOAWAY is disconnected`() async throws {
        try await withSecureReceiver {
            $0.connections.keepAliveTimeout = .milliseconds(200)
            $0.connections.drainTimeout = .milliseconds(200)
        } _: { receiver, _ in
            var isAnswered = false
            while !isAnswered {
                try await RawStreams.connect(to: receiver.port) { streams in
                    try await streams.send(Self.health, on: 1)
                    // On a busy machine the GOAWAY may come before the request.
                    isAnswered = try await streams.response(on: 1) == .body("ok")
                    guard isAnswered else { return }
                    await #expect(throws: RawStreams.Ended.self) { try await streams.response(on: 3) }
                }
            }
        }
    }

    private static let health: RawStreams.Fields = [
        (":method", "GET"), (":scheme", "https"), (":authority", "localhost"), (":path", "/health"),
    ]

    private static let malformed: [(case: String, fields: RawStreams.Fields)] = [
        ("a name in capitals", health + [("X-A", "1")]), ("no path", Array(health.dropLast())),
        ("an empty path", Array(health.dropLast()) + [(":path", "")]),
        ("a field of the connection", health + [("connection", "close")]), ("another te", health + [("te", "gzip")]),
        ("a late pseudo field", health + [("a", "b"), (":c", "d")]), ("an unknown one", health + [(":c", "d")]),
        ("two paths", health + [(":path", "/")]), ("a line break in a value", health + [("a", "b\nc")]),
        ("a length that is none", health + [("content-length", "x")]),
        ("a length that the body has not", health + [("content-length", "7")]),
    ]

    @Test(arguments: malformed)
    func `a malformed HTTP/2 request ends only its own stream`(
        case: String, fields: RawStreams.Fields
    ) async throws {
        try await withSecureReceiver { receiver, _ in
            try await RawStreams.connect(to: receiver.port) { streams in
                try await streams.send(fields, on: 1)
                try await streams.send(Self.health, on: 3)
                #expect(try await streams.response(on: 3) == .body("ok"), "\(`case`)")
                // PROTOCOL_ERROR
                #expect(try await streams.response(on: 1) == .reset(1), "\(`case`)")
            }
        }
    }

    @Test func `a certificate that cannot be used is named in the error`() async throws {
        try await withTemporaryDirectory { directory in
            var receiver = Receiver(directory: directory)
            receiver.certificate = ServerCertificate(chain: directory.appending("none.pem"), privateKey: "key.pem")
            let unusable = receiver
            let error = #expect(throws: ServerCertificateError.self) { _ = try unusable.application() }
            #expect(error?.message.contains("none.pem") == true)
        }
    }
}
