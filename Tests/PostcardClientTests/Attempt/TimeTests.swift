import Foundation
import HTTPTypes
import PostcardForm
import Testing

@testable import PostcardClient

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
            // On a busy machine the time may be over before the first begins.
            #expect(error.attempts <= 1)
        }
    }

    /// How an answer begins that never comes to its end.
    static let endlessAnswers = [
        "HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\na", "HTTP/1.1 200 OK\r\nX-Long: a",
        String(repeating: "HTTP/1.1 102 Processing\r\n\r\n", count: 50), "",
    ]

    @Test(arguments: Carrier.allCases, endlessAnswers)
    func `an answer without an end is given up when its time is over`(carrier: Carrier, answer: String) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.write(answer)
            _ = try await connection.readToEnd()
        } while: { server in
            var client = UploadClient(transport: carrier.transport(), idleTimeout: nil)
            client.answerTimeout = .seconds(1)
            let hurried = client
            let error = try await #require(throws: UploadError.self) {
                try await hurried.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .timedOut && error.delivery == .answerLost, "\(error)")
            #expect(error.message.contains("within 1 second"), "\(error)")
        }
    }

    @Test func `the time for an answer runs from the end of the form, however many bytes of the answer move`() throws {
        let request = try UploadRequest(
            url: try #require(URL(string: "http://127.0.0.1:1/")), method: .post, headerFields: HTTPFields(),
            body: try MultipartForm().layout(), maximumResponseBytes: 1)
        let watch = AttemptWatch(request, times: AttemptWatch.Times(idle: .seconds(7200), answer: .seconds(3600)))
        let start = ContinuousClock.now
        watch.note(.sent(BodyProgress(bytesSent: 1, contentRanges: [])))
        #expect(watch.look(at: start + .seconds(3700)) != nil)
        watch.note(.sent(BodyProgress(bytesSent: 2, contentRanges: [], isWhole: true)))
        let next = try #require(watch.look(at: start + .seconds(3500)))
        #expect(next < start + .seconds(7200))
        for count in 0..<9 { watch.note(.received(bytes: count)) }
        #expect(watch.expired == nil)
        #expect(watch.look(at: start + .seconds(3700)) == nil)
        #expect(watch.expired?.code == .timedOut && watch.expired?.phase == .receiving)
    }

    @Test func `the time for an answer that overtakes the form runs from when the form last moved`() throws {
        let request = try UploadRequest(
            url: try #require(URL(string: "http://127.0.0.1:1/")), method: .post, headerFields: HTTPFields(),
            body: try MultipartForm().layout(), maximumResponseBytes: 1)
        let watch = AttemptWatch(request, times: AttemptWatch.Times(answer: .seconds(3600)))
        watch.note(.sent(BodyProgress(bytesSent: 1, contentRanges: [])))
        watch.note(.received(bytes: 0))
        let received = ContinuousClock.now
        #expect(watch.look(at: received + .seconds(3500)) != nil && watch.expired == nil)
        for count in 0..<9 { watch.note(.received(bytes: count)) }
        #expect(watch.look(at: received + .seconds(3700)) == nil)
        #expect(watch.expired?.code == .timedOut)
    }

    @Test func `it is five times the idle timeout unless it is set`() {
        #expect(UploadClient().answerTimeout == .seconds(300))
        #expect(UploadClient(idleTimeout: nil).answerTimeout == nil)
        var client = UploadClient(idleTimeout: .seconds(2))
        #expect(client.answerTimeout == .seconds(10))
        client.idleTimeout = .seconds(3)
        #expect(client.answerTimeout == .seconds(15))
        client.answerTimeout = nil
        #expect(client.answerTimeout == nil)
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
    func `a connection that does not come about is told from one that stands still`(limit: String) async throws {
        var client = UploadClient(transport: Unconnected())
        client.idleTimeout = limit == "idle" ? .milliseconds(50) : .seconds(3600)
        client.connectTimeout = limit == "idle" ? nil : .milliseconds(50)
        let hurried = client
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let error = try await #require(throws: UploadError.self) { try await hurried.upload(MultipartForm(), to: url) }
        #expect(error.code == .connectTimedOut)
        #expect(error.phase == .connecting)
        #expect(error.delivery == .neverArrived)
    }

    @Test func `that there is no network is reported`() async throws {
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

    /// Which limits are over at a time, looked at when no byte has moved since the beginning.
    static let limits: [(hours: Int, waitsForNetwork: Bool, code: UploadError.Code?)] = [
        (1, false, nil), (3, false, .connectTimedOut), (9, false, .connectTimedOut),
        (1, true, nil), (3, true, nil), (9, true, .deadlinePassed),
    ]

    @Test(arguments: limits)
    func `while there is no network only the time for the whole runs`(
        hours: Int, waitsForNetwork: Bool, code: UploadError.Code?
    ) throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let request = try UploadRequest(
            url: url, method: .post, headerFields: HTTPFields(), body: try MultipartForm().layout(),
            maximumResponseBytes: 1)
        let start = ContinuousClock.now
        let total = (duration: Duration.seconds(8 * 3600), end: start.advanced(by: .seconds(8 * 3600)))
        let watch = AttemptWatch(
            request,
            times: AttemptWatch.Times(idle: .seconds(2 * 3600), connecting: .seconds(2 * 3600), total: total))
        if waitsForNetwork { watch.note(.waitingForNetwork) }
        let next = watch.look(at: start.advanced(by: .seconds(hours * 3600)))
        #expect(watch.expired?.code == code)
        #expect((next == nil) == (code != nil))
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
