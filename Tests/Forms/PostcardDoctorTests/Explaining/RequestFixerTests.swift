import Foundation
import PostcardDoctor
import PostcardForm
import Testing

@Suite("What is fixed")
struct RequestFixerTests {
    static func fixed(_ bytes: [UInt8], in chunks: Int = .max) -> [UInt8] {
        var fixer = RequestFixer(BrokenRequestTests.explanation(of: bytes))
        var result: [UInt8] = []
        for start in stride(from: 0, to: bytes.count, by: min(chunks, max(bytes.count, 1))) {
            let end = min(start + min(chunks, bytes.count), bytes.count)
            fixer.read(bytes[start..<end].span.bytes) { piece in piece.withUnsafeBytes { result += $0 } }
        }
        fixer.finish { piece in piece.withUnsafeBytes { result += $0 } }
        return result
    }

    /// Those whose first problem has a fix.
    static let certain = BrokenRequestTests.all.filter {
        BrokenRequestTests.explanation(of: $0.request.bytes).fixable.first?.code == $0.code
    }

    @Test(arguments: SampleRequest.good.indices)
    func `a good request stays as it is`(index: Int) {
        let bytes = SampleRequest.good[index].request.bytes
        #expect(Self.fixed(bytes) == bytes)
    }

    @Test
    func `a head that is no UTF-8 keeps its places`() throws {
        var request = SampleRequest.texts
        request.setType("multipart/form-data; charset=~~~~; boundary=other")
        var bytes = request.bytes
        for index in bytes.indices.prefix(request.headBytes.count) where bytes[index] == UInt8(ascii: "~") {
            bytes[index] = 0xE9
        }
        let explanation = BrokenRequestTests.explanation(of: Self.fixed(bytes))
        #expect(explanation.isValid, "\(explanation)")
        #expect(explanation.parts.count == 3)
    }

