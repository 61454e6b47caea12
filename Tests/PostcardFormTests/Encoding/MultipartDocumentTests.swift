import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("A document of parts")
struct MultipartDocumentTests {
    @Test("Its parts are written with their own header fields, and its type names the root's")
    func related() throws {
        let folder = try TemporaryFolder()
        var document = MultipartDocument(.related, boundary: try Boundary("XX"))
        document.append(.text("{}"), headerFields: [.contentType: "application/json; charset=utf-8"])
        document.append(
            .file(try folder.file("a", [1, 2])), headerFields: [try #require(HTTPField.Name("Content-ID")): "<a>"])
        #expect(document.contentType == #"multipart/related; type="application/json"; boundary=XX"#)
        #expect(
            String(decoding: try document.layout().reader().readAll(), as: UTF8.self) == """
                --XX\r
                Content-Type: application/json; charset=utf-8\r
                \r
                {}\r
                --XX\r
                Content-ID: <a>\r
                \r
                \u{1}\u{2}\r
                --XX--\r

                """)
    }

    @Test("Of mixed parts none is the root")
    func mixed() throws {
        var document = MultipartDocument(.mixed, boundary: try Boundary("XX"))
        document.append(.text("a"))
        #expect(document.contentType == "multipart/mixed; boundary=XX")
        #expect(
            String(decoding: try document.layout().reader().readAll(), as: UTF8.self) == "--XX\r\n\r\na\r\n--XX--\r\n")
    }

    @Test("What keeps a form from being laid out keeps a document too")
    func errors() throws {
        var document = MultipartDocument(.mixed, boundary: try Boundary("XX"))
        document.append(.text("--XX"))
        #expect(throws: FormError.self) { try document.layout() }
    }
}
