import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct RetryTests {
    private static func policy(_ attempts: Int) -> RetryPolicy {
        RetryPolicy.withoutDelays(maximumAttempts: attempts)
    }

    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.jpg", size: 300_000), named: "image")
        form.append(SendingTests.stream(of: 3, length: nil), named: "log", filename: "log.txt")
        return form
    }

    @Test(arguments: Carrier.allCases)
    func `a retry sends the same bytes under the same key`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await Responses.run([
            ("503 Service Unavailable", ["Retry-After": "0"]), nil, ("429 Too Many Requests", [:]),
            ("201 Created", [:]),
        ]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(5))
            let attempts = Mutex<[Int]>([])
            let response = try await client.upload(form, to: server.url) { progress in
                attempts.withLock { if $0.last != progress.attempt { $0.append(progress.attempt) } }
            }
            #expect(response.attempts == 4)
            #expect(attempts.withLock { $0 } == [1, 2, 3, 4])
            let requests = server.requests.whole
            #expect(requests.count == 4)
            #expect(Set(requests.map(\.body)) == [try await form.layout().bytes()])
            let keys = Set(requests.map { $0.head["Idempotency-Key"] ?? "" })
            let key = try #require(keys.first)
            #expect(keys.count == 1)
            #expect(key.hasPrefix("\"") && key.hasSuffix("\"") && key.count > 30)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `after the last attempt the last failure is thrown`(carrier: Carrier) async throws {
        try await Responses.run([nil, nil, ("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(3))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.response?.status.code == 503)
            #expect(error.attempts == 3)
        }
    }

    @Test(arguments: Carrier.allCases, ["400 Bad Request", "401 Unauthorized", "413 Content Too Large", "501 No"])
    func `what will not pass is not tried again`(carrier: Carrier, status: String) async throws {
        try await Responses.run([(status, [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(3))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.attempts == 1)
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that is still at work on the form whose response was lost is asked again`(
        carrier: Carrier
    ) async throws {
        try await Responses.run([nil, ("409 Conflict", [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(3))
            let response = try await client.upload(MultipartForm(), to: server.url)
            #expect(response.attempts == 3)
            #expect(Set(server.requests.heads.map { $0["Idempotency-Key"] }).count == 1)
        }
        try await Responses.run([("409 Conflict", [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(3))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.delivery == .refused)
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `nothing is tried again unless asked for, and no key is sent`(carrier: Carrier) async throws {
        try await Responses.run([("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            await #expect(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(server.requests.heads.map { $0["Idempotency-Key"] } == [nil])
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a stream that can be read once is not tried again, and the error says so`(carrier: Carrier) async throws {
        let (chunks, chunk) = AsyncStream.makeStream(of: Data.self)
        chunk.yield(Data("log".utf8))
        chunk.finish()
        var form = MultipartForm()
        form.append(FormStream(chunks), named: "log", filename: "log.txt")
        let sent = form
        try await Responses.run([("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(3))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(sent, to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.attempts == 1)
            #expect(error.message.hasSuffix("the form has a stream that can be read only once."))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases, ["\"mine\"", "mine"])
    func `a caller's own key is kept`(carrier: Carrier, key: String) async throws {
        try await Responses.run([("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport(), retryPolicy: Self.policy(3))
            try await client.upload(MultipartForm(), to: server.url, headerFields: [.idempotencyKey: key])
            #expect(server.requests.heads.map { $0["Idempotency-Key"] } == [key, key])
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a form whose response is lost on a reused connection is not sent again silently`(
        carrier: Carrier
    ) async throws {
        try await Responses.run([("201 Created", [:]), nil, ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport())
            try await client.upload(MultipartForm(), to: server.url)
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .connectionLost)
            #expect(server.requests.whole.count == 2)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a lost response on a reused connection is an error for a stream that can be read once`(
        carrier: Carrier
    ) async throws {
        let (chunks, chunk) = AsyncStream.makeStream(of: Data.self)
        chunk.yield(Data("log".utf8))
        chunk.finish()
        var form = MultipartForm()
        form.append(FormStream(chunks), named: "log", filename: "log.txt")
        let sent = form
        try await Responses.run([("201 Created", [:]), nil, ("201 Created", [:])]) { server in
            let client = UploadClient(transport: carrier.transport())
            try await client.upload(MultipartForm(), to: server.url)
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(sent, to: server.url)
            }
            #expect(error.code == .connectionLost)
            #expect(server.requests.whole.count == 2)
        }
    }
}
