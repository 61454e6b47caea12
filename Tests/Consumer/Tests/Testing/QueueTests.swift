import Foundation
import Pets
import PostcardQueueTesting
import Testing

@Suite(.timeLimit(.minutes(1))) struct QueueTests {
    private static func photo(_ phone: TestPhone) throws -> URL { try TestPicture.located.file(in: phone.directory) }

    private static func store(_ phone: TestPhone) -> PetStore {
        PetStore(folder: phone.directory.appending(path: "queue"))
    }

    @Test func `a pet that was sent while the app was closed is uploaded`() async throws {
        let phone = try TestPhone()
        let store = await phone.launch { Self.store(phone) }
        let id = try await store.add("7", "초코", photos: [Self.photo(phone)])
        await phone.upload(id)?.expectText("name", "초코")
        await phone.kill()
        await phone.respond(with: .created(["id": "7"]), to: id)
        await phone.wakeUp { identifier in
            let store = Self.store(phone)
            await store.queue.handleEvents(forSession: identifier)
            #expect(await store.isUploaded("7"))
        }
    }

    @Test func `an app that is suspended is told when it is woken`() async throws {
        let phone = try TestPhone()
        let store = await phone.launch { Self.store(phone) }
        let id = try await store.add("7", "초코", photos: [Self.photo(phone)])
        #expect(await phone.handedOver.count == 1)
        await phone.suspend()
        await phone.respond(with: .created(["id": "7"]), to: id)
        #expect(await !store.isUploaded("7"))
        await phone.wakeUp { await store.queue.handleEvents(forSession: $0) }
        #expect(await store.isUploaded("7"))
    }

    @Test func `an upload that the server refuses for now is sent an hour later`() async throws {
        let phone = try TestPhone()
        let store = await phone.launch { Self.store(phone) }
        let id = try await store.add("7", "초코", photos: [Self.photo(phone)])
        await phone.respond(with: .status(503), to: id)
        #expect(await !store.isUploaded("7"))
        await phone.advance(by: .seconds(3600))
        await phone.respond(with: .created, to: id)
        #expect(await store.isUploaded("7"))
    }

    @Test func `an app that was quit sends again when it is opened`() async throws {
        let phone = try TestPhone()
        let first = await phone.launch { Self.store(phone) }
        let id = try await first.add("7", "초코", photos: [Self.photo(phone)])
        let key = await phone.upload(id)?.idempotencyKey
        await phone.forceQuit()
        let store = await phone.launch { Self.store(phone) }
        try await store.queue.handOver()
        await phone.advance(by: .seconds(1))
        #expect(await phone.upload(id)?.idempotencyKey == key)
        await phone.respond(with: .created, to: id)
        #expect(await store.isUploaded("7"))
    }

    @Test func `nothing is sent without a network`() async throws {
        let phone = try TestPhone(network: NetworkPath(isAvailable: false))
        let store = await phone.launch { Self.store(phone) }
        _ = try await store.add("7", "초코", photos: [Self.photo(phone)])
        await phone.respondToAll(with: .created)
        #expect(await !store.isUploaded("7"))
        phone.network = NetworkPath()
        await phone.respondToAll(with: .created)
        #expect(await store.isUploaded("7"))
    }

    @Test func `a full phone refuses a pet`() async throws {
        let phone = try TestPhone()
        let photo = try Self.photo(phone)
        phone.freeBytes = 100
        let store = await phone.launch { Self.store(phone) }
        await #expect(throws: UploadQueueError.self) { _ = try await store.add("7", "초코", photos: [photo]) }
    }

    @Test func `a refusal is kept with its reason`() async throws {
        let phone = try TestPhone()
        let store = await phone.launch { Self.store(phone) }
        let id = try await store.add("7", "초코", photos: [Self.photo(phone)])
        await phone.respond(with: .problem(413, code: "body-too-large", limit: 10), to: id)
        guard case .failed(let failure) = try await store.queue.upload(id)?.state else { throw CancellationError() }
        #expect(failure.response?.status == 413)
    }
}
