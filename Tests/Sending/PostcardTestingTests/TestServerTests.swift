import Foundation
import HTTPTypes
import PostcardTesting
import Testing

@Suite(.timeLimit(.minutes(10))) struct TestServerTests {
    @Test func `an app sends a form, and the test sees what it was`() async throws {
        let server = TestServer(.created(["id": "7"]))
        let pet = try await PetAPI(server).add("초코", photos: [PetAPI.photo, PetAPI.otherPhoto])
        #expect(pet.id == "7")
        let sent = try server.upload()
        #expect(sent.url == PetAPI.url && sent.method == .post && sent.attempt == 1 && sent.isComplete)
        #expect(sent.parts.map(\.name) == ["name", "petImage", "petImage"])
        #expect(sent.part(named: "name")?.text == "초코")
        #expect(sent.parts(named: "petImage").map(\.filename) == ["0.jpg", "1.jpg"])
        #expect(sent.parts(named: "petImage").map(\.bytes) == [PetAPI.photo, PetAPI.otherPhoto])
        #expect(sent.parts(named: "petImage").map(\.size) == [9, 9])
        #expect(sent.explanation.isWellFormed)
    }

    @Test func `a token is refreshed once, and the retry has the same key`() async throws {
        let server = TestServer(.status(401), .created(["id": "7"]))
        var api = PetAPI(server)
        api.client.interceptors = [BearerTokenInterceptor(token: "old") { _ in "new" }]
        try await api.add("초코", photos: [])
        let uploads = server.uploads
        #expect(uploads.map { $0.headerFields[.authorization] } == ["Bearer old", "Bearer new"])
        #expect(Set(uploads.map(\.idempotencyKey)).count == 1)
        #expect(uploads.map(\.attempt) == [1, 2])
    }

    @Test func `responses come in order, and hours of delays take no time`() async throws {
        let server = TestServer(
            .connectionFails, .breaks(after: 100), .responseLost, .neverResponds,
            .status(503, headerFields: [.retryAfter: "100"]), .created(["id": "7"]))
        var api = PetAPI(server)
        api.client.retryPolicy = RetryPolicy(maximumAttempts: 9)
        api.client.retryPolicy.firstDelay = .seconds(3600)
        api.client.retryPolicy.maximumDelay = .seconds(7200)
        let start = ContinuousClock.now
        try await api.add("초코", photos: [PetAPI.photo])
        #expect(ContinuousClock.now - start < .seconds(30))
        #expect(server.uploads.map(\.attempt) == [1, 2, 3, 4, 5, 6])
        #expect(server.uploads.map(\.isComplete) == [false, false, true, true, true, true])
        #expect(Set(server.uploads.map(\.body)).count == 1)
    }

    static let failing: [(TestResponse, UploadError.Code, UploadError.Delivery)] = [
        (.connectionFails, .connectionFailed, .neverArrived), (.untrusted, .tls, .neverArrived),
        (.breaks(after: 10), .connectionLost, .neverArrived), (.responseLost, .connectionLost, .responseLost),
        (.neverResponds, .timedOut, .responseLost), (.status(422), .refused, .refused),
        (.status(502), .refused, .responseLost),
    ]

    @Test(arguments: failing)
    func `a response fails the upload as a real server does`(
        response: TestResponse, code: UploadError.Code, delivery: UploadError.Delivery
    ) async throws {
        let server = TestServer(response)
        let error = try await #require(throws: UploadError.self) { try await PetAPI(server).add("초코", photos: []) }
        #expect(error.code == code && error.delivery == delivery)
        #expect(server.uploads.count == 1)
    }

    @Test func `a problem has the limit that photos are fitted to`() async throws {
        let server = TestServer(.problem(413, code: "file-too-large", limit: 20_000))
        let error = try await #require(throws: UploadError.self) { try await PetAPI(server).add("초코", photos: []) }
        #expect(error.problem?["code"]?.text == "file-too-large")
        #expect(error.problem?["limit"]?["name"]?.text == "maximumFileBytes")
        #expect(error.problem?["limit"]?["value"]?.number == 20_000)
        #expect(server.uploads.count == 1)
    }

    @Test func `a response may depend on what was sent`() async throws {
        let server = TestServer { upload in
            upload.parts(named: "petImage").isEmpty ? .problem(422, code: "missing-file") : .created(["id": "8"])
        }
        await #expect(throws: UploadError.self) { try await PetAPI(server).add("초코", photos: []) }
        #expect(try await PetAPI(server).add("초코", photos: [PetAPI.photo]).id == "8")
        #expect(server.uploads.count == 2)
    }

    @Test func `progress reaches the last byte`() async throws {
        let server = TestServer(.created(["id": "7"]))
        var steps: [Double] = []
        try await PetAPI(server).add("초코", photos: [Data(count: 100_000)]) { steps.append($0.fraction ?? -1) }
        #expect(steps.first == 0 && steps.last == 1 && zip(steps, steps.dropFirst()).allSatisfy(<))
        #expect(server.uploads.count == 1)
    }

    // MARK: - Tests that are wrong

    @Test func `a request too many fails the test, and is not retried`() async throws {
        let messages = await failures {
            let server = TestServer(.status(503))
            var api = PetAPI(server)
            api.client.retryPolicy = RetryPolicy(maximumAttempts: 5)
            try await api.add("초코", photos: [])
        }
        #expect(
            messages.first == """
                The app sent 2 requests, and the test has 1 response. Without a response is POST \
                https://api.example.com/pets, with "name" (text, "초코"). Add one, or find out why the app sends it.
                """)
        #expect(messages.count == 2)
    }

    @Test func `any request to no server fails the test`() async throws {
        let messages = await failures { try await PetAPI(.none).add("초코", photos: []) }
        #expect(
            messages.first == """
                The app sent a request, and the test expects none: POST https://api.example.com/pets, with "name" \
                (text, "초코"). Give its client a TestServer.
                """)
    }

    @Test func `responses that are left fail the test`() async throws {
        let messages = await failures {
            let server = TestServer(.created(["id": "7"]), .status(503), .responseLost)
            try await PetAPI(server).add("초코", photos: [])
        }
        #expect(
            messages == [
                "The test ended with 2 responses left: 503, responseLost. The app sent 1 request."
            ])
    }

    @Test func `uploads that the test has not looked at fail it`() async throws {
        let messages = await failures { try await PetAPI(TestServer(.created(["id": "7"]))).add("초코", photos: []) }
        #expect(
            messages == [
                "The app sent 1 request, and the test looked at none. Call server.upload() or server.uploads."
            ])
    }

    @Test func `two uploads are not one, and a value that cannot be encoded is no response`() async throws {
        let server = TestServer(.created(["id": "1"]), .created(["id": "2"]), .created(Double.nan))
        let api = PetAPI(server)
        let error = #expect(throws: (any Error).self) { try server.upload() }
        #expect(
            error.map { "\($0)" } == "The app sent 0 requests, and the test expects one. Await what sends it before.")
        try await api.add("초코", photos: [])
        try await api.add("보리", photos: [])
        let several = #expect(throws: (any Error).self) { try server.upload() }
        #expect(
            several.map { "\($0)" } == """
                The app sent 2 requests, and the test expects one. Use server.uploads for several.
                - POST https://api.example.com/pets, with "name" (text, "초코")
                - POST https://api.example.com/pets, with "name" (text, "보리")
                """)
        let messages = await failures { try await api.add("초코", photos: []) }
        #expect(messages.first?.hasPrefix("The value of TestResponse.created cannot be encoded: ") == true)
    }
}
