import Foundation
import PostcardQueueTesting
import Synchronization
import Testing

@testable import PetDiary

@MainActor struct DiaryTests {
    @Test func `a photo arrives while the app is closed`() async throws {
        let phone = try TestPhone()
        let latest = Mutex("nothing yet")
        func app() -> Uploads { Uploads(folder: phone.directory) { record in latest.withLock { $0 = record.id } } }

        let uploads = await phone.launch(app)
        let file = try TestPicture.located.file(in: phone.directory)
        let photo = FormPart(name: "petImage", filename: "cat.jpg", contentType: .jpeg, content: .file(file))
        let url = try #require(URL(string: "http://localhost:8080/uploads"))
        let id = try await uploads.send("초코", photos: [photo], to: url)

        let sent = try #require(await phone.upload(id))
        sent.expectText("name", "초코")
        sent.expectFile("petImage", type: .jpeg, hasLocation: false)
        sent.expectNothingElse()

        await phone.kill()
        await phone.respond(with: .created(["id": "7"]), to: id)
        await phone.wakeUp { session in await app().queue.handleEvents(forSession: session) }
        #expect(latest.withLock { $0 } == "7")
    }
}
