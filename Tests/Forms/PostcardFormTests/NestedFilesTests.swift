import Foundation
import PostcardForm
import Testing

@Suite("Files nested in a part, and charsets")
struct NestedFilesTests {
    private static let contentType = "multipart/form-data; boundary=XX"

    private static let nested = body(
        "--XX", #"Content-Disposition: form-data; name="user""#, "", "초코", "--XX",
        #"Content-Disposition: form-data; name="files""#, "Content-Type: multipart/mixed; boundary=YY", "", "--YY",
        #"Content-Disposition: file; filename="a.txt""#, "Content-Type: text/plain", "", "one", "--YY",
        #"Content-Disposition: attachment; filename="b.jpg""#, "", "two", "--YY--", "--XX--", "")

    @Test
    func `they become parts of the outer name, with offsets in the body`() throws {
        let form = try ReceivedForm(contentType: Self.contentType, body: Data(Self.nested.utf8))
        #expect(form.parts.map(\.header.name) == ["user", "files", "files"])
        #expect(form.parts.map(\.header.filename) == [nil, "a.txt", "b.jpg"])
        #expect(form.parts.map(\.text) == ["초코", "one", "two"])
        let bytes = Array(Self.nested.utf8)
        for part in form.parts {
            #expect(bytes[Int(part.header.offset)...].starts(with: "Content-Disposition".utf8))
        }
    }

    @Test(arguments: [1, 10, 1000])
    func `they are the same where the body comes in chunks`(size: Int) async throws {
        let bytes = Array(Self.nested.utf8)
        let chunks = AsyncStream { continuation in
            for start in stride(from: 0, to: bytes.count, by: size) {
                continuation.yield(bytes[start..<min(start + size, bytes.count)])
            }
            continuation.finish()
        }
        let form = try await ReceivedForm(of: chunks, contentType: Self.contentType)
        #expect(form.parts.map(\.text) == ["초코", "one", "two"])
    }

    @Test
    func `a problem in them says where it is in the body`() throws {
        let broken = Self.nested.replacing("--YY--\r\n", with: "--YY-x\r\n")
        let problem = #expect(throws: FormProblem.self) {
            try ReceivedForm(contentType: Self.contentType, body: Data(broken.utf8))
        }
        #expect(problem?.code == .truncated)
        #expect(problem?.offset == Int64(broken.utf8.count - "\r\n--XX--\r\n".utf8.count))
    }

    @Test
    func `they may be as large as files, and the type of a part is compared whole`() throws {
        let picture = String(repeating: "x", count: 2 << 20)
        let large = Self.nested.replacing("one\r\n", with: "\(picture)\r\n")
        let form = try ReceivedForm(contentType: Self.contentType, body: Data(large.utf8))
        #expect(form.parts.map { $0.text?.utf8.count } == [6, 2 << 20, 3])
        for (type, count) in [
            ("multipart/mixedfoo;", 2), ("multipart/mixed foo;", 2), ("Multipart/MIXED \t;", 3), ("multipart;", 2),
        ] {
            let other = Self.nested.replacing("multipart/mixed;", with: type)
            #expect(try ReceivedForm(contentType: Self.contentType, body: Data(other.utf8)).parts.count == count)
        }
    }

