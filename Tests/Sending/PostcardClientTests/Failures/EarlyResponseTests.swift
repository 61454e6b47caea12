import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

/// Responses of success that come before the server can have the form.
@Suite(.timeLimit(.minutes(10))) struct EarlyResponseTests {
    /// More than a server's buffers take before a busy machine lets it respond. Only what is sent of it is read.
    private static let size: UInt64 = 512 << 20

    private static func form(in folder: TemporaryFolder, size: UInt64 = size) throws -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: size), named: "file")
        return form
    }

    /// A server that answers a form when it has its head, and reads nothing more until the work is done: what its
    /// system's buffers take is less than a form, whatever the machine's speed.
    private static func hasty<Result: Sendable>(
        _ status: String, _ fields: [String: String] = [:], body: String = "",
        while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        let done = Gate()
        return try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond(status, fields, body: body)
            await done.wait()
            _ = try await connection.readToEnd()
        } while: {
            defer { done.open() }
            return try await work($0)
        }
    }

    @Test(arguments: Carrier.allReaders, [("200 OK", "thanks"), ("201 Created", ""), ("303 See Other", "")])
    func `a success before the end of the form is an error that says how much was sent, and is not tried again`(
        carrier: Carrier, early: (status: String, body: String)
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let length = try #require(try form.layout().contentLength)
        try await Self.hasty(early.status, ["Location": "/uploads/7"], body: early.body) { server in
            let client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
            let error = try await #require(throws: UploadError.self) { try await client.upload(form, to: server.url) }
            #expect(error.code == .earlyResponse, "\(error)")
            #expect(error.delivery == .neverArrived && error.attempts == 1)
            let response = try #require(error.response)
            #expect(early.status.hasPrefix("\(response.status.code)"))
            #expect(response.isEarly && response.bytesSent < length)
            #expect(response.text == early.body || response.status.code == 303)
            #expect(error.message.contains("\(response.bytesSent) of \(length) bytes were sent"))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `a server that may have the form from an earlier attempt may answer before it has read it again`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder, size: 8 << 20)
        try await RawServer.run { connection in
            if connection.number == 0 {
                // The response is lost.
                _ = try await connection.readRequest()
                return
            }
            _ = try await connection.readHead()
            try await connection.respond("201 Created", body: "known")
            _ = try await connection.readToEnd()
        } while: { server in
            let client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
            let response = try await client.upload(form, to: server.url)
            #expect(response.text == "known")
            #expect(response.attempts == 2)
            let keys = server.requests.heads.map { $0["Idempotency-Key"] }
            #expect(keys.count == 2 && keys[0] != nil && keys[0] == keys[1])
        }
    }

    private struct Hasty: UploadEndpoint {
        typealias Response = NoResponse
        let baseURL: URL
        let path = ""
        let sent: MultipartForm
        let acceptsEarly: Bool?
        func form() -> MultipartForm { sent }
    }

    @Test(arguments: Carrier.allReaders)
    func `where the client or the endpoint accepts it, it is a success that says that it came early`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await Self.hasty("200 OK", body: "thanks") { server in
            var client = UploadClient(transport: carrier.transport())
            let endpoint = Hasty(baseURL: server.url, sent: form, acceptsEarly: true)
            try await client.upload(endpoint)
            client.responses.acceptsEarly = true
            let response = try await client.upload(form, to: server.url)
            #expect(response.isEarly && response.text == "thanks")
            let strict = client
            let error = try await #require(throws: UploadError.self) {
                try await strict.upload(Hasty(baseURL: server.url, sent: form, acceptsEarly: false))
            }
            #expect(error.code == .earlyResponse)
        }
    }

    @Test func `a success instead of a 100 is one that came before any of the form`() async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await Self.hasty("200 OK") { server in
            var client = UploadClient(transport: AsyncHTTPTransport(expectationPatience: .seconds(60)))
            client.network.expectContinueAbove = 1
            let asking = client
            let error = try await #require(throws: UploadError.self) { try await asking.upload(form, to: server.url) }
            #expect(error.code == .earlyResponse)
            #expect(error.response?.bytesSent == 0)
        }
    }

    @Test(arguments: [0, 3000, 3 << 20])
    func `a success of the caller's own protocol, whose bytes the session does not count, is no early one`(
        size: Int
    ) async throws {
        let configuration = URLSessionTransport.configuration()
        configuration.protocolClasses = [CannedResponse.self] + (configuration.protocolClasses ?? [])
        var form = MultipartForm()
        form.append(Data(count: size), named: "file", filename: "a.bin")
        let client = UploadClient(transport: URLSessionTransport(configuration: configuration))
        let url = try #require(URL(string: "http://canned.example/uploads"))
        let response = try await client.upload(form, to: url)
        #expect(response.text == "canned" && !response.isEarly)
    }

    @Test(arguments: Carrier.allReaders, [nil, 30_000] as [Int64?])
    func `a response that comes with the last byte of the form, before its end is written, is in time`(
        carrier: Carrier, length: Int64?
    ) async throws {
        var form = MultipartForm()
        form.append(SendingTests.stream(of: 3, length: length), named: "log", filename: "log.txt")
        let sent = form
        try await RawServer.run { connection in
            while try await connection.readHead() != nil {
                try await connection.readThrough("\r\n--\(sent.boundary.value)--\r\n")
                try await connection.respond("201 Created", ["Connection": "close"])
                return
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            for _ in 0..<20 {
                let response = try await client.upload(sent, to: server.url)
                #expect(!response.isEarly)
            }
        }
    }
}

/// Answers every request for one host, whatever its body, as the stubs in apps' tests do.
private final class CannedResponse: URLProtocol {
    override class func canInit(with request: URLRequest) -> Bool { request.url?.host() == "canned.example" }

    override class func canonicalRequest(for request: URLRequest) -> URLRequest { request }

    override func startLoading() {
        guard let url = request.url,
            let response = HTTPURLResponse(
                url: url, statusCode: 201, httpVersion: "HTTP/1.1", headerFields: ["Content-Length": "6"])
        else { return }
        client?.urlProtocol(self, didReceive: response, cacheStoragePolicy: .notAllowed)
        client?.urlProtocol(self, didLoad: Data("canned".utf8))
        client?.urlProtocolDidFinishLoading(self)
    }

    override func stopLoading() {}
}
