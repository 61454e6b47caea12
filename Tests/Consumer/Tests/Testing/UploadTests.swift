import Foundation
import Pets
import PostcardTesting
import Testing

@Suite(.timeLimit(.minutes(1))) @MainActor struct UploadTests {
    private let cat: URL
    private let dog: URL

    init() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: "pets-\(UUID().uuidString)")
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        cat = try TestPicture.located.file(in: folder)
        dog = try TestPicture.portrait.file(in: folder)
    }

    @Test func `adding a pet sends its name and two JPEGs`() async throws {
        let server = TestServer(.created(["id": "7"]))
        let pet = try await PetAPI(UploadClient(transport: server)).add("초코", photos: [cat, dog])
        #expect(pet.id == "7")
        let sent = try server.upload()
        sent.expectText("name", "초코")
        sent.expectFile("petImage", type: .jpeg, bytes: 1...20_000, hasLocation: false)
        sent.expectFile("petImage", at: 1, type: .jpeg, bytes: 1...20_000, hasLocation: false)
        sent.expectNothingElse()
    }

    @Test func `a token that has expired is refreshed once`() async throws {
        let server = TestServer(.status(401), .created(["id": "7"]))
        var client = UploadClient(transport: server)
        client.interceptors = [BearerTokenInterceptor(token: "old") { _ in "new" }]
        _ = try await PetAPI(client).add("초코", photos: [cat])
        #expect(server.uploads.map { $0.headerFields[.authorization] } == ["Bearer old", "Bearer new"])
        #expect(Set(server.uploads.map(\.idempotencyKey)).count == 1)
    }

    @Test func `the bar follows the upload, which can be cancelled`() async throws {
        let clock = TestClock()
        let server = TestServer(.created(["id": "7"]).slowly(bytesPerSecond: 500), clock: clock)
        let model = PetModel(PetAPI(UploadClient(transport: server)))
        let sending = Task { await model.send("초코", photos: [cat]) }
        await clock.advance(by: .seconds(1))
        #expect(model.fraction > 0.4)
        sending.cancel()
        await sending.value
        #expect(model.state == .cancelled)
        #expect(server.uploads.map(\.isComplete) == [false])
    }

    @Test func `the request stays as it was reviewed`() async throws {
        let server = TestServer(.created(["id": "7"]))
        _ = try await PetAPI(UploadClient(transport: server)).add("초코", photos: [dog])
        #expect(
            try server.upload().snapshot == """
                url = "https://api.example.com/pets"
                form-string = "name=초코"
                # 469 bytes, sha256 de2f0da3e2d31614e6bf2f518c09302fb43e128c8b18861eb3bc7eea32034156, without a position
                form = "petImage=@portrait.jpg;type=image/jpeg"

                """)
    }

    @Test func `a busy server is asked again, an hour later`() async throws {
        let server = TestServer(.status(503), .responseLost, .created(["id": "7"]))
        var client = UploadClient(transport: server, retryPolicy: RetryPolicy(maximumAttempts: 3))
        client.retryPolicy.firstDelay = .seconds(3600)
        client.retryPolicy.maximumDelay = .seconds(3600)
        let model = PetModel(PetAPI(client))
        await model.send("초코", photos: [cat])
        #expect(model.state == .done(PetAPI.Pet(id: "7")))
        #expect(server.uploads.map(\.attempt) == [1, 2, 3])
    }

    nonisolated static let refusals: [(TestResponse, String)] = [
        (.problem(413, code: "body-too-large", limit: 10), "413"), (.status(422), "422"),
        (.connectionFails, "accepts no connections"), (.untrusted, "not trusted"),
        (.breaks(after: 100), "after 100 bytes"), (.neverResponds, "did not respond"),
    ]

    @Test(arguments: refusals) func `a failure is shown`(response: TestResponse, text: String) async throws {
        let server = TestServer(response)
        let model = PetModel(PetAPI(UploadClient(transport: server)))
        await model.send("초코", photos: [cat])
        guard case .failed(let message) = model.state else { throw CancellationError() }
        #expect(message.contains(text))
        #expect(server.uploads.count == 1)
    }

    @Test func `the form keeps the rules of the server`() async throws {
        let server = TestServer(.created(["id": "7"]))
        _ = try await PetAPI(UploadClient(transport: server)).add("초코", photos: [cat, dog])
        let rules = try FormRules(
            fields: ["name": FormRules.Field(atLeast: 1, maximumCharacters: 40)],
            files: ["petImage": FormRules.File(atLeast: 1, atMost: 2, maximumBytes: 20_000, types: [.anyImage])])
        try server.upload().expect(rules)
    }
}
