import Testing

@testable import PostcardReception
@testable import PostcardServer

struct FilePresentationTests {
    @Test(arguments: [
        ("image/jpeg", "image/jpeg", "inline"),
        ("IMAGE/PNG", "IMAGE/PNG", "inline"),
        ("text/plain; charset=utf-8", "text/plain; charset=utf-8", "inline"),
        ("text/html", "text/html", "attachment"),
        ("image/svg+xml", "image/svg+xml", "attachment"),
        ("application/pdf", "application/pdf", "attachment"),
        ("application/xhtml+xml", "application/xhtml+xml", "attachment"),
        ("그림", "application/octet-stream", "attachment"),
        ("image/jpeg\r\nX: y", "application/octet-stream", "attachment"),
        ("", "application/octet-stream", "attachment"),
    ])
    func `only types in which a browser runs no code are shown inline`(
        sent: String, served: String, disposition: String
    ) {
        let presentation = FilePresentation(file(contentType: sent, filename: ""))
        #expect(presentation.contentType == served)
        #expect(presentation.contentDisposition == disposition)
    }

    @Test(arguments: [
        ("cat.jpg", #"filename="cat.jpg"; filename*=UTF-8''cat.jpg"#),
        ("초코 1.jpg", #"filename="__ 1.jpg"; filename*=UTF-8''%EC%B4%88%EC%BD%94%201.jpg"#),
        (#"a"b\c"#, #"filename="a_b_c"; filename*=UTF-8''a%22b%5Cc"#),
        ("a\r\nSet-Cookie: b", #"filename="a__Set-Cookie: b"; filename*=UTF-8''a__Set-Cookie%3A%20b"#),
        // It would seem to be called aexe.jpg, and clear a terminal.
        ("a\u{202E}gpj.exe\u{1B}[2J", #"filename="a_gpj.exe_[2J"; filename*=UTF-8''a_gpj.exe_%5B2J"#),
        ("a\u{61C}\u{200E}\u{200F}\u{2066}\u{2069}", #"filename="a_____"; filename*=UTF-8''a_____"#),
        ("<img src=x>.html", #"filename="<img src=x>.html"; filename*=UTF-8''%3Cimg%20src%3Dx%3E.html"#),
    ])
    func `a filename is sent in full, and in ASCII for old clients`(name: String, parameters: String) {
        let presentation = FilePresentation(file(contentType: "image/jpeg", filename: name))
        #expect(presentation.contentDisposition == "inline; \(parameters)")
    }

    private func file(contentType: String, filename: String) -> UploadRecord.File {
        UploadRecord.File(
            name: "f", filename: filename, contentType: contentType, size: 0, sha256: "", url: "")
    }
}
