import Foundation
import Pets
import PostcardQueueTesting

/// Mistakes of the app, and the messages with which a test fails that finds one, in both test frameworks.
nonisolated enum PlantedMistakes {
    static let messages: [PetAPI.Mistake: [String]] = [
        .misspelledName: [
            """
            There is no field "name". The form has "nmae" (text, "초코") and "petImage" (portrait.jpg, image/jpeg, 469 \
            bytes). Write: form.append("초코", named: "name")
            """,
            """
            The form also has "nmae" (text, "초코"). Leave it out, or expect it before expectNothingElse().
            """,
        ],
        .wrongText: [#"The field "name" is " 초코", not "초코". Write: form.append("초코", named: "name")"#],
        .nameAsFile: [
            """
            "name" must be text, but was sent as a file: name.txt, text/plain, 6 bytes. Write: form.append("초코", named: \
            "name")
            """
        ],
        .photoAsText: [
            """
            "petImage" must be a file, but was sent as text, "portrait.jpg". Write: form.append(fileAt: url, named: \
            "petImage")
            """
        ],
        .noPhoto: [
            """
            There is no file "petImage". The form has "name" (text, "초코"). Write: form.append(fileAt: url, named: \
            "petImage")
            """
        ],
        .pngForJPEG: [
            """
            "petImage" is sent as image/png, not as image/jpeg, and its bytes are image/jpeg: portrait.jpg, image/png, \
            469 bytes. Write: contentType: MediaType("image/jpeg")
            """,
            """
            The Content-Type is image/png and the bytes are image/jpeg. Announce the type that the bytes have, or convert \
            them.
            """,
        ],
        .wrongBytes: [
            """
            "petImage" is sent as image/jpeg, and its bytes are of no type that is known: cat.jpg, image/jpeg, 628 bytes. \
            Send the file's own bytes, in an accepted format.
            """,
            "The metadata of \"petImage\" cannot be read: cat.jpg, image/jpeg, 628 bytes. Send a picture or a video.",
            """
            The content is base64 text, not bytes. Send the bytes themselves: body.append(photo) in Swift, await (await \
            fetch(dataURL)).blob() in JavaScript, base64.b64decode(text) in Python.
            """,
        ],
        .location: [
            """
            "petImage" has the place where it was taken: located.jpg, image/jpeg, 595 bytes. Leave out metadata: .asIs, \
            or write: part.metadata = .withoutLocation
            """,
            """
            The photo's EXIF contains the place where it was taken. Remove the position if the server does not need it: \
            postcard send --metadata without-location does so while sending.
            """,
        ],
        .originalSize: [
            """
            "petImage" has 30,469 bytes, and at most 20,000 are expected: cat.jpg, image/jpeg, 30,469 bytes. Fit it: \
            form.append(fileAt: url, named: "petImage", fitting: PictureLimit(maximumBytes: 20000))
            """
        ],
        .debugField: [
            """
            The form also has "debug" (text, "1"). Leave it out, or expect it before expectNothingElse().
            """
        ],
        .sendsTwice: [
            """
            The app sent 2 requests, and the test has 1 response. Without a response is POST https://api.example.com/pets, \
            with "name" (text, "초코") and "petImage" (portrait.jpg, image/jpeg, 469 bytes). Add one, or find out why the \
            app sends it.
            """
        ],
        .noSession: [
            """
            The system does not have upload 1. It has none. Enqueue it while the app runs, in a queue with a session.
            """
        ],
    ]

    /// Lets the app make a mistake, and expects what it should do.
    static func test(_ mistake: PetAPI.Mistake) async throws {
        let phone = try TestPhone()
        let picture = mistake == .location ? TestPicture.located : .portrait
        let photo = try picture.file(in: phone.directory)
        if mistake == .noSession {
            let store = await phone.launch {
                PetStore(folder: phone.directory.appending(path: "queue"), mistake: mistake)
            }
            return await phone.respond(with: .created, to: try await store.add("7", "초코", photos: [photo]))
        }
        let server = TestServer(.created(["id": "7"]))
        _ = try await PetAPI(UploadClient(transport: server), mistake: mistake).add("초코", photos: [photo])
        let sent = try server.upload()
        sent.expectText("name", "초코")
        sent.expectFile("petImage", type: .jpeg, bytes: 1...20_000, hasLocation: false)
        sent.expectNothingElse()
    }
}
