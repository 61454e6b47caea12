import Foundation
import HTTPTypes
import PostcardForm
import PostcardSendingSupport
import Testing

@testable import PostcardClient

@Suite(.timeLimit(.minutes(10))) struct TimeTests {
    /// A server that accepts everything and never responds.
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
    func `the total timeout fails an upload with an error of its own`(carrier: Carrier) async throws {
        try await Self.silent { server in
            var client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 9))
            client.timeouts.total = .milliseconds(300)
            let hurried = client
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .deadlinePassed)
            #expect(
                error.message.hasPrefix(
                    "The upload to 127.0.0.1:\(server.url.port ?? 0) was not finished after 0.3 seconds"))
            // On a busy machine the time may be over before the first attempt.
            #expect(error.attempts <= 1)
        }
    }

    /// How responses begin that never end.
    static let endlessResponses = [
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\na", "HTTP/1.1 200 OK\r\nX-Long: a",
        String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 50), "",
    ]

    @Test(arguments: Carrier.allCases, endlessResponses)
    func `a response without an end times out`(carrier: Carrier, response: String) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.write(response)
            _ = try await connection.readToEnd()
        } while: { server in
            var client = UploadClient(transport: carrier.transport(), timeouts: UploadTimeouts(idle: nil))
            client.timeouts.response = .seconds(1)
            let hurried = client
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .timedOut && error.delivery == .responseLost, "\(error)")
            #expect(error.message.contains("within 1 second"), "\(error)")
        }
    }

    @Test func `the response timeout defaults to five times the idle timeout`() {
        #expect(UploadClient().timeouts.response == .seconds(300))
        #expect(UploadClient(timeouts: UploadTimeouts(idle: nil)).timeouts.response == nil)
        var client = UploadClient(timeouts: UploadTimeouts(idle: .seconds(2)))
        #expect(client.timeouts.response == .seconds(10))
        client.timeouts.idle = .seconds(3)
        #expect(client.timeouts.response == .seconds(15))
        client.timeouts.response = nil
        #expect(client.timeouts.response == nil)
    }

    @Test(arguments: Carrier.allCases)
    func `an attempt that the total timeout does not allow is not waited for`(carrier: Carrier) async throws {
        try await Responses.run([("503 Service Unavailable", ["Retry-After": "100"]), ("201 Created", [:])]) { server in
            var client = UploadClient(transport: carrier.transport(), retryPolicy: RetryPolicy(maximumAttempts: 9))
            client.timeouts.total = .seconds(60)
            let hurried = client
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .deadlinePassed)
            #expect(error.response?.status.code == 503)
            #expect(error.delivery == .refused)
            #expect(
                error.message.contains("The last attempt failed: 127.0.0.1:\(server.url.port ?? 0) responded with 503"))
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `after the policy's deadline no attempt starts, and the last error is thrown`(carrier: Carrier) async throws {
        try await Responses.run([("503 Service Unavailable", ["Retry-After": "100"]), ("201 Created", [:])]) { server in
            let policy = RetryPolicy(maximumAttempts: 9, deadline: .seconds(60))
            let client = UploadClient(transport: carrier.transport(), retryPolicy: policy)
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.attempts == 1)
            #expect(
                error.message.hasSuffix(
                    "It was not tried again: the next attempt would start more than 60 seconds after the first."))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a timeout of any length works like none`(carrier: Carrier) async throws {
        let longest = Duration.seconds(Int64.max)
        try await Responses.run([("503 Service Unavailable", [:]), ("201 Created", [:])]) { server in
            var client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 2),
                timeouts: UploadTimeouts(idle: longest))
            client.timeouts.total = longest
            client.timeouts.connect = longest
            client.reporting.progressInterval = longest
            client.interceptors = [Patient(delay: .zero)]
            let response = try await client.upload(MultipartForm(), to: server.url) { _ in }
            #expect(response.attempts == 2)
        }
        try await Responses.run([("503 Service Unavailable", [:])]) { server in
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

    @Test func `the total timeout includes the time of interceptors`() async throws {
        struct Endless: UploadInterceptor {
            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                let (never, _) = AsyncStream.makeStream(of: Void.self)
                for await _ in never {}
                try Task.checkCancellation()
            }
        }
        var client = UploadClient()
        client.timeouts.total = .milliseconds(50)
        client.interceptors = [Endless()]
        let hurried = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = try await #require(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
        #expect(error.code == .deadlinePassed)
        #expect(error.delivery == .neverArrived)
    }

    /// Sends the form, and loses the response.
    private struct Losing: UploadTransport {
        func send(
            _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
        ) async throws -> UploadResponse {
            throw UploadError.connectionLost(to: request.url, "it was closed")
        }
    }

    @Test func `an interceptor that takes too long before a retry does not hide that the form may have arrived`()
        async throws
    {
        struct EndlessAfterFirst: UploadInterceptor {
            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                guard attempt > 1 else { return }
                let (never, _) = AsyncStream.makeStream(of: Void.self)
                for await _ in never {}
                try Task.checkCancellation()
            }
        }
        var client = UploadClient(
            transport: Losing(), retryPolicy: .withoutDelays(maximumAttempts: 2))
        client.interceptors = [EndlessAfterFirst()]
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        var total = Duration.milliseconds(500)
        var error: UploadError?
        // A busy machine may need longer than that for the first attempt.
        repeat {
            client.timeouts.total = total
            let hurried = client
            error = await #expect(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
            total *= 2
        } while error?.underlyingError == nil && total < .seconds(60)
        #expect(error?.code == .deadlinePassed)
        #expect(error?.delivery == .responseLost)
        #expect((error?.underlyingError as? UploadError)?.code == .connectionLost)
    }

    /// Never connects, and may report that it waits for the network.
    private struct Unconnected: UploadTransport {
        var waitsForNetwork = false

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
    func `connecting that takes too long times out, by either timeout`(limit: String) async throws {
        var client = UploadClient(transport: Unconnected())
        client.timeouts.idle = limit == "idle" ? .milliseconds(50) : .seconds(3600)
        client.timeouts.connect = limit == "idle" ? nil : .milliseconds(50)
        let hurried = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = try await #require(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
        #expect(error.code == .connectTimedOut)
        #expect(error.phase == .connecting)
        #expect(error.delivery == .neverArrived)
    }

    @Test func `nothing was sent if the time for the upload ends while it connects`() async throws {
        var client = UploadClient(transport: Unconnected())
        client.timeouts.total = .milliseconds(50)
        let hurried = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = try await #require(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
        #expect(error.code == .deadlinePassed && error.phase == .connecting)
        #expect(error.delivery == .neverArrived)
    }

    @Test func `waiting for a network is reported`() async throws {
        let client = UploadClient(transport: Unconnected(waitsForNetwork: true))
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        var isWaiting = false
        for try await event in client.events(of: MultipartForm(), to: url) {
            if case .waitingForNetwork = event {
                isWaiting = true
                break
            }
        }
        #expect(isWaiting)
    }

    @Test(arguments: Carrier.allCases)
    func `a host that accepts no connections times out connecting`(carrier: Carrier) async throws {
        #if os(Linux)
        let host = try DeafHost()
        var client = UploadClient(transport: carrier.transport())
        client.timeouts.connect = .milliseconds(200)
        let hurried = client
        let error = try await #require(throws: UploadError.self) {
            try await hurried.upload(MultipartForm(), to: host.url)
        }
        #expect(error.code == .connectTimedOut)
        #expect(error.delivery == .neverArrived)
        #endif
    }
}
