import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct InterceptorTests {
    /// Numbers each attempt in a header field, and makes the decision that the test gives it.
    private struct Numbering: UploadInterceptor {
        let decision: UploadDecision

        func adapt(_ request: inout UploadRequest, attempt: Int) {
            // Added to what was there: an adapted request that is adapted again would show.
            request.headerFields[.userAgent] = (request.headerFields[.userAgent] ?? "") + "\(attempt)"
            request.headerFields[.contentType] = "application/json"
        }

        func decide(after error: UploadError, of attempt: UploadAttempt) -> UploadDecision { decision }
    }

    private static func client(_ carrier: Carrier, _ interceptors: any UploadInterceptor...) -> UploadClient {
        var client = UploadClient(transport: carrier.transport())
        client.interceptors = interceptors
        return client
    }

    @Test(arguments: Carrier.allCases)
    func `every attempt is adapted again, and the form's own fields stay`(carrier: Carrier) async throws {
        try await Responses.run([("401 Unauthorized", [:]), ("401 Unauthorized", [:]), ("201 Created", [:])]) {
            server in
            let client = Self.client(carrier, Numbering(decision: .retry(after: .zero)))
            let form = MultipartForm()
            let response = try await client.upload(form, to: server.url, headerFields: [.userAgent: "attempt-"])
            #expect(response.attempts == 3)
            let heads = server.requests.heads
            #expect(heads.map { $0["User-Agent"] } == ["attempt-1", "attempt-2", "attempt-3"])
            #expect(heads.allSatisfy { $0["Content-Type"] == form.contentType })
            #expect(Set(heads.map { $0["Idempotency-Key"] ?? "" }).count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `the first interceptor that says anything decides, before the retry policy`(carrier: Carrier) async throws {
        try await Responses.run([("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            var client = Self.client(
                carrier, Numbering(decision: .passOn), Numbering(decision: .giveUp),
                Numbering(decision: .retry(after: .zero)))
            client.retryPolicy = RetryPolicy.withoutDelays(maximumAttempts: 3)
            let impatient = client
            let error = try await #require(throws: UploadError.self) {
                try await impatient.upload(MultipartForm(), to: server.url)
            }
            #expect(error.attempts == 1)
            #expect(server.requests.heads.map { $0["User-Agent"] } == ["111"])
        }
    }

    @Test(arguments: Carrier.allCases)
    func `interceptors cannot have a form sent again without end`(carrier: Carrier) async throws {
        try await Responses.run(Array(repeating: ("401 Unauthorized", [:]), count: 99)) { server in
            var client = Self.client(carrier, Numbering(decision: .retry(after: .zero)))
            client.retryPolicy.maximumInterceptorRetries = 3
            let stubborn = client
            let error = try await #require(throws: UploadError.self) {
                try await stubborn.upload(MultipartForm(), to: server.url)
            }
            #expect(error.attempts == 4)
            #expect(server.requests.heads.count == 4)
            #expect(error.message.hasSuffix("It was not tried again: interceptors have already requested 3 retries."))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a form that the server has accepted is not sent again`(carrier: Carrier) async throws {
        struct Endpoint: UploadEndpoint {
            struct Response: Decodable { let id: Int }
            let baseURL: URL
            let path = ""
            func form() -> MultipartForm { MultipartForm() }
        }
        try await Responses.run([("201 Created", [:]), ("201 Created", [:])]) { server in
            let client = Self.client(carrier, Numbering(decision: .retry(after: .zero)))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(Endpoint(baseURL: server.url))
            }
            #expect(error.code == .decoding)
            #expect(error.delivery == .accepted)
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a stream that can be read once is not sent again for an interceptor either`(carrier: Carrier) async throws {
        let (chunks, chunk) = AsyncStream.makeStream(of: Data.self)
        chunk.finish()
        var form = MultipartForm()
        form.append(FormStream(chunks), named: "log", filename: "log.txt")
        let sent = form
        try await Responses.run([("401 Unauthorized", [:]), ("201 Created", [:])]) { server in
            let client = Self.client(carrier, Numbering(decision: .retry(after: .zero)))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(sent, to: server.url)
            }
            #expect(error.message.hasSuffix("a stream that can be read only once."))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases, ["adapting", "deciding"])
    func `an interceptor's own error ends the upload unchanged`(carrier: Carrier, moment: String) async throws {
        struct Trouble: Error {}
        struct Failing: UploadInterceptor {
            let moment: String
            func adapt(_ request: inout UploadRequest, attempt: Int) throws {
                if moment == "adapting" { throw Trouble() }
            }
            func decide(after error: UploadError, of attempt: UploadAttempt) throws -> UploadDecision {
                throw Trouble()
            }
        }
        try await Responses.run([("401 Unauthorized", [:])]) { server in
            let client = Self.client(carrier, Failing(moment: moment))
            await #expect(throws: Trouble.self) { try await client.upload(MultipartForm(), to: server.url) }
            #expect(server.requests.heads.count == (moment == "adapting" ? 0 : 1))
        }
    }
}
