import Foundation
import PostcardTesting
import Testing

@Suite struct TestPictureTests {
    private static func sent(_ metadata: MetadataPolicy) async throws -> SentUpload {
        let server = TestServer(.created)
        var form = MultipartForm()
        for picture in TestPicture.all {
            form.append(
                picture.data, named: picture.filename, filename: picture.filename, metadata: metadata)
        }
        try await UploadClient(transport: server).upload(form, to: try #require(PetAPI.url))
        return try server.upload()
    }

    @Test func `each picture is what it says`() async throws {
        let sent = try await Self.sent(.asIs)
        for picture in TestPicture.all {
            let part = try #require(sent.part(named: picture.filename))
            #expect(part.bytes == picture.data)
            #expect(part.contentType == picture.contentType.value)
            #expect(MediaType.forFirstBytes(picture.data) == picture.contentType, "\(picture.filename)")
            #expect(part.hasLocation == picture.hasLocation, "\(picture.filename)")
        }
        #expect(TestPicture.all.map(\.data.count).reduce(0, +) < 10_000)
    }

    @Test func `a form sends none with its place by default`() async throws {
        let sent = try await Self.sent(.picturesWithoutLocation)
        for part in sent.parts { #expect(part.hasLocation == false, "\(part.name)") }
        sent.expectFile("located.heic", type: .heic, hasLocation: false)
    }

    @Test func `a picture is written with its name`() throws {
        let folder = FileManager.default.temporaryDirectory.appending(path: UUID().uuidString)
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
        defer { try? FileManager.default.removeItem(at: folder) }
        let file = try TestPicture.film.file(in: folder)
        #expect(try Data(contentsOf: file) == TestPicture.film.data)
        #expect(file.lastPathComponent == "film.mov")
    }
}