    @Test
    func `rules refuse them, because they would go unchecked`() throws {
        var checker = FormRuleChecker(try FormRules(fields: ["files": .init(), "user": .init()]))
        var parser = try FormParser(boundary: "XX")
        let bytes = Array(Self.nested.utf8)
        var position = 0
        let problem = #expect(throws: FormProblem.self) {
            while let event = try parser.nextEvent(in: bytes.span.bytes, at: &position) {
                try checker.check(event, in: bytes.span.bytes, readBy: parser)
            }
        }
        #expect(problem?.code == .nestedFiles)
    }

    @Test
    func `they count for the form's limit of parts`() {
        var limits = FormLimits()
        limits.maximumParts = 2
        let problem = #expect(throws: FormProblem.self) {
            try ReceivedForm(contentType: Self.contentType, body: Data(Self.nested.utf8), limits: limits)
        }
        #expect(problem?.code == .tooManyParts)
    }

    @Test
    func `a form of the largest size that is allowed may hold them`() throws {
        var limits = FormLimits()
        limits.maximumBodyBytes = Int64(Self.nested.utf8.count)
        let form = try ReceivedForm(contentType: Self.contentType, body: Data(Self.nested.utf8), limits: limits)
        #expect(form.parts.map(\.text) == ["초코", "one", "two"])
    }

    @Test
    func `what comes before the first of them is limited, counted from the beginning of the part's content`() throws {
        let first = "--YY\r\nContent-Disposition: file"
        let body = Data(Self.nested.replacing(first, with: "preamble\r\n\(first)").utf8)
        var limits = FormLimits()
        limits.maximumPreambleBytes = 8
        #expect(try ReceivedForm(contentType: Self.contentType, body: body, limits: limits).parts.count == 3)
        limits.maximumPreambleBytes = 7
        let problem = #expect(throws: FormProblem.self) {
            try ReceivedForm(contentType: Self.contentType, body: body, limits: limits)
        }
        let start = try #require(body.range(of: Data("preamble".utf8))).lowerBound
        #expect(problem?.code == .preambleTooLarge)
        #expect(problem?.offset == Int64(start + 7))
    }

    /// Fields before a text whose one byte is E9, and what the text is then.
    static let charsets: [(header: String, charsetField: String?, text: String?)] = [
        ("", nil, nil), ("Content-Type: text/plain; charset=ISO-8859-1\r\n", nil, "é"),
        ("Content-Type: text/plain; charset=\"utf-8\"\r\n", nil, nil), ("", "iso-8859-1", "é"),
        ("Content-Type: text/plain; charset=utf-8\r\n", "iso-8859-1", nil), ("", "x-unknown", nil),
        ("Content-Type:\r\n", "iso-8859-1", "é"), ("", "EUC-KR", nil), ("", "windows-1251", "й"), ("", "KOI8-R", "И"),
        ("Content-Type: text/plain; Charset=Shift_JIS\r\n", "koi8-r", nil), ("", " latin2\t", "é"),
        ("", "iso-8859-1//TRANSLIT", nil), ("", "UTF-8", nil), ("", "iso-2022-kr", nil), ("", "iso-8859-7", "ι"),
    ]

    @Test(arguments: charsets)
    func `a text is read in its part's charset, else in the form's, else in UTF-8`(
        header: String, charsetField: String?, text: String?
    ) throws {
        var bytes: [UInt8] = []
        if let charsetField {
            bytes += Array("--XX\r\nContent-Disposition: form-data; name=_charset_\r\n\r\n\(charsetField)\r\n".utf8)
        }
        bytes += Array("--XX\r\nContent-Disposition: form-data; name=a\r\n\(header)\r\n".utf8) + [0xE9]
        bytes += Array("\r\n--XX--".utf8)
        let form = try ReceivedForm(contentType: Self.contentType, body: Data(bytes))
        #expect(form.text(named: "a") == text)
    }

    /// What the bytes of a text are in a charset.
    static let texts: [(charset: String, bytes: [UInt8], text: String?)] = [
        ("euc-kr", [0xC3, 0xCA, 0xC4, 0xDA, 0x8C, 0x63], "초코똠"), ("ks_c_5601-1987", [0xC3, 0xCA], "초"),
        ("sjis", [0x83, 0x65, 0xB1], "テｱ"), ("gb2312", [0x81, 0x30, 0x81, 0x30], "\u{80}"),
        ("big5", [0xA4, 0xA4], "中"),
        ("iso-2022-jp", [0x1B, 0x24, 0x42, 0x24, 0x22, 0x1B, 0x28, 0x42], "あ"),
        ("utf-16le", [0x41, 0, 0xAC, 0x20], "A€"),
        ("iso-8859-1", [0x80, 0x81, 0x9F], "€\u{81}Ÿ"), ("us-ascii", [0xE9], "é"), ("macintosh", [0x80], "Ä"),
        // What is UTF-8 is read as that, because senders name other charsets for it too.
        ("iso-8859-1", [0xC3, 0xA9], "é"), ("x-unknown", [0xC3, 0xA9], "é"), ("euc-kr", [0xFF], nil),
    ]

    @Test(arguments: texts)
    func `a text is decoded from the charset that a browser would take for its label`(
        charset: String, bytes: [UInt8], text: String?
    ) throws {
        let body =
            Array(
                "--XX\r\nContent-Disposition: form-data; name=a\r\nContent-Type: text/plain; charset=\(charset)\r\n\r\n"
                    .utf8)
            + bytes + Array("\r\n--XX--".utf8)
        let form = try ReceivedForm(contentType: Self.contentType, body: Data(body))
        #expect(form.text(named: "a") == text)
        // A text on disk is the same.
        let file = FileManager.default.temporaryDirectory.appending(component: UUID().uuidString)
        defer { try? FileManager.default.removeItem(at: file) }
        try Data(bytes).write(to: file)
        let onDisk = ReceivedForm(parts: form.parts.map { .init(header: $0.header, content: .file(file)) })
        #expect((try? FormDecoder().decode([String: String].self, from: onDisk)) == text.map { ["a": $0] })
        if String(validating: bytes, as: UTF8.self) == nil {
            #expect(try FormDecoder().decode([String: Data].self, from: form) == ["a": Data(bytes)])
        }
    }
}
