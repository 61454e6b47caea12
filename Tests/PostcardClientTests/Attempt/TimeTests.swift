import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import Testing

@Suite(.timeLimit(.minutes(10))) struct TimeTests {
    /// A server that takes everything and never answers.
    private static func silent<Result: Sendable>(
        while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        try await RawServer.run { connection in
            _ = try await connection.readToEnd()
        } while: {
            try await work($0)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `the time for an upload as a whole ends it, with an error of its own`(carrier: Carrier) async throws {
        try await Self.silent { server in
            var client = UploadClient(
                transport: carrier.transport(), retryPolicy: RetryPolicy(maximumAttempts: 9, firstDelay: .zero))
            client.totalTimeout = .milliseconds(300)
            let hurried = client
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .deadlinePassed)
            #expect(
                error.message.hasPrefix(
                    "The upload to 127.0.0.1:\(server.url.port ?? 0) was not over after 0.3 seconds"))
            #expect(error.attempts == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `no attempt is waited for that the time does not allow`(carrier: Carrier) async throws {
        try await Answers.run([("503 Service Unavailable", ["Retry-After": "100"]), ("201 Created", [:])]) { server in
            var client = UploadClient(transport: carrier.transport(), retryPolicy: RetryPolicy(maximumAttempts: 9))
            client.totalTimeout = .seconds(60)
            let hurried = client
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .deadlinePassed)
            #expect(error.response?.status.code == 503)
            #expect(error.delivery == .refused)
            #expect(error.message.contains("The last attempt failed: 127.0.0.1:\(server.url.port ?? 0) answered 503"))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `behind the policy's deadline no attempt begins, and the last failure is thrown`(carrier: Carrier) async throws
    {
        try await Answers.run([("503 Service Unavailable", ["Retry-After": "100"]), ("201 Created", [:])]) { server in
            let policy = RetryPolicy(maximumAttempts: 9, deadline: .seconds(60))
            let client = UploadClient(transport: carrier.transport(), retryPolicy: policy)
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.attempts == 1)
            #expect(
                error.message.hasSuffix(
                    "It was not tried again: the next attempt would begin more than 60 seconds after the first."))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a time of any length is as good as none`(carrier: Carrier) async throws {
        let longest = Duration.seconds(Int64.max)
        try await Answers.run([("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            var client = UploadClient(
                transport: carrier.transport(), retryPolicy: RetryPolicy(maximumAttempts: 2, firstDelay: .zero),
                idleTimeout: longest)
            client.totalTimeout = longest
            client.connectTimeout = longest
            client.progressInterval = longest
            client.interceptors = [Patient(delay: .zero)]
            let response = try await client.upload(MultipartForm(), to: server.url) { _ in }
            #expect(response.attempts == 2)
        }
        try await Answers.run([("503 Service Unavailable", [:])]) { server in
            var client = UploadClient(transport: carrier.transport())
            client.interceptors = [Patient(delay: longest)]
            let events = client.events(of: MultipartForm(), to: server.url)
            for try await event in events {
                if case .retrying = event { break }
            }
        }
    }

    private struct Patient: UploadInterceptor {
        let delay: Duration
        func decide(after error: UploadError, of attempt: UploadAttempt) -> UploadDecision { .retry(after: delay) }
    }

    @Test func `the time includes what interceptors take`() async throws {
        struct Endless: UploadInterceptor {
            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                let (never, _) = AsyncStream.makeStream(of: Void.self)
                for await _ in never {}
                try Task.checkCancellation()
            }
        }
        var client = UploadClient()
        client.totalTimeout = .milliseconds(50)
        client.interceptors = [Endless()]
        let hurried = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = try await #require(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
        #expect(error.code == .deadlinePassed)
        #expect(error.delivery == .neverArrived)
    }

    /// Never comes to a connection; says that it waits for the network where it is told to.
    private struct Unconnected: UploadTransport {
        let waitsForNetwork: Bool

        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            if waitsForNetwork { report(.waitingForNetwork) }
            let (never, _) = AsyncStream.makeStream(of: Void.self)
            for await _ in never {}
            throw CancellationError()
        }
    }

    @Test(arguments: ["connecting", "idle"])
    func `a connection that does not come about is told from one that stands still`(limit: String) async throws {
        var client = UploadClient(transport: Unconnected(waitsForNetwork: false))
        client.idleTimeout = limit == "idle" ? .milliseconds(50) : .seconds(3600)
        client.connectTimeout = limit == "idle" ? nil : .milliseconds(50)
        let hurried = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = try await #require(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
        #expect(error.code == .connectTimedOut)
        #expect(error.phase == .connecting)
        #expect(error.delivery == .neverArrived)
    }

    @Test func `while there is no network only the time for the whole runs`() async throws {
        var client = UploadClient(transport: Unconnected(waitsForNetwork: true), idleTimeout: .milliseconds(500))
        client.connectTimeout = .milliseconds(500)
        client.totalTimeout = .seconds(2)
        let patient = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let events = patient.events(of: MultipartForm(), to: url)
        var isWaiting = false
        let error = try await #require(throws: UploadError.self) {
            for try await event in events {
                if case .waitingForNetwork = event { isWaiting = true }
            }
        }
        #expect(error.code == .deadlinePassed)
        #expect(isWaiting)
    }

    @Test(arguments: Carrier.allCases)
    func `a host that takes no connections times out connecting`(carrier: Carrier) async throws {
        #if os(Linux)
        let host = try DeafHost()
        var client = UploadClient(transport: carrier.transport())
        client.connectTimeout = .milliseconds(200)
        let hurried = client
        let error = try await #require(throws: UploadError.self) {
            try await hurried.upload(MultipartForm(), to: host.url)
        }
        #expect(error.code == .connectTimedOut)
        #expect(error.delivery == .neverArrived)
        #endif
    }
}