    @Test(arguments: certain)
    func `what was wrong is right afterwards, and nothing else is wrong`(request: BrokenRequest) {
        let fixed = Self.fixed(request.request.bytes)
        let explanation = BrokenRequestTests.explanation(of: fixed)
        #expect(explanation.isValid, "\(explanation.problems)")
        #expect(explanation.fixable.isEmpty, "\(explanation.fixable)")
        #expect(
            !explanation.findings.contains { $0.code == request.code && $0.code != .contentTransferEncoding })
        let text = String(decoding: fixed, as: UTF8.self)
        #expect(text.lowercased().components(separatedBy: "content-length:").count == 2)
    }

    @Test
    func `two types that differ are named with their lines, and only their sender can choose`() throws {
        var request = SampleRequest.pictures
        request.replace("image/jpeg\r\n", with: "image/jpeg\r\nContent-Type: text/html\r\n")
        let explanation = BrokenRequestTests.explanation(of: request.bytes)
        let finding = try #require(explanation.findings.first)
        #expect(
            finding.message
                == #"The part has two Content-Types: "Content-Type: image/jpeg" and "Content-Type: text/html"."#)
        #expect(finding.advice.hasPrefix("Write one"))
        #expect(explanation.fixable.isEmpty)
        #expect(Self.fixed(request.bytes) == request.bytes)
    }

    @Test
    func `each backslash that escapes nothing is escaped where a name ends in one`() {
        var request = SampleRequest.pictures
        request.replace(#"image"; filename="sea.jpg""#, with: #"i\\m\"age\"; filename="sea.jpg\""#)
        let fixed = Self.fixed(request.bytes)
        #expect(String(decoding: fixed, as: UTF8.self).contains(#"name="i\\\\m\"age\\"; filename="sea.jpg\\""#))
        let parts = [request.bytes, fixed].map { BrokenRequestTests.explanation(of: $0).parts[1] }
        #expect(parts.map(\.name) == [#"i\\m"age\"#, #"i\\m"age\"#])
        #expect(parts.map(\.filename) == [#"sea.jpg\"#, #"sea.jpg\"#])
    }

    @Test
    func `the bytes tell the type, however the announced one is spelled`() {
        for announced in ["image/jpeg", "image/jpg", "image/pjpeg; q=1"] {
            var request = SampleRequest.pictures
            request.replace("image/jpeg", with: announced)
            request.replace(Picture.jpeg, with: Picture.heic)
            let fixed = String(decoding: Self.fixed(request.bytes), as: UTF8.self)
            let parameter = announced.contains(";") ? "; q=1" : ""
            #expect(fixed.contains("Content-Type: image/heic\(parameter)\r\n"), "\(announced)")
        }
    }

    @Test
    func `a word that is no type, and contradicts the bytes, is left to the sender`() {
        var request = SampleRequest.pictures
        request.replace("image/jpeg", with: "jpeg")
        request.replace(Picture.jpeg, with: Picture.heic)
        #expect(BrokenRequestTests.explanation(of: request.bytes).unfixable.map(\.code) == [.contentContradictsType])
        #expect(Self.fixed(request.bytes) == request.bytes)
    }

    @Test(arguments: certain)
    func `however it is cut, the same comes out`(request: BrokenRequest) {
        let bytes = request.request.bytes
        let whole = Self.fixed(bytes)
        for size in [1, 7] { #expect(Self.fixed(bytes, in: size) == whole) }
    }

    @Test
    func `what is not certain is left as it is, and said`() {
        var request = SampleRequest.texts
        request.replace("name=\"title\"", with: "name=\"\"")
        let explanation = BrokenRequestTests.explanation(of: request.bytes)
        #expect(explanation.unfixable.map(\.code) == [.emptyName])
        #expect(Self.fixed(request.bytes) == request.bytes)
    }

    /// Bodies of which something is fixed and something is not, and the kinds of both with the numbers of their places.
    private static let halves: [(name: String, body: String, fixed: [String], left: [String])] = [
        (
            "LF, and then CR in a field", "--XX\n\(header)\"a\"\r\nX-A: b\rc\r\n\r\nhi\r\n--XX--\r\n",
            ["bare-line-break 1"], ["bare-line-break 1"]
        ),
        (
            "CR in a field, and then LF",
            "--XX\r\n\(header)\"a\"\r\nX-A: b\rc\r\n\r\nhi\r\n--XX\n\(header)\"b\"\n\r\nhi\r\n--XX--\r\n",
            ["bare-line-break 2"], ["bare-line-break 1"]
        ),
        (
            "more LF than are kept, and then CR in a field",
            "--XX\r\n\(header)\"a\"\n" + String(repeating: "X-A: b\n", count: 40)
                + "X-A: b\rc\r\n\r\nhi\r\n--XX--\r\n",
            ["bare-line-break 41"], ["bare-line-break 1"]
        ),
        (
            "a line break first, and a part behind the close delimiter",
            "\r\n--XX\r\n\(header)\"a\"\r\n\r\n1\r\n--XX--\r\n--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
            ["leading-line-break 1"], ["parts-after-close-delimiter 1"]
        ),
        (
            "another boundary, by which the parser finds no delimiter",
            "--YY\r\n\(header)\"a\"\r\n\r\n1\r\n--YY--\r\n", ["boundary-mismatch 1"], []
        ),
    ]

    @Test(arguments: halves.indices)
    func `what is fixed at some places only is also left, with the others`(index: Int) {
        let row = Self.halves[index]
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: row.body.utf8)
        let groups = [explanation.fixable, explanation.unfixable].map { findings in
            FindingGroup.groups(of: findings).map { "\($0.finding.code) \(1 + $0.repetitions.count)" }
        }
        #expect(groups == [row.fixed, row.left], "\(row.name): \(explanation)")
        #expect([explanation.fixable, explanation.unfixable].map(\.count) == [row.fixed.count, row.left.count])
    }

    @Test(arguments: [
        // Files of lines, all of which end in a line break.
        (0..<3).map { "--XX\r\n\(header)\"\($0)\"; filename=\"\($0).csv\"\r\n\r\na,b\r\n\($0),2\r\n\r\n" }.joined()
            + "--XX--\r\n",
        // A part behind another form's delimiter.
        "--YY\r\n\(header)\"a\"\r\n\r\n1\r\n--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
        // A part whose delimiter has a typo, with and without a header.
        "--XY\r\nContent-Type: text/plain\r\n\r\n1\r\n--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
        "--XY\r\n\r\n1\r\n--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
        "-- XX\r\n\r\n1\r\n--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
        // A part behind the close delimiter, whose delimiter has a dash too many.
        "--XX\r\n\(header)\"a\"\r\n\r\n1\r\n--XX--\r\n---XX\r\n\(header)\"b\"\r\n\r\n2\r\n---XX--\r\n",
        // A text that may be a header's field, or lines of it.
        "--XX\r\n\(header)\"a\"\r\nNote: milk\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\nNote: milk\neggs\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\na\n\nb\r\n--XX--\r\n",
        // The close delimiter of another form.
        "--XX\r\n\(header)\"a\"\r\n\r\n1\r\n--YY--\r\n",
        // A text that quotes the close delimiter.
        "--XX\r\n\(header)\"a\"\r\n\r\n1\r\n--XX--\r\n2\r\n--XX--\r\n",
        // Values that may end elsewhere.
        "--XX\r\n\(header)\"a\"; filename=\"a.png\"Content-Type: image/png\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\": filename=\"a.png\"\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"; filenameD\"a.png\"\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"; filename==\"a.png\"\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"; filename=\"\"a.png\"\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)a b\"\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)'a' filename='b'\r\n\r\n1\r\n--XX--\r\n",
        // A header's field with a byte too many in its name, or with a blank before it.
        "--XX\r\n\(header)\"a\"\r\nContent-T\u{1}ype: text/plain\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\n Content-Type: text/plain\r\n\r\n1\r\n--XX--\r\n",
        // Line breaks with a byte in them.
        "--XX\r\n\(header)\"a\"\r\n\r\t\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\n;\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\n\r\n1\r;\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\n\r\n1\r\n;--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
        // A line of blanks that is the blank line, or continues the field before it.
        "--XX\r\n\(header)\"a\"\r\n \r\nContent-Type: text/plain\r\n\r\n1\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\n \r\n\r\n1\r\n--XX--\r\n",
        // A content that is the close delimiter without its dashes, or another form's with a typographic dash.
        "--XX\r\n\(header)\"a\"\r\n\r\nXX--\r\n",
        "---XX\r\n\(header)\"a\"\r\n\r\n1\r\n--XX—\r\n",
        // Parts without what others have, whose content may begin or end with it.
        "--XX\r\n\(header)\"a\"\r\n1 2\r\n--XX\r\n\(header)\"b\"\r\n3 4\r\n--XX\r\n\(header)\"c\"\r\n\r\n5\r\n"
            + "--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\nContent-Type: text/plain\r\n\r\n1\r\n--XX\r\n\(header)\"b\"\r\n3 4\r\n--XX--\r\n",
        "--XX\r\n\(header)\"a\"\r\n\r\n1--XX\r\n\(header)\"b\"\r\n\r\n2--XX\r\n\(header)\"c\"\r\n\r\n3\r\n--XX--\r\n",
    ])
    func `what may be meant is not taken away`(body: String) {
        var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
        examination.read(Array(body.utf8).span.bytes)
        #expect(examination.finish().fixable.isEmpty)
    }

    private static let header = "Content-Disposition: form-data; name="

    /// Bodies, and what they become.
    private static let single: [(broken: String, fixed: String)] = [
        (
            "--XX\r\n\(header)\"a\"\r\n \r\n1\r\n--XX--\r\n", "--XX\r\n\(header)\"a\"\r\n\r\n1\r\n--XX--\r\n"
        ),
        (
            "--XX\r\n\(header)\"a\"\r\n\t\r\n\r\n--XX--\r\n", "--XX\r\n\(header)\"a\"\r\n\r\n\r\n--XX--\r\n"
        ),
        (
            "--XX\n\(header)\"a\";\n filename=\"b\"\n\n1\n--XX--\n",
            "--XX\r\n\(header)\"a\"; filename=\"b\"\r\n\r\n1\r\n--XX--\r\n"
        ),
        (
            "--XX\r\n\(header)\"a\"\r\n\r\n1----XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n",
            "--XX\r\n\(header)\"a\"\r\n\r\n1--\r\n--XX\r\n\(header)\"b\"\r\n\r\n2\r\n--XX--\r\n"
        ),
        (
            "--XX\r\n\(header)\"a\"\r\n\r\n\r\n\n--XX--\r\n", "--XX\r\n\(header)\"a\"\r\n\r\n\r\n\r\n--XX--\r\n"
        ),
        (
            "--XX\r\n\(header)\"q\"t\"\r\n\r\n1\r\n--XX--\r\n",
            "--XX\r\n\(header)\"q%22t\"\r\n\r\n1\r\n--XX--\r\n"
        ),
    ]

    @Test(arguments: single.indices)
    func `what can only have been meant in one way is fixed`(index: Int) {
        let head = "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
        let (broken, fixed) = Self.single[index]
        let bytes = Array("\(head)Content-Length: \(broken.utf8.count)\r\n\r\n\(broken)".utf8)
        let result = Self.fixed(bytes)
        #expect(
            String(decoding: result, as: UTF8.self) == "\(head)Content-Length: \(fixed.utf8.count)\r\n\r\n\(fixed)")
        let explanation = BrokenRequestTests.explanation(of: bytes)
        let left = explanation.outcome(reading: BrokenRequestTests.explanation(of: result)).left
        #expect(left.allSatisfy { $0.severity != .error }, "\(left)")
    }

    @Test
    func `a line break before a delimiter that lost its LF is fixed behind a picture's end`() {
        var request = SampleRequest.pictures
        request.replace(Picture.jpeg + [0x0D, 0x0A], with: Picture.jpeg + [0x0D])
        #expect(Self.fixed(request.bytes) == SampleRequest.pictures.bytes)
    }

    @Test(arguments: [("1", true), ("1\r\n2", false), ("1\r", false), ("1\r\nFormBoundary7MA4--\r\na=b", false)])
    func `a body that ends in its content is closed only if nothing may be missing`(content: String, isFixed: Bool) {
        var request = SampleRequest([.field("a", content)])
        request.body.removeLast("\r\n--FormBoundary7MA4--\r\n".utf8.count)
        #expect(BrokenRequestTests.explanation(of: request.bytes).fixable.isEmpty == !isFixed)
    }

    @Test
    func `a form that is cut off behind a delimiter is not closed there`() {
        var request = SampleRequest.texts
        request.contentLength = "Content-Length: \(request.body.count)"
        let end = request.body.index(of: Array("3\r\n".utf8)) ?? 0
        let start = request.body[..<end].lastIndex(of: UInt8(ascii: "C")) ?? end
        request.body.removeSubrange(start...)
        let codes = BrokenRequestTests.explanation(of: request.bytes).unfixable.map(\.code)
        #expect(codes.contains(.wrongCloseDelimiter), "\(codes)")
    }

    @Test(arguments: [
        ("-XX", false), ("XX--", false), ("1\r\n-XX\r\n", false), ("1\r\n--XX --", false),
        ("--YY\r\n\(header)\"z\"\r\n\r\n1\r\n--YY--\r\n", false), ("multipart/form-data; boundary=XX", false),
        ("--YY\r\n\(header)\"z\"\r\n\r\n1", true), ("1\r\n-XX\r\n\(header)\"z\"\r\n\r\n2", true),
        ("1\r\n-XX\r\nContent-Dispositon: form-data; name=z\r\n\r\n2", true), ("1\r\n-XX\r\n\r\n2", true),
        ("1\r\n\(header)\"z\"\r\n\r\n2", true), ("1\r\n-XX\(header)\"z\"\r\n\r\n2", true),
    ])
    func `a text that looks like a part is noted, and one that only resembles it is not`(content: String, isNoted: Bool)
    {
        let body = "--XX\r\n\(Self.header)\"a\"\r\n\r\n\(content)\r\n--XX--\r\n"
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body.utf8)
        #expect(explanation.findings.contains { $0.code == .partInContent } == isNoted, "\(explanation)")
    }

    @Test
    func `a picture without the blank line before it gets that line, and keeps its bytes`() throws {
        // The picture's first line holds NUL and line breaks, as a camera's does.
        let segment: [UInt8] = [0xFF, 0xE1, 0, 16] + Array("Exif\0\0MM\0\n\nX: y".utf8)
        let picture = Picture.jpeg(segments: segment)
        var request = SampleRequest([.file("image", "sea.jpg", "image/jpeg", picture)])
        request.replace(Array("image/jpeg\r\n\r\n".utf8), with: Array("image/jpeg\r\n".utf8))
        let explanation = BrokenRequestTests.explanation(of: request.bytes)
        #expect(explanation.findings.map(\.code) == [.missingBlankLine], "\(explanation)")
        let fixed = Self.fixed(request.bytes)
        #expect(fixed == SampleRequest([.file("image", "sea.jpg", "image/jpeg", picture)]).bytes)
    }

    @Test
    func `what a second reading finds again is not called fixed`() {
        let explanation = BrokenRequestTests.explanation(of: Self.certain[0].request.bytes)
        let again = explanation.outcome(reading: explanation)
        #expect(again.fixed.allSatisfy { $0.severity != .error || explanation.unfixable.map(\.code).contains($0.code) })
        #expect(again.left.count >= explanation.findings.count { $0.severity == .error })
        let unread = BrokenRequestTests.explanation(of: SampleRequest.texts.bytes)
        #expect(!BrokenRequestTests.explanation(of: SampleRequest.pictures.bytes).keepsContents(in: unread))
    }

    @Test
    func `what is found in a name that is put right has its place in the body`() {
        let name = String(repeating: "\"", count: 100) + "\u{1}"
        let body = Array("--XX\r\n\(Self.header)\"a\"; filename=\"\(name).jpg\"\r\n\r\n1\r\n--XX--\r\n".utf8)
        var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
        examination.read(body.span.bytes)
        let findings = examination.finish().problems
        #expect(findings.contains { $0.code == .controlInName })
        #expect(findings.allSatisfy { $0.offset <= body.count })
    }

    @Test
    func `what no fix brings back is still told by the length`() {
        var request = SampleRequest.pictures
        request.replace("Content-Type: image/jpeg", with: "Content-Type: image/jpg")
        request.contentLength = "Content-Length: \(request.body.count)"
        let length = request.body.count
        request.body.removeLast(40)
        let fixed = String(decoding: Self.fixed(request.bytes), as: UTF8.self)
        #expect(fixed.contains("Content-Type: image/jpeg"))
        #expect(fixed.contains("Content-Length: \(length + 1)\r\n"))
    }

    @Test
    func `a chunked request comes out in one piece with its length`() {
        var request = SampleRequest.texts
        let size = String(request.body.count, radix: 16)
        request.contentLength = "Transfer-Encoding: chunked"
        let body = request.body
        request.body = Array("\(size)\r\n".utf8) + body + Array("\r\n0\r\n\r\n".utf8)
        var expected = SampleRequest.texts
        expected.contentLength = "Content-Length: \(body.count)"
        #expect(Self.fixed(request.bytes) == expected.bytes)
        // What follows the last chunk is no part of the body.
        request.body += Array("\r\nx".utf8)
        #expect(Self.fixed(request.bytes) == expected.bytes)
        #expect(BrokenRequestTests.explanation(of: request.bytes).fixable.map(\.code) == [.malformedChunk])
    }

    @Test
    func `most of what is refused can be fixed`() {
        #expect(Self.certain.count >= 60)
    }
}
