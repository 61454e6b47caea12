import PostcardDoctor
import PostcardForm
import Testing

@Suite("How much a finding weighs")
struct SeverityTests {
    private static let type = "multipart/form-data; boundary=XX"
    private static let disposition = "Content-Disposition: form-data; name="

    private static func body(_ parts: (header: String, content: [UInt8])..., end: String = "--XX--\r\n") -> [UInt8] {
        parts.flatMap { part in
            Array("--XX\r\n\(disposition)\(part.header)\r\n\r\n".utf8) + part.content + Array("\r\n".utf8)
        } + Array(end.utf8)
    }

    private static let field = (header: #""a""#, content: Array("1".utf8))
    private static let another = "--XX\r\n\(disposition)\"b\"\r\n\r\n2\r\n--XX--\r\n"
    private static let binary: [UInt8] = [0xFF, 0x00, 0xFE, 0x80]
    private static let octets = "\"a\"\r\nContent-Type: application/octet-stream"

    /// Forms that a receiver takes, with the first finding in each: an error where something of the form is lost or
    /// altered, and a warning where everything arrives. Bytes that are not UTF-8 arrive, and browsers accept them too.
    private static let forms: [(name: String, body: [UInt8], code: FormProblem.Code, severity: FormProblem.Severity)] =
        [
            (
                "a part behind the close delimiter", body(field, end: "--XX--\r\n" + another),
                .partsAfterCloseDelimiter, .error
            ),
            (
                "two bytes more in a picture", body((picture, Picture.jpeg + [0x0D, 0x0A]), field),
                .extraLineBreakBeforeDelimiter, .error
            ),
            (
                "texts that all end in a line break", body(line, line, line), .extraLineBreakBeforeDelimiter,
                .warning
            ),
            (
                "a part without a delimiter before it", Array("\(disposition)\"b\"\r\n\r\n2\r\n".utf8) + body(field),
                .preamble, .error
            ),
            (
                "a sentence before the first delimiter", Array("A form.\r\n".utf8) + body(field), .preamble,
                .warning
            ),
            (
                "a text that quotes the close delimiter", body(field, end: "--XX--\r\nmore\r\n--XX--\r\n"),
                .epilogue, .error
            ),
            ("the close delimiter twice", body(field, end: "--XX--\r\n\r\n--XX--\r\n"), .epilogue, .warning),
            (
                "the close delimiter three times", body(field, end: "--XX--\r\n--XX--\r\n--XX--\r\n"), .epilogue,
                .warning
            ),
            (
                "a sentence behind the close delimiter", body(field, end: "--XX--\r\nA form.\r\n"), .epilogue,
                .warning
            ),
            (
                "a line that begins as a delimiter does", body((#""a""#, Array("1\r\n--XXX\r\n2".utf8))),
                .delimiterInContent, .error
            ),
            (
                "blanks behind a boundary", Array("--XX \r\n".utf8) + body(field).dropFirst(6), .paddedDelimiter,
                .warning
            ),
            ("quotes that are no quotes", body(("'a'", field.content)), .quotesInName, .error),
            (
                "a name in Latin-1",
                Array("--XX\r\n\(disposition)\"caf".utf8) + [0xE9] + Array("\"\r\n\r\n1\r\n--XX--\r\n".utf8),
                .nameNotUTF8, .warning
            ),
            ("filename* alone", body((#""a"; filename*=UTF-8''a.bin"#, binary)), .extendedFilename, .error),
            ("a text in Latin-1", body((#""a""#, Array("caf".utf8) + [0xE9])), .textNotUTF8, .warning),
            (
                "two lines of one field", body(("\"a\"; \r\n filename=\"a.bin\"", binary)), .foldedHeaderLine, .warning
            ),
            ("a name as browsers write it", body((#""a\""#, field.content)), .unescapedBackslash, .warning),
            ("bytes without a filename", body((octets, binary)), .fileWithoutFilename, .error),
            ("UTF-8 without a filename", body((octets, field.content)), .fileWithoutFilename, .warning),
            (
                "a text in a charset that is named",
                body(("\"a\"\r\nContent-Type: text/plain; charset=iso-8859-1", Array("caf".utf8) + [0xE9])),
                .textNotUTF8, .warning
            ),
            (
                "a message without a filename",
                body(("\"a\"\r\nContent-Type: application/x-protobuf", [0x08, 0x96, 0x01])), .fileWithoutFilename,
                .error
            ),
            ("a line break first", Array("\r\n".utf8) + body(field), .leadingLineBreak, .warning),
            (
                "an encoding that is not undone", body(("\"a\"\r\nContent-Transfer-Encoding: binary", field.content)),
                .contentTransferEncoding, .warning
            ),
            ("a path", body((#""a"; filename="/tmp/a.bin""#, binary)), .pathInFilename, .warning),
        ]

    private static let picture = "\"p\"; filename=\"p.jpg\"\r\nContent-Type: image/jpeg"
    private static let line = (header: #""a""#, content: Array("1\r\n".utf8))

    @Test(arguments: forms.indices)
    func `what loses or alters something is an error, and what arrives is a warning`(index: Int) throws {
        let form = Self.forms[index]
        let explanation = Explanation(contentType: Self.type, body: form.body)
        let first = try #require(explanation.findings.first)
        #expect(first.code == form.code, "\(form.name): \(explanation)")
        #expect(first.severity == form.severity, "\(form.name): \(explanation)")
        #expect(explanation.isValid == (form.severity == .warning), "\(form.name): \(explanation)")
    }

    @Test
    func `fields behind S3's file, which it does not read, are an error`() {
        let form = Self.body(
            (#""key""#, Array("a.jpg".utf8)), (#""file"; filename="a.bin""#, Self.binary),
            (#""policy""#, Array("e30=".utf8)))
        let explanation = Explanation(contentType: Self.type, body: form)
        #expect(explanation.findings.map(\.code) == [.fieldsAfterFile])
        #expect(!explanation.isValid)
    }

    @Test(arguments: ["1.1", "2", "3"])
    func `a body without a length is lost, unless the version of HTTP frames it`(version: String) {
        let head = "POST / HTTP/\(version)\r\nContent-Type: \(Self.type)\r\n\r\n"
        let explanation = Explanation(request: Array(head.utf8) + Self.body(Self.field))
        #expect(explanation.findings.map(\.code) == (version == "1.1" ? [.missingLength] : []))
        #expect(explanation.isValid == (version != "1.1"))
    }

    /// A form whose parts were each written with CRLF before and behind, by a program that does so for all of them.
    private static let written: [(body: [UInt8], codes: [FormProblem.Code])] = [
        (
            Array("\r\n".utf8) + body(field, end: "--XX--\r\n\r\n" + another),
            [.partsAfterCloseDelimiter, .leadingLineBreak]
        ),
        (
            Array("\r\n".utf8)
                + body((picture, Picture.jpeg + [0x0D, 0x0A]), (picture, Picture.png + [0x0D, 0x0A]), field),
            [
                .extraLineBreakBeforeDelimiter, .extraLineBreakBeforeDelimiter,
                .leadingLineBreak,
            ]
        ),
    ]

    @Test
    func `what loses data is said first, and a line break before it that only follows from it afterwards`() {
        for row in Self.written {
            let explanation = Explanation(contentType: Self.type, body: row.body)
            let root = explanation.findings.first
            #expect(explanation.problems.prefix(row.codes.count).map(\.code) == row.codes, "\(explanation)")
            #expect(root?.consequences.contains { $0.code == .leadingLineBreak } == true, "\(explanation)")
            #expect(!explanation.isValid)
        }
    }
}
