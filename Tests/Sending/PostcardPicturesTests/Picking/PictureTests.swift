import Foundation
import PostcardForm
import Testing

@testable import PostcardPictures

@Suite struct PictureTests {
    @Test(
        arguments: [
            (nil, "picture.jpg"), ("", "picture.jpg"), ("choco", "choco.jpg"), ("choco.jpg", "choco.jpg"),
            ("choco.JPEG", "choco.JPEG"), ("IMG_0001.HEIC", "IMG_0001.jpg"), ("초코.png", "초코.jpg"),
            ("v1.2", "v1.2.jpg"), (".png", "picture.jpg"), ("a.tar.gz", "a.tar.jpg"),
        ] as [(String?, String)])
    func `the extension of an encoded picture is that of its encoding`(given: String?, expected: String) {
        let name = PictureName(given, encodedAs: .jpeg())
        #expect(name.filename == expected)
        #expect(name.contentType == .jpeg)
    }

    @Test func `a PNG is named one`() {
        #expect(PictureName("choco.jpg", encodedAs: .png).filename == "choco.png")
        #expect(PictureName("choco.jpg", encodedAs: .png).contentType == .png)
    }

    @Test(
        arguments: [
            ("IMG_0001.HEIC", ["image/heic", "image/jpeg"], "heic", "IMG_0001.HEIC", "image/heic"),
            // The library converted it on the way: the file says what it is.
            ("IMG_0001.jpeg", ["image/heic"], "heic", "IMG_0001.jpeg", "image/jpeg"),
            ("IMG_0001.DNG", ["image/x-adobe-dng"], "dng", "IMG_0001.DNG", "image/x-adobe-dng"),
            ("4F0C", ["video/quicktime"], "mov", "4F0C.mov", "video/quicktime"),
            ("4F0C", ["not a type", "image/png"], nil, "4F0C", "image/png"),
            ("", [], nil, "picture", nil), (".hidden", [], "jpg", ".hidden.jpg", nil),
        ] as [(String, [String], String?, String, String?)])
    func `a picked file keeps its name and gets a true type`(
        file: String, mimeTypes: [String], fileExtension: String?, filename: String, contentType: String?
    ) {
        let name = PictureName(file, mimeTypes: mimeTypes, fileExtension: fileExtension)
        #expect(name.filename == filename)
        #expect(name.contentType?.value == contentType)
    }

    @Test func `what was picked is streamed from its file`() {
        let file = URL(filePath: "/tmp/F0A1.HEIC")
        let part = FormPart.picked(
            file, in: file.deletingLastPathComponent(), called: "IMG_0001.HEIC", named: "petImage",
            mimeTypes: ["image/heic"], fileExtension: "heic",
            metadata: .withoutLocation)
        #expect(part.metadata == .withoutLocation)
        #expect(part.name == "petImage")
        #expect(part.filename == "IMG_0001.HEIC")
        #expect(part.contentType == .heic)
        guard case .file(file) = part.content else {
            Issue.record("it is \(part.content)")
            return
        }
    }

    @Test func `a picture without pixels is an error and no empty part`() throws {
        for encoded in [nil, Data()] {
            let error = #expect(throws: PictureError.self) {
                try FormPart.picture(named: "petImage", filename: nil, as: .jpeg(), encoded: encoded)
            }
            #expect(error?.message.contains("image/jpeg") == true)
        }
        let part = try FormPart.picture(
            named: "petImage", filename: "choco.heic", as: .jpeg(), encoded: Data([0xFF, 0xD8]))
        #expect(part.filename == "choco.jpg")
        #expect(part.contentType == .jpeg)
    }

    @Test(arguments: [(0.5, 0.5), (-1, 0), (7, 1), (.nan, 0.85), (.infinity, 1)] as [(Double, Double)])
    func `a quality lies between 0 and 1`(given: Double, expected: Double) {
        #expect(PictureEncoding.jpeg(quality: given).quality == expected)
    }
}
