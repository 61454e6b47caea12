import HTTPTypes
public import PostcardClient
import PostcardFoundation
import Synchronization

/// A server for an app's tests, without a network. It sends the responses of the test, and stores the requests.
///
/// ```swift
/// @Test func `adding a pet sends its name and two photos`() async throws {
///     let server = TestServer(.created(["id": "7"]))
///     let api = PetAPI(UploadClient(transport: server))
///     let pet = try await api.add("초코", photos: [cat, dog])
///     #expect(pet.id == "7")
///     let sent = try server.upload()
///     sent.expectText("name", "초코")
///     for index in 0...1 {
///         sent.expectFile("petImage", at: index, type: .jpeg, bytes: 1...20_000, hasLocation: false)
///     }
///     sent.expectNothingElse()
/// }
/// ```
///
/// The server is the transport of the app's own client, which does everything else: interceptors, retries, progress,
/// redirects and errors. No socket is opened. Delays and progress take no real time; with a ``TestClock`` they follow
/// that clock. If another transport wraps the server, the client uses the system's clock.
///
/// The test fails if there are more requests than responses. It also fails if responses are left when the last reference
/// to the server is released, or if the test has not read the uploads. An OPTIONS or a DELETE without a form uses no
/// response of the test: the server responds that it has no limits, or that the upload is deleted.
public final class TestServer: UploadTransport {
    private enum Responses {
        case inOrder([TestResponse])
        case made(@Sendable (SentUpload) async throws -> TestResponse)
        /// The test expects no request.
        case none
    }

    private struct State {
        var responses: Responses
        var uploads: [SentUpload] = []
        var isLookedAt = false
        /// Whether the test has failed because a request got no response.
        var hasFailed = false
    }

    private let state: Mutex<State>
    private let clock: TestClock
    private let reporter = TestReporter()
    private let location: TestLocation
    package let time: UploadTime

