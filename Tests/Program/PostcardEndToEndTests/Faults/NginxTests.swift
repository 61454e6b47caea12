import AsyncHTTPClient
import Foundation
import HTTPTypes
import NIOSSL
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Uploads of 200 MB to `postcard serve` through nginx.
@Suite(.serialized, .timeLimit(.minutes(10))) struct NginxTests {
    private static let size: UInt64 = 200_000_000

    /// nginx in front of a server.
    private final class Front: Sendable {
        let receiver: ReceivingServer
        private let folder: TemporaryFolder
        private let nginx: RunningServer

        init() async throws {
            try Tool.require("nginx", "openssl")
            folder = try TemporaryFolder()
            receiver = try await ReceivingServer()
            let start = Repository.url("Tests/Receivers/front")
            let server = "http://127.0.0.1:\(receiver.url.port ?? 80)"
            nginx = try await RunningServer([server, folder.path], of: start)
        }

        func url(_ path: String) throws -> URL {
            try #require(URL(string: "\(nginx.address)/\(path)/uploads"))
        }

        func secureURL(_ path: String) throws -> URL {
            let port = try String(contentsOf: folder.url.appending(path: "secure-port"), encoding: .utf8)
            return try #require(URL(string: "https://localhost:\(port.filter(\.isNumber))/\(path)/uploads"))
        }

        var certificate: String { folder.url.appending(path: "certificate.pem").path }

        /// The protocol and the status of each request, once nginx has written down the last of them.
        func endedRequests() async throws -> [String] {
            _ = await nginx.terminate()
            let text = try String(contentsOf: folder.url.appending(path: "protocols"), encoding: .utf8)
            // The first asked whether nginx was there.
            return text.split(separator: "\n").dropFirst().map(String.init)
        }
    }

    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.sparseFile("film.mp4", size: size), named: "film")
        return form
    }

    @Test(arguments: Carrier.allCases, ["buffered", "unbuffered"])
    func `what nginx lets pass is stored`(carrier: Carrier, path: String) async throws {
        let folder = try TemporaryFolder()
        let front = try await Front()
        let response = try await UploadClient(transport: carrier.transport()).upload(
            Self.form(in: folder), to: try front.url(path))
        #expect(response.status == .created)
        // What ends with nginx is not always in its log.
        #expect(Set(try await front.endedRequests()).isSubset(of: ["HTTP/1.1 201"]))
        #expect(try await front.receiver.end().records.count == 1)
    }

    @Test(arguments: Carrier.allCases, ["limited/buffered", "limited/unbuffered"])
    func `a form too large for nginx is refused, and not tried again`(
        carrier: Carrier, path: String
    ) async throws {
        let folder = try TemporaryFolder()
        let front = try await Front()
        let client = UploadClient(
            transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
        let url = try front.url(path)
        let error = try await #require(throws: UploadError.self) {
            try await client.upload(Self.form(in: folder), to: url)
        }
        #expect(error.code == .refused)
        #expect(error.response?.status == .contentTooLarge)
        #expect(error.attempts == 1)
        // libcurl may restart a request whose connection ends, and nginx may end before it has logged one.
        let ended = try await front.endedRequests()
        #expect(ended.allSatisfy { $0 == "HTTP/1.1 413" })
        #expect(try await front.receiver.end().isEmpty)
    }

    /// URLSession on Linux trusts the system's certificates and no others.
    @Test(arguments: ["buffered", "unbuffered"])
    func `what nginx lets pass over HTTP 2 is stored`(path: String) async throws {
        let folder = try TemporaryFolder()
        let front = try await Front()
        let response = try await Self.withClient(trusting: front.certificate) { client in
            try await client.upload(Self.form(in: folder), to: try front.secureURL(path))
        }
        #expect(response.status == .created)
        #expect(try await front.endedRequests() == ["HTTP/2.0 201"])
        #expect(try await front.receiver.end().records.count == 1)
    }

    @Test(arguments: ["limited/buffered", "limited/unbuffered"])
    func `a form too large for nginx is refused over HTTP 2`(path: String) async throws {
        let folder = try TemporaryFolder()
        let front = try await Front()
        let url = try front.secureURL(path)
        let error = try await #require(throws: UploadError.self) {
            try await Self.withClient(trusting: front.certificate) { client in
                try await client.upload(Self.form(in: folder), to: url)
            }
        }
        #expect(error.code == .refused)
        #expect(error.response?.status == .contentTooLarge)
        #expect(try await front.endedRequests() == ["HTTP/2.0 413"])
        #expect(try await front.receiver.end().isEmpty)
    }

    @Test(arguments: Carrier.allCases)
    func `an untrusted certificate is an error of its own, and nothing is sent`(carrier: Carrier) async throws {
        let front = try await Front()
        let url = try front.secureURL("buffered")
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: url)
        }
        #expect(error.code == .tls)
        #expect(try await front.receiver.end().records.isEmpty)
    }

    private static func withClient<Result: Sendable>(
        trusting certificate: String, _ work: (UploadClient) async throws -> Result
    ) async throws -> Result {
        var tls = TLSConfiguration.makeClientConfiguration()
        tls.trustRoots = .file(certificate)
        var configuration = HTTPClient.Configuration(tlsConfiguration: tls)
        configuration.connectionPool.retryConnectionEstablishment = false
        return try await work(UploadClient(transport: AsyncHTTPTransport(configuration: configuration)))
    }
}
