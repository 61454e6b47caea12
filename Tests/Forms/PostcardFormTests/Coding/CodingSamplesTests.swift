import Foundation
import PostcardForm
import PostcardTestSupport
import Testing

/// The samples of the documentation, unchanged.
@Suite("The samples about coding")
struct CodingSamplesTests {
    struct Owner: Codable {
        var name: String
    }

    struct Pet: Codable {
        var name: String
        var born: Date?
        var isVaccinated: Bool
        var owner: Owner
        var pictures: [FormFile]
    }

    @Test
    func `a value is sent, received and decoded`() throws {
        let folder = try TemporaryFolder()
        let photo = try folder.file("초코.jpg", [1, 2, 3])
        let pet = Pet(
            name: "초코", isVaccinated: true, owner: Owner(name: "민지"), pictures: [FormFile(at: photo)])
        let sent = try MultipartForm(encoding: pet)

        let contentType = sent.contentType
        let body = Data(try sent.layout().reader().readAll())
        let form = try ReceivedForm(contentType: contentType, body: body)
        #expect(form.text(named: "name") == "초코")
        for picture in form.all(named: "pictures") { #expect(picture.header.filename == "초코.jpg") }

        let received = try FormDecoder().decode(Pet.self, from: form)
        #expect(received.owner.name == "민지")
        #expect(try received.pictures.first?.data() == Data([1, 2, 3]))
    }

    @Test
    func `errors are caught by their type`() throws {
        do {
            _ = try FormDecoder().decode(Pet.self, from: ReceivedForm(["name=초코"]))
            Issue.record("A form without an owner was decoded.")
        } catch let error as FormDecodingError {
            #expect(error.status == 422)
            #expect("\(error)" == #""owner[name]" is missing. Send it."#)
        }
        do {
            _ = try MultipartForm(encoding: ["photo": URL(filePath: "/a.jpg")])
            Issue.record("The URL of a file was encoded.")
        } catch let error as FormEncodingError {
            #expect(error.path == "photo")
        }
    }
}
