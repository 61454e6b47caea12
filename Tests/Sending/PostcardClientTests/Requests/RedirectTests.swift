import Foundation
import HTTPTypes
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@testable import PostcardClient

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(10))) struct RedirectTests {
    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.jpg", size: 300_000), named: "image")
        return form
    }

    @Test(arguments: Carrier.allCases, ["307 Temporary Redirect", "308 Permanent Redirect"])
    func `the form is sent again, byte for byte, to where a 307 or 308 points`(
        carrier: Carrier, status: String
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let journal = ProgressTests.Journal()
        try await Responses.run([(status, ["Location": "/v2/uploads?x=1"]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport())
            let response = try await client.upload(
                form, to: server.url, method: .put, headerFields: [.authorization: "Bearer abc"], progress: journal.note
            )
            #expect(response.attempts == 1)
            #expect(response.bytesSent == (try form.layout().contentLength))
            let requests = server.requests.whole
            #expect(requests.map(\.head.line) == ["PUT /uploads HTTP/1.1", "PUT /v2/uploads?x=1 HTTP/1.1"])
            #expect(Set(requests.map(\.body)) == [try await form.layout().bytes()])
            #expect(requests.map { $0.head["Authorization"] } == ["Bearer abc", "Bearer abc"])
            #expect(requests.map { $0.head["Content-Type"] } == [form.contentType, form.contentType])
        }
        let bytes = journal.all.map(\.bytesSent)
        #expect(bytes == bytes.sorted() && Set(bytes).count == bytes.count)
        #expect(journal.all.last?.fraction == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `after a 303 the other place is requested without the form`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                if head.line.hasPrefix("POST") {
                    _ = try await connection.readBody(of: head)
                    try await connection.respond("303 See Other", ["Location": "/uploads/7"])
                } else {
                    try await connection.respond("200 OK", body: "stored")
                }
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            let response = try await client.upload(form, to: server.url, headerFields: [.authorization: "Bearer abc"])
            #expect(response.text == "stored")
            #expect(response.bytesSent == (try form.layout().contentLength))
            let heads = server.requests.heads
            #expect(heads.map(\.line) == ["POST /uploads HTTP/1.1", "GET /uploads/7 HTTP/1.1"])
            #expect(heads.last?["Content-Type"] == nil)
            #expect(heads.last?["Transfer-Encoding"] == nil)
            #expect(["0", nil].contains(heads.last?["Content-Length"]))
            #expect(heads.last?["Authorization"] == "Bearer abc")
        }
    }

    /// Requests a retry after every outcome.
    private struct Stubborn: UploadInterceptor {
        func decide(after error: UploadError, of attempt: UploadAttempt) -> UploadDecision { .retry(after: .zero) }
    }

    @Test(arguments: Carrier.allCases, ["500 Internal Server Error", nil])
    func `a form that a 303 says is there is not sent again, whatever becomes of the other place`(
        carrier: Carrier, status: String?
    ) async throws {
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                if head.line.hasPrefix("POST") {
                    _ = try await connection.readBody(of: head)
                    try await connection.respond("303 See Other", ["Location": "/uploads/7"])
                } else {
                    guard let status else { return }
                    try await connection.respond(status)
                }
            }
        } while: { server in
            var client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
            client.interceptors = [Stubborn()]
            let stubborn = client
            let error = try await #require(throws: UploadError.self) {
                try await stubborn.upload(MultipartForm(), to: server.url)
            }
            #expect(error.delivery == .accepted)
            #expect(server.requests.heads.count { $0.line.hasPrefix("POST") } == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `to another origin go no credentials`(carrier: Carrier) async throws {
        try await Responses.run([("201 Created", [:])]) { stranger in
            let response = ("307 Temporary Redirect", ["Location": stranger.url.absoluteString])
            try await Responses.run([response]) { server in
                let secrets = ["X-Secret", "Upload-Token", "Content-Signature"]
                let secretFields = secrets.compactMap { HTTPField.Name($0) }.map { HTTPField(name: $0, value: "c") }
                let client = UploadClient(
                    transport: carrier.transport(), retryPolicy: RetryPolicy(maximumAttempts: 2))
                let openFields: HTTPFields = [
                    .authorization: "Bearer abc", .cookie: "a=b", .accept: "application/json",
                    .acceptLanguage: "ko", .userAgent: "Postcard", .contentLanguage: "ko",
                ]
                try await client.upload(
                    MultipartForm(), to: server.url, headerFields: HTTPFields(Array(openFields) + secretFields))
                let head = try #require(stranger.requests.heads.first)
                for name in ["Authorization", "Cookie"] + secrets { #expect(head[name] == nil) }
                #expect(head["Accept"] == "application/json")
                #expect(head["Accept-Language"] == "ko")
                #expect(head["User-Agent"] == "Postcard")
                #expect(head["Content-Language"] == "ko")
                #expect(head["Idempotency-Key"] == server.requests.heads.first?["Idempotency-Key"])
                #expect(stranger.requests.whole.count == 1)
            }
        }
    }

    @Test(arguments: [307, 303])
    func `what a session's configuration adds to requests stays with the origin, like the upload's own`(
        status: Int
    ) async throws {
        let configuration = URLSessionTransport.configuration()
        configuration.httpAdditionalHeaders = [
            "Authorization": "Bearer abc", "X-Api-Key": "c", "Cookie": "a=b", "Accept": "application/json",
            "X-Trace": "session",
        ]
        let client = UploadClient(transport: URLSessionTransport(configuration: configuration))
        try await Responses.run([("200 OK", [:])]) { stranger in
            let responses = [
                ("\(status) Elsewhere", ["Location": "/again"]),
                ("\(status) Elsewhere", ["Location": stranger.url.absoluteString]),
            ]
            try await Responses.run(responses) { server in
                let fields = [HTTPField(name: try #require(HTTPField.Name("x-trace")), value: "upload")]
                try await client.upload(MultipartForm(), to: server.url, headerFields: HTTPFields(fields))
                #expect(server.requests.heads.count == 2)
                for head in server.requests.heads {
                    #expect(head["Authorization"] == "Bearer abc" && head["X-Api-Key"] == "c")
                    #expect(head["Cookie"] == "a=b" && head["Accept"] == "application/json")
                    #expect(head.fields.filter { $0.name.lowercased() == "x-trace" }.map(\.value) == ["upload"])
                }
                let head = try #require(stranger.requests.heads.first)
                for name in ["Authorization", "X-Api-Key", "Cookie", "X-Trace"] { #expect(head[name] == nil) }
                #expect(head["Accept"] == "application/json")
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `interceptors are not asked about a refusal by another origin`(carrier: Carrier) async throws {
        try await Responses.run([("401 Unauthorized", [:]), ("201 Created", [:])]) { stranger in
            let response = ("307 Temporary Redirect", ["Location": stranger.url.absoluteString])
            try await Responses.run([response]) { server in
                var client = UploadClient(transport: carrier.transport())
                client.interceptors = [Stubborn()]
                let stubborn = client
                let error = try await #require(throws: UploadError.self) {
                    try await stubborn.upload(MultipartForm(), to: server.url)
                }
                #expect(error.response?.status.code == 401)
                #expect(error.attempts == 1)
            }
        }
    }

    /// A redirect that is not followed, and why.
    struct Unfollowed: Sendable, CustomTestStringConvertible {
        let status: String
        var location: String? = "/elsewhere"
        var policy = RedirectPolicy.follow(maximum: 5)
        let message: String
        var testDescription: String { message }
    }

    static let unfollowed = [
        Unfollowed(status: "301 Moved Permanently", message: "have the server respond with 308."),
        Unfollowed(status: "302 Found", message: "have the server respond with 307, or with 303 if it has the form."),
        Unfollowed(
            status: "307 Temporary Redirect", policy: .never,
            message: "responded with 307 Temporary Redirect and redirects to /elsewhere. Redirects are not followed. "
                + "Send the form there if that is right."),
        Unfollowed(
            status: "303 See Other", policy: .never,
            message: "The server has the form, and redirects are not followed."),
        Unfollowed(status: "303 See Other", location: nil, message: "responded with 303 See Other"),
        Unfollowed(status: "303 See Other", location: "ftp://example.org/", message: "That is not a web address."),
        Unfollowed(status: "307 Temporary Redirect", location: nil, message: "responded with 307 Temporary Redirect"),
        Unfollowed(
            status: "308 Permanent Redirect", location: "ftp://example.org/", message: "That is not a web address."),
        Unfollowed(
            status: "300 Multiple Choices",
            message: "This status is not followed. Send the form there if that is right."),
    ]

    @Test(arguments: Carrier.allCases, unfollowed)
    func `a redirect that is not followed is a refusal that says why`(
        carrier: Carrier, redirect: Unfollowed
    ) async throws {
        let fields = redirect.location.map { ["Location": $0] } ?? [:]
        try await Responses.run([(redirect.status, fields), ("201 Created", [:])]) { server in
            var client = UploadClient(transport: carrier.transport())
            client.redirects = redirect.policy
            let strict = client
            let error = try await #require(throws: UploadError.self) {
                try await strict.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.message.hasSuffix(redirect.message))
            #expect(error.response.map { redirect.status.hasPrefix("\($0.status.code)") } == true)
            // With a 303 the server says that it has the form.
            #expect(error.delivery == (redirect.status.hasPrefix("303") ? .accepted : .refused))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a circle ends after as many redirects as are allowed`(carrier: Carrier) async throws {
        let response = ("307 Temporary Redirect", ["Location": "/uploads"])
        try await Responses.run(Array(repeating: response, count: 9)) { server in
            var client = UploadClient(transport: carrier.transport())
            client.redirects = .follow(maximum: 3)
            let patient = client
            let error = try await #require(throws: UploadError.self) {
                try await patient.upload(MultipartForm(), to: server.url)
            }
            #expect(error.message.hasSuffix("3 redirects were followed before it, and no more are."))
            #expect(server.requests.heads.count == 4)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a stream that can be read once is not sent to another place, and the error says so`(
        carrier: Carrier
    ) async throws {
        let (chunks, chunk) = AsyncStream.makeStream(of: Data.self)
        chunk.yield(Data("log".utf8))
        chunk.finish()
        var form = MultipartForm()
        form.append(FormStream(chunks), named: "log", filename: "log.txt")
        let sent = form
        try await Responses.run([("308 Permanent Redirect", ["Location": "/v2"]), ("201 Created", [:])]) { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(sent, to: server.url)
            }
            #expect(error.message.hasSuffix("because it has a stream that can be read only once."))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a redirect whose status the caller accepts is the response`(carrier: Carrier) async throws {
        try await Responses.run([("302 Found", ["Location": "/done"])]) { server in
            var client = UploadClient(transport: carrier.transport())
            client.responses.acceptedStatuses.insert(302)
            let response = try await client.upload(MultipartForm(), to: server.url)
            #expect(response.status.code == 302)
            #expect(response.headerFields[.location] == "/done")
        }
    }

    @Test(arguments: [
        ("https://a.example/x", "http://a.example/y", "Nothing was sent there, because that address is not encrypted."),
        ("https://a.example/x", "HTTP://a.example/y", "Nothing was sent there, because that address is not encrypted."),
        ("http://a.example/x", "javascript:alert(1)", "That is not a web address."),
        ("http://a.example/x", "http:///y", "That is not a web address."),
    ])
    func `nothing goes from an encrypted place to another, nor to what is no place`(
        from: String, to: String, message: String
    ) throws {
        let layout = try MultipartForm().layout()
        let request = try UploadRequest(
            url: try #require(URL(string: from)), method: .post, headerFields: HTTPFields(), body: UploadBody(layout),
            maximumResponseBytes: 1)
        var redirects = RedirectFollower(request, policy: .follow(maximum: 5))
        let response = UploadResponse(status: .temporaryRedirect, headerFields: [.location: to], body: Data())
        let error = try #require(throws: UploadError.self) { try redirects.follow(response) }
        #expect(error.message.hasSuffix(message))
    }

    @Test func `the page that a 303 points to is requested without an expectation`() throws {
        let request = try UploadRequest(
            url: try #require(URL(string: "http://a.example/x")), method: .post,
            headerFields: [.expect: "100-continue"], body: UploadBody(try MultipartForm().layout()),
            maximumResponseBytes: 1)
        var redirects = RedirectFollower(request, policy: .follow(maximum: 5))
        #expect(redirects.request.headerFields[.expect] == "100-continue")
        try redirects.follow(UploadResponse(status: .seeOther, headerFields: [.location: "/y"], body: Data()))
        #expect(redirects.request.method == .get)
        #expect(redirects.request.headerFields[.expect] == nil)
    }

    /// Reports the connection of every request, and all of the form. Its form has a page, which a 303 points to.
    private struct Connecting: UploadTransport {
        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            report(.sent(bytes: 0))
            guard let body = request.body else {
                return UploadResponse(status: .ok, headerFields: HTTPFields(), body: Data("stored".utf8))
            }
            report(.sent(bytes: body.contentLength ?? 0))
            return UploadResponse(status: .seeOther, headerFields: [.location: "/uploads/7"], body: Data())
        }
    }

    @Test func `the page that a 303 points to is not early if the transport reports its connection`() async throws {
        let url = try #require(URL(string: "http://example.org/"))
        let response = try await UploadClient(transport: Connecting()).upload(MultipartForm(), to: url)
        #expect(response.text == "stored" && !response.isEarly)
    }

    @Test(arguments: [
        ("https://a.example/x", "https://a.example:443/y", true), ("https://a.example/x", "//A.example/y", true),
        ("https://a.example/x", "https://a.example:444/y", false),
        ("https://a.example/x", "https://b.a.example/", false),
        ("http://a.example/x", "https://a.example/x", false), ("http://a.example:80/x", "../y?z", true),
    ])
    func `an origin is scheme, host and port`(from: String, to: String, isSame: Bool) throws {
        let request = try UploadRequest(
            url: try #require(URL(string: from)), method: .post, headerFields: [.authorization: "a"],
            body: UploadBody(try MultipartForm().layout()), maximumResponseBytes: 1)
        var redirects = RedirectFollower(request, policy: .follow(maximum: 5))
        try redirects.follow(UploadResponse(status: .temporaryRedirect, headerFields: [.location: to], body: Data()))
        #expect(redirects.hasLeftOrigin != isSame)
        #expect(redirects.request.headerFields[.authorization] == (isSame ? "a" : nil))
        guard redirects.request.url.scheme == request.url.scheme else { return }
        // Credentials that were dropped on the way are not sent on the way back either.
        try redirects.follow(UploadResponse(status: .temporaryRedirect, headerFields: [.location: from], body: Data()))
        #expect(redirects.request.headerFields[.authorization] == (isSame ? "a" : nil))
        #expect(redirects.hasLeftOrigin != isSame)
    }
}
