import Foundation
import HTTPTypes
import PostcardQueueTesting
import Testing

/// What the system does to an app, and what its queue makes of it.
@Suite(.timeLimit(.minutes(10))) struct TestPhoneTests {
    /// The queue of an app, as the app makes it at each start.
    final class App: Sendable {
        static let identifier = "com.example.pets"
        static let url = URL(string: "https://api.example.com/pets")

        let queue: UploadQueue
        let store: Store

        init(_ folder: URL, store: Store = Store(), change: (inout BackgroundSession) -> Void = { _ in }) {
            self.store = store
            var session = BackgroundSession(identifier: Self.identifier)
            session.retryPolicy.jitter = 0
            change(&session)
            queue = UploadQueue(directory: folder, session: session) { await store.note($0) }
        }

        func add(_ name: String, conditions: UploadConditions = UploadConditions()) async throws -> QueuedUpload.ID {
            var form = MultipartForm()
            form.append(name, named: "name")
            form.append(TestPicture.located.data, named: "petImage", filename: "cat.jpg", contentType: .jpeg)
            return try await queue.enqueue(form, to: #require(Self.url), conditions: conditions, tag: name)
        }

        func state(_ id: QueuedUpload.ID) async throws -> String? { try await queue.upload(id)?.state.name }
    }

    /// What the app keeps of its pets.
    actor Store {
        private(set) var uploaded: [String] = []

        func note(_ upload: QueuedUpload) {
            if upload.state.name == "done", let name = try? upload.tag(as: String.self) { uploaded.append(name) }
        }
    }

    @Test func `the system has what the app enqueues, and the app has its response`() async throws {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        let id = try await app.add("초코")
        let sent = try #require(await phone.upload(id))
        sent.expectText("name", "초코")
        sent.expectFile("petImage", type: .jpeg, hasLocation: false)
        sent.expectNothingElse()
        #expect(sent.idempotencyKey != nil)
        await phone.respond(with: .created(["id": "7"]), to: id)
        #expect(try await app.state(id) == "done")
        #expect(await app.store.uploaded == ["초코"])
        #expect(await phone.handedOver.isEmpty)
    }

    @Test func `an upload ends while the app is closed`() async throws {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        let id = try await app.add("초코")
        #expect(await phone.handedOver.count == 1)
        await phone.kill()
        await phone.respond(with: .created(["id": "7"]), to: id)
        let store = Store()
        try await phone.wakeUp { identifier in
            let app = App(phone.directory, store: store)
            await app.queue.handleEvents(forSession: identifier)
            let state = try await app.state(id)
            #expect(await store.uploaded == ["초코"] && state == "done")
        }
    }

    @Test func `an app that is suspended learns of its uploads when it is woken`() async throws {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        let id = try await app.add("초코")
        #expect(await phone.handedOver.count == 1)
        await phone.suspend()
        await phone.respond(with: .created(["id": "7"]), to: id)
        #expect(await app.store.uploaded.isEmpty)
        await phone.wakeUp { await app.queue.handleEvents(forSession: $0) }
        #expect(await app.store.uploaded == ["초코"])
    }

    @Test func `a refusal that may pass is sent again when its time has come`() async throws {
        let phone = try TestPhone()
        let app = await phone.launch {
            App(phone.directory) { $0.headerFields = { _ in [.authorization: "Bearer \(UUID())"] } }
        }
        let id = try await app.add("초코")
        let first = try #require(await phone.upload(id))
        await phone.respond(with: .status(503, headerFields: [.retryAfter: "100"]), to: id)
        #expect(try await app.state(id) == "retrying")
        let second = try #require(await phone.upload(id))
        await phone.advance(by: .seconds(101))
        let third = try #require(await phone.upload(id))
        #expect(first.idempotencyKey == second.idempotencyKey)
        #expect(second.headerFields[.authorization] != third.headerFields[.authorization])
        await phone.respond(with: .created, to: id)
        #expect(try await app.state(id) == "done")
    }

    @Test func `an app that its user quits sends again when it is launched`() async throws {
        let phone = try TestPhone()
        let first = await phone.launch { App(phone.directory) }
        let id = try await first.add("초코")
        #expect(await phone.handedOver.count == 1)
        await phone.forceQuit()
        #expect(await phone.handedOver.isEmpty)
        let app = await phone.launch { App(phone.directory) }
        try await app.queue.handOver()
        await phone.advance(by: .seconds(1))
        #expect(await phone.handedOver.count == 1)
        await phone.respond(with: .created, to: id)
        #expect(try await app.state(id) == "done")
    }

    @Test func `a locked phone loses the response, and the upload is done`() async throws {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        let id = try await app.add("초코")
        phone.isLocked = true
        await phone.respond(with: .created(["id": "7"]), to: id)
        guard case .done(let response) = try await app.queue.upload(id)?.state else { throw CancellationError() }
        #expect(response.status == 201 && response.body.isEmpty)
    }

    @Test func `a full disk refuses the form, and the queue has nothing of it`() async throws {
        let phone = try TestPhone()
        phone.freeBytes = 100
        let app = await phone.launch { App(phone.directory) }
        let error = await #expect(throws: UploadQueueError.self) { _ = try await app.add("초코") }
        #expect(error?.freeBytes == 100)
        #expect(try await app.queue.uploads().isEmpty)
    }

    @Test func `what is enqueued while the system suspends the app is refused`() async throws {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        await phone.suspend()
        let error = await #expect(throws: UploadQueueError.self) { _ = try await app.add("초코") }
        #expect(error?.code == .suspended)
        await phone.resume()
        let id = try await app.add("초코")
        await phone.respond(with: .created, to: id)
        #expect(try await app.state(id) == "done")
    }

    @Test func `an upload waits for Wi-Fi`() async throws {
        let phone = try TestPhone(network: NetworkPath(isCellular: true))
        let app = await phone.launch { App(phone.directory) }
        var conditions = UploadConditions()
        conditions.networks.cellular = false
        let id = try await app.add("초코", conditions: conditions)
        await phone.respondToAll(with: .created)
        #expect(try await app.state(id) != "done")
        phone.network = NetworkPath()
        await phone.respondToAll(with: .created)
        #expect(try await app.state(id) == "done")
    }

    static let failing: [(TestResponse, Bool)] = [
        (.connectionFails, true), (.responseLost, true), (.breaks(after: 10), true), (.untrusted, true),
        (.status(422), false), (.problem(413, code: "body-too-large", limit: 10), false),
    ]

    @Test(arguments: failing) func `a failure is tried again if it may pass`(response: TestResponse, mayPass: Bool)
        async throws
    {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        let id = try await app.add("초코")
        await phone.respond(with: response, to: id)
        #expect(try await app.state(id) == (mayPass ? "retrying" : "failed"))
        #expect(await phone.handedOver.count == (mayPass ? 1 : 0))
    }

    @Test(arguments: 0..<8) func `tests with the same session do not disturb each other`(number: Int) async throws {
        let phone = try TestPhone()
        let app = await phone.launch { App(phone.directory) }
        var ids: [QueuedUpload.ID] = []
        for index in 0..<10 { ids.append(try await app.add("\(number) \(index)")) }
        for id in ids { await phone.respond(with: .created, to: id) }
        #expect(await app.store.uploaded.sorted() == (0..<10).map { "\(number) \($0)" })
    }

    // MARK: - Tests that are wrong

    @Test func `what the system cannot do fails the test`() async throws {
        let messages = await failures {
            let phone = try TestPhone()
            let app = await phone.launch { App(phone.directory) }
            await phone.respond(with: .created, to: 7)
            await phone.wakeUp { _ in }
            let id = try await app.add("초코")
            phone.network.isAvailable = false
            await phone.respond(with: .created, to: id)
            phone.network.isAvailable = true
            await phone.respond(with: .status(503, headerFields: [.retryAfter: "100"]), to: id)
            await phone.respond(with: .created, to: id)
            await phone.forceQuit()
            await phone.wakeUp { _ in }
        }
        #expect(
            messages == [
                """
                The system does not have upload 7. It has none. Enqueue it while the app runs, in a queue with a session.
                """,
                """
                The system does not wake the app before all uploads have ended that it has, while the app does not run. \
                Suspend or kill the app, and respond to them: await phone.respondToAll(with: .created)
                """,
                "The phone has no network that upload 1 may use. Set phone.network before.",
                "Upload 1 begins in 100 seconds: await phone.advance(by: .seconds(100))",
                "The user has quit the app, so the system does not wake it. Call launch.",
            ])
    }

    @Test func `what waits for the app or for Wi-Fi fails the test`() async throws {
        let messages = await failures {
            let phone = try TestPhone()
            let app = await phone.launch { App(phone.directory) }
            let first = try await app.add("초코")
            #expect(await phone.handedOver.count == 1)
            await phone.suspend()
            await phone.respond(with: .status(401, headerFields: [.wwwAuthenticate: "Basic"]), to: first)
            await phone.respond(with: .created, to: first)
            await phone.resume()
            #expect(try await app.state(first) == "failed")
            let second = try await app.add("보리")
            #expect(await phone.handedOver.count == 1)
            await phone.suspend()
            await phone.respond(with: .status(503), to: second)
            phone.network = NetworkPath(isCellular: true)
            await phone.wakeUp { await app.queue.handleEvents(forSession: $0) }
            await phone.advance(by: .seconds(60))
            await phone.respond(with: .created, to: second)
        }
        #expect(
            messages == [
                """
                The server has asked for credentials of upload 1, for which the system wakes the app: await phone.wakeUp { \
                … }
                """,
                """
                Upload 2 was handed over while the app was in the background, so the system waits for Wi-Fi. Set \
                phone.network before.
                """,
            ])
    }

    @Test func `uploads that the test has not looked at fail it`() async throws {
        let messages = await failures {
            let phone = try TestPhone()
            let app = await phone.launch { App(phone.directory) }
            _ = try await app.add("초코")
            await phone.advance(by: .zero)
        }
        #expect(
            messages == [
                """
                The test ended and looked at none of the 1 uploads that the system has, such as POST \
                https://api.example.com/pets, with "name" (text, "초코") and "petImage" (cat.jpg, image/jpeg, 595 bytes). \
                Respond to them: await phone.respond(with: .created, to: id)
                """
            ])
    }
}