    /// Makes a server that sends the responses in order, one for each request.
    ///
    /// - Parameters:
    ///   - responses: The responses.
    ///   - clock: The clock for the client's waits. Defaults to `nil`: waits take no time.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public convenience init(
        _ responses: TestResponse..., clock: TestClock? = nil,
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line
    ) {
        self.init(
            .inOrder(responses), clock: clock, at: TestLocation(fileID: fileID, filePath: filePath, line: line))
    }

    /// Makes a server whose responses depend on the requests.
    ///
    /// ```swift
    /// let server = TestServer { upload in
    ///     upload.parts(named: "petImage").isEmpty ? .problem(422, code: "missing-file") : .created(["id": "7"])
    /// }
    /// ```
    ///
    /// - Parameters:
    ///   - clock: The clock for the client's waits. Defaults to `nil`: waits take no time.
    ///   - respond: Called for each request, perhaps for several requests at the same time. If the closure throws an
    ///     error, the upload fails with that error.
    ///   - fileID: The location at which failures are reported. Defaults to the caller.
    ///   - filePath: See `fileID`.
    ///   - line: See `fileID`.
    public convenience init(
        clock: TestClock? = nil,
        fileID: String = #fileID, filePath: StaticString = #filePath, line: UInt = #line,
        responding respond: @escaping @Sendable (SentUpload) async throws -> TestResponse
    ) {
        self.init(.made(respond), clock: clock, at: TestLocation(fileID: fileID, filePath: filePath, line: line))
    }

    private init(_ responses: Responses, clock: TestClock?, at location: TestLocation) {
        state = Mutex(State(responses: responses))
        self.location = location
        self.clock = clock ?? TestClock(isAutomatic: true, at: location)
        time = UploadTime(self.clock)
    }

    /// A server that fails the running test for every request. Make it the default of the app's dependencies in tests,
    /// so that no test uses the network by accident.
    public static let none = TestServer(
        .none, clock: nil, at: TestLocation(fileID: #fileID, filePath: #filePath, line: #line))

    deinit {
        let state = state.withLock { $0 }
        if state.hasFailed { return }
        let sent = Self.count(state.uploads.count, "request")
        if case .inOrder(let responses) = state.responses, !responses.isEmpty {
            let left = responses.map(\.description).joined(separator: ", ")
            reporter.fail(
                "The test ended with \(Self.count(responses.count, "response")) left: \(left). The app sent \(sent).",
                at: location)
        } else if !state.uploads.isEmpty, !state.isLookedAt {
            reporter.fail(
                "The app sent \(sent), and the test looked at none. Call server.upload() or server.uploads.",
                at: location)
        }
    }

    private static func count(_ number: Int, _ word: String) -> String { "\(number) \(word)\(number == 1 ? "" : "s")" }

    /// The requests in the order in which they began. Each attempt is a separate request.
    public var uploads: [SentUpload] {
        state.withLock { state in
            state.isLookedAt = true
            return state.uploads
        }
    }

    /// The only request that was sent.
    ///
    /// - Throws: An error that lists the requests, if there was not exactly one.
    public func upload() throws -> SentUpload {
        let uploads = uploads
        guard uploads.count == 1, let upload = uploads.first else {
            let list = uploads.map { "\n- \($0)" }.joined()
            throw TestFailure(
                description: "The app sent \(Self.count(uploads.count, "request")), and the test expects one."
                    + (uploads.isEmpty ? " Await what sends it before." : " Use server.uploads for several.\(list)"))
        }
        return upload
    }
}

// MARK: - The transport

extension TestServer: TimedTransport {
    public func send(
        _ request: UploadRequest, reporting report: @escaping @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        if request.body == nil, request.method == .options { return Self.response(.methodNotAllowed) }
        if request.body == nil, request.method == .delete { return Self.response(.noContent) }
        var body: [UInt8] = []
        try await request.body?.readAll { body += $0 }
        let upload = SentUpload(request, body, reportingTo: reporter)
        return try await respond(with: try await response(to: upload), to: request, upload, reporting: report)
    }

    private static func response(_ status: HTTPResponse.Status) -> UploadResponse {
        UploadResponse(status: status, headerFields: [:], body: Data())
    }

    /// Stores a request, and returns the response for it.
    private func response(to upload: SentUpload) async throws -> TestResponse {
        let (upload, response) = state.withLock { state -> (SentUpload, Responses?) in
            var upload = upload
            if let key = upload.idempotencyKey {
                upload.attempt = 1 + state.uploads.count { $0.idempotencyKey == key }
            }
            state.uploads.append(upload)
            switch state.responses {
            case .inOrder(var responses):
                guard !responses.isEmpty else { break }
                let response = responses.removeFirst()
                state.responses = .inOrder(responses)
                return (upload, .inOrder([response]))
            case .made: return (upload, state.responses)
            case .none:
                // Later tests use this server too.
                state.uploads = []
            }
            state.hasFailed = true
            return (upload, nil)
        }
        switch response {
        case .inOrder(let responses): if let response = responses.first { return response }
        case .made(let make): return try await make(upload)
        case .none?, nil: break
        }
        let failure = failure(of: upload)
        reporter.fail(failure.description, at: failure.location)
        throw TestFailure(description: failure.description)
    }

    private func failure(of upload: SentUpload) -> (description: String, location: TestLocation?) {
        let (count, isNone) = state.withLock { state in
            if case .none = state.responses { (0, true) } else { (state.uploads.count, false) }
        }
        if isNone {
            return ("The app sent a request, and the test expects none: \(upload). Give its client a TestServer.", nil)
        }
        return (
            "The app sent \(Self.count(count, "request")), and the test has \(Self.count(count - 1, "response")). "
                + "Without a response is \(upload). Add one, or find out why the app sends it.", location
        )
    }

    /// Receives the form at the speed that the test has set for the response, and then sends the response.
    private func respond(
        with response: TestResponse, to request: UploadRequest, _ upload: SentUpload,
        reporting report: @Sendable (TransportEvent) -> Void
    ) async throws -> UploadResponse {
        var end = upload.size
        switch response.kind {
        case .connectionFails:
            throw UploadError.connectionFailed(to: request.url, "the test's server accepts no connections")
        case .untrusted:
            throw UploadError.tls(with: request.url, "the certificate of the test's server is not trusted")
        case .unencodable(let error):
            reporter.fail("The value of TestResponse.created cannot be encoded: \(error)", at: location)
            throw TestFailure(description: error)
        case .breaks(let bytes?): end = min(bytes, end)
        case .breaks(nil), .neverResponds, .response: break
        }
        if request.body != nil { try await receive(end, response.bytesPerSecond, reporting: report) }
        if end == upload.size { upload.arrived() }
        switch response.kind {
        case .response(let response):
            guard response.body.count <= request.maximumResponseBytes else {
                throw UploadError.responseTooLarge(from: request.url, limit: request.maximumResponseBytes)
            }
            report(.received(bytes: response.body.count))
            return response
        case .neverResponds where !clock.isAutomatic:
            try await clock.sleepForever()
            throw CancellationError()
        case .neverResponds:
            throw UploadError.timedOut(request.url, .waiting, after: nil)
        default:
            throw UploadError.connectionLost(to: request.url, "the test's server closed it after \(end) bytes")
        }
    }

    /// Reports bytes as sent, in the same steps in every run.
    private func receive(
        _ end: Int64, _ bytesPerSecond: Int?, reporting report: @Sendable (TransportEvent) -> Void
    ) async throws {
        let step = max(bytesPerSecond.map { Int64($0) / 10 } ?? end / 10, 1)
        var position: Int64 = 0
        report(.sent(bytes: 0))
        while position < end {
            try Task.checkCancellation()
            if bytesPerSecond != nil { try await time.clock.sleep(until: time.clock.instant + .milliseconds(100)) }
            position = min(position + step, end)
            report(.sent(bytes: position))
        }
    }
}
