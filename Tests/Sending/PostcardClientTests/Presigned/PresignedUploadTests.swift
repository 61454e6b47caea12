import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@Suite(.timeLimit(.minutes(10))) struct PresignedUploadTests {
    static func form() -> MultipartForm {
        var form = MultipartForm()
        form.append(Data("content".utf8), named: "photo", filename: "a.jpg", contentType: .jpeg)
        return form
    }

    static func error(_ code: String, _ message: String) -> String {
        "<Error><Code>\(code)</Code><Message>\(message)</Message></Error>"
    }

    /// Counts the forms that were asked for.
    final class Server: Sendable {
        private let state = Mutex(0)
        let make: @Sendable () -> PresignedForm
        var count: Int { state.withLock { $0 } }
        init(_ make: @escaping @Sendable () -> PresignedForm) { self.make = make }
        func refresh() -> PresignedForm {
            state.withLock { $0 += 1 }
            return make()
        }
    }

    @Test(arguments: Carrier.allCases)
    func `201 gives the key and the ETag, and the app's credentials stay with the app`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond(
                    "201 Created", ["Content-Type": "application/xml"],
                    body: "<PostResponse><Key>photos/1</Key><ETag>\"1f\"</ETag></PostResponse>")
            }
        } while: { server in
            var client = UploadClient(transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
            client.interceptors = [BearerTokenInterceptor(token: "secret") { _ in "secret" }]
            client.resumption = ResumptionPolicy()
            client.responses.sendsDigests = true
            let object = try await client.upload(Self.form(), with: Presigned.form(to: server.url))
            #expect(object.key == "photos/1")
            #expect(object.etag == "1f")
            #expect(object.response.status == .created)
            let requests = server.requests.whole
            #expect(requests.count == 1)
            let head = try #require(requests.first?.head)
            #expect(head.line == "POST /uploads HTTP/1.1")
            for name in ["Authorization", "Idempotency-Key", "Repr-Digest", "Upload-Complete"] {
                #expect(head[name] == nil, "\(name)")
            }
            let parts = Presigned.parts(requests.first?.body ?? [], contentType: head["Content-Type"] ?? "")
            #expect(parts.last?.content == "content")
            #expect(parts.count == 5)
        }
    }

    @Test func `a store gets none of the transport's header fields that may identify someone`() async throws {
        try await Responses.run([("200 OK", [:])]) { server in
            let configuration = URLSessionTransport.configuration()
            configuration.httpAdditionalHeaders = [
                "Authorization": "Bearer secret", "X-API-Key": "secret", "Cookie": "secret", "User-Agent": "Diary/1",
            ]
            let client = UploadClient(transport: URLSessionTransport(configuration: configuration))
            try await client.upload(Self.form(), with: PresignedForm(putting: server.url))
            let head = try #require(server.requests.whole.first?.head)
            #expect(head["User-Agent"] == "Diary/1")
            for name in ["Authorization", "X-API-Key", "Cookie"] { #expect(head[name] == nil, "\(name)") }
        }
    }

    @Test(arguments: Carrier.allCases, ["204 No Content", "200 OK", "303 See Other"])
    func `every success of a store is one, and is followed nowhere`(carrier: Carrier, status: String) async throws {
        try await Responses.run([(status, ["ETag": "\"2e\"", "Location": "/elsewhere?key=photos/1&etag=%222e%22"])]) {
            server in
            let client = UploadClient(transport: carrier.transport())
            let object = try await client.upload(Self.form(), with: Presigned.form(to: server.url))
            #expect(object.key == "photos/1")
            #expect(object.etag == "2e")
            #expect(server.requests.heads.count == 1)
        }
    }

    /// Gives its file another name, as a picture gets that was made to fit.
    private struct Renaming: FormPreparation {
        let followsServerLimit = false
        func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
            parts.map { part in
                var part = part
                part.filename = "IMG.jpg"
                return part
            }
        }
    }

    /// Notes whether it was asked for a file.
    private final class Noting: FormPreparation {
        let followsServerLimit = true
        let count = Mutex(0)
        func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
            count.withLock { $0 += 1 }
            return parts
        }
        static func == (one: Noting, other: Noting) -> Bool { one === other }
        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    @Test func `pictures are not made to fit a policy that cannot be read`() async throws {
        let preparation = Noting()
        var form = MultipartForm()
        form.append(
            FormPart(name: "file", filename: "a.jpg", content: .bytes(Data([1])), preparation: preparation))
        let broken = PresignedForm(url: URL(filePath: "/"), fields: ["key": "a", "policy": "e30="])
        let sent = form
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient().upload(sent, with: broken)
        }
        #expect(error.code == .brokenPolicy && preparation.count.withLock { $0 } == 0)
    }

    @Test(
        arguments: [
            ("photos/${filename}", nil, "IMG.heic", true, "photos/IMG.jpg"),
            ("photos/${filename}", nil, "IMG.heic", false, "photos/IMG.heic"),
            ("photos/${filename}", nil, nil, false, "photos/file"),
            ("photos/${filename}", nil, "a/b\\c.jpg", false, "photos/c.jpg"),
            ("photos/${filename}", "photos/초코", "IMG.heic", false, "photos/초코"),
        ] as [(String, String?, String?, Bool, String)])
    func `the key is that of the file that was sent, if the store does not say it`(
        signed: String, given: String?, filename: String?, isPrepared: Bool, key: String
    ) async throws {
        try await Responses.run([("204 No Content", [:])]) { server in
            var form = MultipartForm()
            form.append(
                FormPart(
                    name: "file", filename: filename, content: .bytes(Data("content".utf8)),
                    preparation: isPrepared ? Renaming() : nil))
            if let given { form.append(given, named: "Key") }
            let policy = #"{"expiration":"\#(Presigned.later)","conditions":[["starts-with","$key","photos/"]]}"#
            let presigned = PresignedForm(
                url: server.url,
                fields: ["key": signed, "policy": Data(policy.utf8).base64EncodedString(), "x-amz-signature": "a1b2"])
            let object = try await UploadClient().upload(form, with: presigned)
            #expect(object.key == key)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a PUT sends the file with the fields that were signed`(carrier: Carrier) async throws {
        try await Responses.run([("200 OK", ["ETag": "\"3d\""])]) { server in
            let url = try #require(URL(string: "\(server.url.absoluteString)/a%20b?X-Amz-Signature=1%2F2"))
            let presigned = PresignedForm(putting: url, headerFields: ["x-amz-acl": "private"], key: "a b")
            let object = try await UploadClient(transport: carrier.transport()).upload(Self.form(), with: presigned)
            #expect(object.key == "a b" && object.etag == "3d")
            let request = try #require(server.requests.whole.first)
            #expect(request.head.line == "PUT /uploads/a%20b?X-Amz-Signature=1%2F2 HTTP/1.1")
            #expect(request.head["x-amz-acl"] == "private")
            #expect(request.head["Content-Type"] == "image/jpeg")
            #expect(request.body == Array("content".utf8))
        }
    }

    @Test func `a message has no signature of a PUT`() async throws {
        let location = "https://other.example/pets/1?X-Amz-Signature=secret"
        try await Responses.run([("307 Temporary Redirect", ["Location": location])]) { server in
            var client = UploadClient()
            client.redirects = .never
            let refused = client
            let urls = [
                "\(server.url.absoluteString)?X-Amz-Signature=secret", "ftp://127.0.0.1/1?X-Amz-Signature=secret",
            ]
            for url in urls {
                let put = PresignedForm(putting: try #require(URL(string: url)))
                let error = try await #require(throws: UploadError.self) {
                    try await refused.upload(Self.form(), with: put)
                }
                #expect(!error.message.contains("secret"), "\(error)")
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `nothing is sent that the policy forbids`(carrier: Carrier) async throws {
        try await Responses.run([("204 No Content", [:])]) { server in
            let client = UploadClient(transport: carrier.transport())
            let forbidding = Presigned.form(to: server.url, [#"["content-length-range",0,6]"#])
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(Self.form(), with: forbidding)
            }
            #expect(error.code == .brokenPolicy)
            let expired = try await #require(throws: UploadError.self) {
                try await client.upload(
                    Self.form(), with: Presigned.form(to: server.url, expiration: Presigned.earlier))
            }
            #expect(expired.code == .formExpired)
            #expect(server.requests.heads.isEmpty)
        }
    }

    #if canImport(FoundationNetworking)
    @Test func `a store is sent no file without its length`() async throws {
        try await Responses.run([("204 No Content", [:]), ("204 No Content", [:])]) { server in
            let small = UploadClient(transport: URLSessionTransport(maximumBytesInMemory: 6))
            let put = PresignedForm(putting: server.url)
            let error = try await #require(throws: UploadError.self) { try await small.upload(Self.form(), with: put) }
            #expect(error.code == .brokenPolicy && error.message.contains("AsyncHTTPTransport"), "\(error)")
            #expect(error.delivery == .neverArrived && server.requests.heads.isEmpty)
            let enough = UploadClient(transport: URLSessionTransport(maximumBytesInMemory: 7))
            try await enough.upload(Self.form(), with: put)
            #expect(server.requests.whole.first?.head["Content-Length"] == "7")
        }
    }
    #endif

    @Test func `a rule of the client is one of the form that the caller made`() async throws {
        try await Responses.run([("204 No Content", [:])]) { server in
            var client = UploadClient()
            client.rules = try FormRules(fields: [:], files: ["photo": FormRules.File()])
            try await client.upload(Self.form(), with: Presigned.form(to: server.url))
            #expect(server.requests.whole.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a store that is busy is asked again by the retry policy`(carrier: Carrier) async throws {
        let answers: [(String, String)] = [
            ("503 Slow Down", Self.error("SlowDown", "")), ("400 Bad Request", Self.error("RequestTimeout", "")),
            ("409 Conflict", Self.error("OperationAborted", "")),
        ]
        let rest = Mutex(answers)
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                let next = rest.withLock { $0.isEmpty ? nil : $0.removeFirst() }
                try await connection.respond(next?.0 ?? "204 No Content", body: next?.1 ?? "")
            }
        } while: { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 4))
            let object = try await client.upload(Self.form(), with: Presigned.form(to: server.url))
            #expect(object.response.attempts == 4)
            #expect(Set(server.requests.whole.map(\.body)).count == 1)
        }
    }
}
