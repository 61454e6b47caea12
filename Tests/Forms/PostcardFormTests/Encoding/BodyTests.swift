import Foundation
import HTTPTypes
import PostcardForm
import PostcardTestSupport
import Testing

@Suite("The body of a form")
struct BodyTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func body(of form: MultipartForm) throws -> String {
        String(decoding: try form.layout().reader().readAll(), as: UTF8.self)
    }

    @Test
    func `fields go before files on request, each in their order`() throws {
        var form = MultipartForm()
        form.append(Data([1]), named: "a", filename: "1.bin")
        form.append("b", named: "b")
        form.append(Data([2]), named: "c", filename: "2.bin")
        form.append(Data([3]), named: "d", filename: nil)
        let sorted = form.fieldsFirst()
        #expect(try sorted.layout().parts.map(\.name) == ["b", "d", "a", "c"])
        #expect(sorted.contentType == form.contentType)
    }

    @Test
    func `a header of its own replaces all lines`() throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        var part = FormPart(name: "a", content: .text("b"))
        part.headerLines = Data("Content-Type: text/plain\r\n".utf8)
        form.append(part)
        #expect(try body(of: form) == "--XX\r\nContent-Type: text/plain\r\n\r\nb\r\n--XX--\r\n")
    }

    @Test
    func `it is what WHATWG's algorithm writes, byte for byte`() throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append("초코\r\n둘", named: "name")
        form.append(fileAt: try folder.file("제주 바다.jpg", [1, 2, 3]), named: "petImage")
        form.append(Data([4]), named: "thumbnail", filename: nil)
        form.append(#"{"a":1}"#, named: "details", contentType: .json)
        form.append(FormPart(name: "last", headerFields: [.init("X-Order")!: "5"], content: .text("")))
        #expect(form.contentType == "multipart/form-data; boundary=XX")
        #expect(
            try body(of: form) == """
                --XX\r
                Content-Disposition: form-data; name="name"\r
                \r
                초코\r
                둘\r
                --XX\r
                Content-Disposition: form-data; name="petImage"; filename="제주 바다.jpg"\r
                Content-Type: image/jpeg\r
                \r
                \u{1}\u{2}\u{3}\r
                --XX\r
                Content-Disposition: form-data; name="thumbnail"\r
                Content-Type: application/octet-stream\r
                \r
                \u{4}\r
                --XX\r
                Content-Disposition: form-data; name="details"\r
                Content-Type: application/json\r
                \r
                {"a":1}\r
                --XX\r
                Content-Disposition: form-data; name="last"\r
                X-Order: 5\r
                \r
                \r
                --XX--\r

                """)
    }

    @Test
    func `a form without parts is the close delimiter alone`() throws {
        #expect(try body(of: MultipartForm(boundary: try Boundary("XX"))) == "--XX--\r\n")
    }

    /// Names, and how they are written between the quotes.
    static let names: [(name: String, written: String)] = [
        ("plain", "plain"), ("a\"b", "a%22b"), ("a\rb\nc\r\n", "a%0Db%0Ac%0D%0A"), (#"a\b'c;d\"#, #"a\\b'c;d\\"#),
        ("100%22", "100%22"), ("pet[0][name]", "pet[0][name]"), ("이름 🐶", "이름 🐶"), ("", ""),
    ]

    @Test(arguments: names)
    func `names and filenames escape a quote, CR, LF and a backslash, and nothing else`(name: String, written: String)
        throws
    {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append(Data(), named: name, filename: name, contentType: .png)
        #expect(
            try body(of: form).contains(
                "Content-Disposition: form-data; name=\"\(written)\"; filename=\"\(written)\"\r\n"))
    }

    /// Text, and what becomes of it where line breaks are normalized.
    static let lineBreaks: [(text: String, normalized: String)] = [
        ("a\rb", "a\r\nb"), ("a\nb", "a\r\nb"), ("a\r\nb", "a\r\nb"), ("\n\r", "\r\n\r\n"), ("\r\r\n", "\r\n\r\n"),
        ("\n\n", "\r\n\r\n"), ("", ""), ("a\u{1}b\\", "a\u{1}b\\"),
        ("\"a\"", "\"a\""), ("a\r\n", "a\r\n"), ("\r", "\r\n"), ("\n", "\r\n"), ("이름\n🐶", "이름\r\n🐶"),
        ("100%0A", "100%0A"),
    ]

    @Test(arguments: lineBreaks)
    func `where line breaks are normalized, names and texts have CRLF, and filenames what they had`(
        text: String, normalized: String
    ) throws {
        var form = MultipartForm(boundary: try Boundary("XX"), lineBreaks: .normalized)
        form.append(text, named: text)
        form.append(Data(text.utf8), named: "file", filename: text, contentType: .plainText)
        func escaped(_ name: String) -> String {
            let escapes: [Unicode.Scalar: String] = ["\r": "%0D", "\n": "%0A", "\"": "%22", "\\": "\\\\"]
            return name.unicodeScalars.map { escapes[$0] ?? "\($0)" }.joined()
        }
        let expected =
            "--XX\r\nContent-Disposition: form-data; name=\"\(escaped(normalized))\"\r\n\r\n\(normalized)\r\n"
            + "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"\(escaped(text))\"\r\n"
            + "Content-Type: text/plain\r\n\r\n\(text)\r\n--XX--\r\n"
        #expect(try Array(body(of: form).utf8) == Array(expected.utf8))
    }

    @Test
    func `what is written is read back, whatever is in it`() throws {
        var form = MultipartForm()
        let delimiterWithoutItsEnd = "\r\n--\(form.boundary.value.dropLast())"
        let contents: [String: [UInt8]] = [
            "empty": [], "line breaks": Array("\r\n\r\n\r".utf8), "all bytes": Array(0...255),
            "almost": Array(delimiterWithoutItsEnd.utf8), "dashes": Array("\r\n----".utf8),
        ]
        for (name, content) in contents.sorted(by: { $0.key < $1.key }) {
            form.append(fileAt: try folder.file(name, content), named: "파일")
        }
        let bytes = try form.layout().reader().readAll()
        let readings = Reading.all(of: [bytes[...]], boundary: form.boundary.value)
        let read = readings.compactMap { if case .content(let bytes) = $0 { bytes } else { nil } }
        #expect(read == contents.sorted(by: { $0.key < $1.key }).map(\.value).filter { !$0.isEmpty })
        #expect(readings.last == .complete)
    }

    /// What names are made of: mostly what is escaped somewhere or ends something, else any scalar.
    private static let pieces = [
        "\\", "\\", "\"", "%", "22", "0D", "0a", "%22", "\\\"", "\r", "\n", "\r\n", "/", ";", "=", "'", "--", " ", "\t",
        "*",
        "a", "b.jpg", "C:\\", "..", "\u{1}", "\u{7F}", "\u{85}", "é", "e\u{301}", "초코", "🐶", "\u{FEFF}", "\u{2028}",
    ]

    private static func name(using random: inout SeededGenerator) -> String {
        var name = ""
        for _ in 0..<Int.random(in: 1...12, using: &random) {
            if Int.random(in: 0..<8, using: &random) > 0 {
                name += pieces.randomElement(using: &random) ?? ""
            } else if let scalar = Unicode.Scalar(UInt32.random(in: 1...0x10FFFF, using: &random)) {
                name.unicodeScalars.append(scalar)
            }
        }
        return name.isEmpty ? "a" : name
    }

    /// What receivers cannot tell from an escaped character, because nothing escapes the percent sign.
    private static func unescaped(_ name: String) -> String {
        var result = name
        for (escape, character) in [("%22", "\""), ("%0D", "\r"), ("%0d", "\r"), ("%0A", "\n"), ("%0a", "\n")] {
            let bytes = Array(result.utf8).replacing(Array(escape.utf8), with: Array(character.utf8))
            result = String(decoding: bytes, as: UTF8.self)
        }
        return result
    }

    @Test
    func `every name and filename is read back, save a path, and an escape that is in the name itself`() throws {
        var random = SeededGenerator(seed: 15)
        var form = MultipartForm()
        var expected: [[[UInt8]]] = []
        for _ in 0..<20_000 {
            let (name, filename) = (Self.name(using: &random), Self.name(using: &random))
            form.append(Data(), named: name, filename: filename)
            let lastComponent = filename.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false).last
            let file = Self.unescaped(String(decoding: lastComponent.map(Array.init) ?? [], as: UTF8.self))
            expected.append([Array(Self.unescaped(name).utf8), Array(file.utf8)])
        }
        let bytes = try form.layout().reader().readAll()
        var limits = FormLimits()
        limits.maximumParts = expected.count
        let readings = Reading.all(of: [bytes[...]], boundary: form.boundary.value, limits: limits)
        #expect(readings.last == .complete)
        let read = readings.compactMap { reading -> [[UInt8]]? in
            guard case .part(let name, let filename, _, _) = reading else { return nil }
            return [Array(name.utf8), Array((filename ?? "").utf8)]
        }
        #expect(read.count == expected.count)
        for (read, expected) in zip(read, expected) where read != expected {
            let texts = [expected, read].map { $0.map { String(decoding: $0, as: UTF8.self) } }
            Issue.record("\(texts[0]) is read as \(texts[1])")
        }
    }

    @Test(arguments: [("a\0b", "b"), ("a", "b\0")])
    func `a NUL in a name is refused before anything is sent`(name: String, filename: String) throws {
        var form = MultipartForm()
        form.append(Data(), named: name, filename: filename)
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .invalidName)
        #expect(error?.partIndex == 0)
    }

    @Test(arguments: ["Content-Disposition", "content-type"])
    func `a header field that the form writes itself is refused`(name: String) throws {
        var form = MultipartForm()
        form.append(
            FormPart(name: "a", headerFields: [try #require(.init(name)): "form-data; name=b"], content: .text("")))
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .reservedHeaderField)
    }

    @Test(arguments: ["--XX", "\r\n--XX", "a\r\n--XX", "--XX--\r\n"])
    func `text or bytes that hold the delimiter are refused`(text: String) throws {
        var form = MultipartForm(boundary: try Boundary("XX"))
        form.append(text, named: "a")
        let error = #expect(throws: FormError.self) { try form.layout() }
        #expect(error?.code == .boundaryInContent)
        #expect(error?.partIndex == 0)
    }
}
