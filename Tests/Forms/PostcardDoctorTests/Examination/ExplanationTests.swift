import PostcardDoctor
import PostcardForm
import Testing

@Suite("An explanation")
struct ExplanationTests {
    static let form = """
        --XX\r
        Content-Disposition: form-data; name="a"\r
        \r
        abc\r
        --XX\r
        Content-Disposition: form-data; name="b"; filename="b.txt"\r
        Content-Type: text/plain\r
        \r
        x\r
        --XX--\r

        """

    @Test
    func `a bare body is taken apart`() throws {
        var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
        examination.read(Array(Self.form.utf8).span.bytes)
        let explanation = examination.finish()
        #expect(explanation.isValid)
        #expect(explanation.boundary == "XX")
        #expect(explanation.parts.map(\.name) == ["a", "b"])
        #expect(explanation.parts.map(\.filename) == [nil, "b.txt"])
        #expect(explanation.parts.map(\.offset) == [50, 149])
        #expect(explanation.parts.map(\.size) == [3, 1])
        #expect(
            explanation.parts[0].sha256 == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")
        #expect(explanation.parts[1].headerFields.map(\.name) == ["Content-Disposition", "Content-Type"])
    }

    @Test(arguments: [
        "--XX\r\n", "--XX\r\nX: y\r\n\r\n\r\n",
        "--XX\r\n" + String(repeating: "X: y\r\n", count: 100),
        "--XX\r\nX: " + String(repeating: "y", count: 9_000) + "\r\n\r\n\r\n",
    ])
    func `a body of delimiters or headers without end is examined up to a limit, and says where it ended`(lines: String)
        throws
    {
        let body = Array(String(repeating: lines, count: 5_000_000 / lines.utf8.count).utf8)
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body)
        let end = try #require(explanation.problems.first { $0.code == .notExamined })
        #expect((100_000..<4_200_000).contains(end.offset))
        #expect(!explanation.problems.contains { $0.offset > end.offset })
    }

    @Test
    func `large headers are described`() {
        let part =
            "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nX: "
            + String(repeating: "x", count: 10_000) + "\r\n\r\n\r\n"
        let parts = Array(String(repeating: part, count: 100).utf8)
        var examination = FormExamination(contentType: "multipart/form-data; boundary=XX")
        for _ in 0..<3 { examination.read(parts.span.bytes) }
        examination.read(Array("--XX--\r\n".utf8).span.bytes)
        let explanation = examination.finish()
        #expect(explanation.partCount == 300)
        #expect(explanation.parts.count == 300)
    }

    /// Requests and the problem that each begins with.
    static let requests: [(request: String, code: FormProblem.Code?)] = [
        (request("Content-Type: multipart/form-data; boundary=XX", "Content-Length: \(form.utf8.count)"), nil),
        (request("content-type:multipart/form-data;boundary=\"XX\" ", "content-length:\t\(form.utf8.count) "), nil),
        (
            request("Content-Type: multipart/form-data; boundary=XX", "Content-Length: \(form.utf8.count - 9)")
                .replacing("\r\n", with: "\n"), .bareLineBreakInHead
        ),
        (request("Content-Type: multipart/form-data; boundary=XX"), .missingLength),
        (request("Content-Type: multipart/form-data; boundary=XX", "Content-Length : 3"), .malformedRequest),
        (request("Content-Length: 3", "Transfer-Encoding: chunked"), .conflictingLengths),
        (request("Transfer-Encoding: gzip, chunked"), .malformedRequest),
        (request("Transfer-Encoding: xchunked"), .malformedRequest),
        ("POST / HTTP/1.1\r\nX: " + String(repeating: "x", count: 70_000), .malformedRequest),
        (request("Content-Type: application/json"), .notFormData),
        (request("Content-Length: \(form.utf8.count)"), .missingContentType),
        (request("Content-Type: multipart/form-data"), .missingBoundary),
        (request("Content-Type: multipart/form-data; boundary=XX; boundary=YY"), .duplicateBoundary),
        (request("Content-Type: multipart/form-data; boundary=YY"), .boundaryMismatch),
        (
            request("Content-Type: multipart/form-data; boundary=XX", "Content-Length: 20"),
            .contentLengthMismatch
        ),
        (
            request("Content-Type: multipart/form-data; boundary=XX", "Content-Length: 999"),
            .contentLengthMismatch
        ),
        (request("Content-Type: multipart/form-data; boundary=XX", "Content-Length: -1"), .malformedRequest),
        (
            request("Content-Type: multipart/form-data; boundary=XX", "Content-Type: text/plain"),
            .duplicateContentType
        ),
        (request("Content-Type: multipart/form-data; boundary=XX", "no field"), .malformedRequest),
        ("GET /", .malformedRequest),
        ("\r\n\r\n", .malformedRequest),
        ("", .malformedRequest),
        (form, .malformedRequest),
    ]

    static func request(_ fields: String...) -> String {
        "POST /uploads HTTP/1.1\r\nHost: localhost\r\n" + fields.map { $0 + "\r\n" }.joined() + "\r\n" + form
    }

    @Test(arguments: requests)
    func `a raw request is judged by its head and its body, however it is cut`(request: String, code: FormProblem.Code?)
    {
        let bytes = Array(request.utf8)
        for size in [1, 7, max(bytes.count, 1)] {
            var examination = RequestExamination()
            for start in stride(from: 0, to: bytes.count, by: size) {
                examination.read(bytes[start..<min(start + size, bytes.count)].span.bytes)
            }
            let explanation = examination.finish()
            #expect(explanation.problems.first?.code == code)
            #expect(explanation.isValid == (code?.severity != .error))
        }
    }

    @Test
    func `what follows from a lost line break stands under it`() {
        let lines = Self.request(
            "Content-Type: multipart/form-data; boundary=XX", "Content-Length: \(Self.form.utf8.count)")
        let withoutReturns = Explanation(request: lines.replacing("\r\n", with: "\n").utf8)
        #expect(withoutReturns.findings.map(\.code) == [.bareLineBreakInHead])
        let codes = Set(withoutReturns.problems.map(\.code))
        #expect(codes.isSuperset(of: [.bareLineBreak, .contentLengthMismatch]))
    }

    @Test
    func `a delimiter in the content is one problem, and the parts are as they were meant`() {
        let body = Self.form.replacing("abc", with: "abc\r\n--XX\r\ny\r\n--XX\r\nz\r\n--XXX\r\nend")
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body.utf8)
        #expect(explanation.findings.map(\.code) == [.delimiterInContent])
        #expect(explanation.findings.first?.consequences.map(\.severity) == [.error, .error])
        #expect(explanation.parts.map(\.name) == ["a", "b"])
        #expect(explanation.edits.isEmpty)
    }

    @Test
    func `what a header lacks is said at its beginning, whatever is taken out of it`() {
        let body = Self.form.replacing("Content-Disposition: form-data; name=\"a\"", with: "y")
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body.utf8)
        #expect(explanation.problems.map(\.code) == [.malformedHeaderField, .missingContentDisposition])
        #expect(explanation.problems.map(\.offset) == [6, 6])
    }

    @Test
    func `a part that a missing line break hides is found`() {
        let hidden = Self.form.replacing("abc\r\n", with: "abc")
        for body in [hidden, "text" + Self.form] {
            let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body.utf8)
            #expect(explanation.findings.first?.code == .missingLineBreakBeforeDelimiter)
            #expect(!explanation.isValid)
            #expect(explanation.parts.map(\.size) == [3, 1])
        }
    }

    @Test
    func `a body that ends in a part's header is cut off, whatever else is wrong`() {
        let part = "Content-Disposition: form-data; name=\"a\"\r\n\r\nhi\r\n"
        let body = "--XX\r\n\(part)--XX\r\nContent-Disposition: form-da"
        let type = "multipart/form-data; boundary=XX"
        let alone = Explanation(contentType: type, body: body.utf8)
        #expect(alone.problems.map(\.code) == [.truncated])
        let broken = Explanation(contentType: type, body: "--XX\n\(part)--XX\r\nContent-Disposition: form-da".utf8)
        #expect(broken.problems.map(\.code) == [.bareLineBreak, .truncated])
        #expect(broken.fixable.map(\.code) == [.bareLineBreak])
        #expect(broken.unfixable.map(\.code) == [.truncated])
        for explanation in [alone, broken] {
            #expect(explanation.findings.last?.partIndex == 1)
            #expect(explanation.findings.last?.offset == explanation.bodySize)
        }
        let head = "POST / HTTP/1.1\r\nContent-Type: \(type)\r\nContent-Length: 200\r\n\r\n"
        let short = Explanation(request: (head + body).utf8)
        #expect(short.findings.map(\.code) == [.contentLengthMismatch])
        #expect(short.problems.map(\.code) == [.contentLengthMismatch, .truncated])
    }

    @Test
    func `an error that repeats a warning is the root of both`() {
        let part = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\nContent-Type: image/jpeg\r\n\r\n"
        let body = Array("\(part)1\r\n\(part)".utf8) + [0xFF, 0x00] + Array("\r\n--XX--\r\n".utf8)
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body)
        #expect(explanation.findings.map(\.severity) == [.error])
        #expect(explanation.findings.first?.consequences.map(\.severity) == [.warning])
    }

    @Test
    func `a length that the fix makes right follows from what is fixed`() {
        let request = Self.request(
            "Content-Type: multipart/form-data; boundary=XX", "Content-Length: \(Self.form.utf8.count)")
        let broken = request.replacing(Self.form, with: Self.form.replacing("abc\r\n", with: "abc\n"))
        let explanation = Explanation(request: broken.utf8)
        #expect(explanation.findings.map(\.code) == [.bareLineBreak])
        #expect(explanation.problems.map(\.code) == [.bareLineBreak, .contentLengthMismatch])
    }

    @Test
    func `a header full of semicolons is read as fast as any`() {
        let part = Self.form.prefix { $0 != "\"" } + "a;" + String(repeating: ";", count: 12_000) + "x\"\r\n\r\nabc\r\n"
        let explanation = Explanation(
            contentType: "multipart/form-data; boundary=XX",
            body: (String(repeating: part, count: 250) + Self.form).utf8)
        #expect(explanation.partCount == 252)
    }

    @Test
    func `a boundary that is not named is told from the body`() {
        let explanation = Explanation(contentType: "multipart/form-data", body: Self.form.utf8)
        #expect(explanation.findings.first?.message.contains("The body uses \"XX\".") == true)
    }

    @Test(arguments: [
        (#"filename="a\"b.jpg""#, #"a"b.jpg"#), (#"filename="a%22b.jpg""#, #"a"b.jpg"#),
        (#"name=""; filename="a%22b.jpg""#, #"a"b.jpg"#), ("filename=a%22b.jpg", "a%22b.jpg"),
        (#"filename="C:\photos\a.jpg""#, "a.jpg"), (#"filename="100%25.jpg""#, "100%25.jpg"),
    ])
    func `a filename is decoded in a header without a name too`(parameters: String, filename: String) {
        let body = "--XX\r\nContent-Disposition: form-data; \(parameters)\r\n\r\nhi\r\n--XX--\r\n"
        let explanation = Explanation(contentType: "multipart/form-data; boundary=XX", body: body.utf8)
        #expect(!explanation.isValid)
        #expect(explanation.parts.map(\.name) == [""])
        #expect(explanation.parts.map(\.filename) == [filename])
    }

    @Test
    func `a line full of what delimiters look like is content, and read as fast as any`() {
        for lookalike in ["--XX--x", "--XX y"] {
            let text = String(repeating: lookalike, count: 300_000)
            let explanation = Explanation(
                contentType: "multipart/form-data; boundary=XX", body: Self.form.replacing("abc", with: "a" + text).utf8
            )
            #expect(explanation.problems.map(\.code) == [.overCommonDefaults], "\(explanation)")
            #expect(explanation.parts.map(\.size) == [Int64(text.utf8.count + 1), 1])
        }
    }

    @Test(arguments: [1, 3, 1000])
    func `a chunked body is put together, however it is cut`(size: Int) {
        var wire = Array("POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\n".utf8)
        wire += Array("Transfer-Encoding: chunked\r\n\r\n".utf8)
        for character in Self.form.utf8.map({ $0 }).chunks(of: 11) {
            wire += Array("\(String(character.count, radix: 16));x=1\r\n".utf8) + character + Array("\r\n".utf8)
        }
        wire += Array("0\r\nTrailer: x\r\n\r\n".utf8)
        var examination = RequestExamination()
        for chunk in wire.chunks(of: size) { examination.read(chunk.span.bytes) }
        let explanation = examination.finish()
        #expect(explanation.problems.isEmpty)
        #expect(explanation.parts.map(\.name) == ["a", "b"])
    }

    @Test(arguments: [1, 7, 1000])
    func `bytes behind the last chunk are an error, however they are cut`(size: Int) {
        let length = String(Self.form.utf8.count, radix: 16)
        let wire =
            "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\nTransfer-Encoding: chunked\r\n\r\n"
            + "\(length)\r\n\(Self.form)\r\n0\r\n\r\n"
        for (excess, count) in [("x", 1), ("\r\nx", 3), ("0\r\n\r\n", 5), ("\r\n", 0)] {
            var examination = RequestExamination()
            for chunk in Array((wire + excess).utf8).chunks(of: size) { examination.read(chunk.span.bytes) }
            let explanation = examination.finish()
            #expect(explanation.parts.map(\.name) == ["a", "b"])
            // Servers ignore an empty line.
            #expect(explanation.problems.map(\.code) == (count == 0 ? [] : [.malformedChunk]))
            guard let finding = explanation.findings.first else { continue }
            #expect(finding.offset == Int64(Self.form.utf8.count))
            #expect(finding.message.hasPrefix("\(count) bytes follow"))
        }
    }

    @Test(arguments: [
        "5\r\n--XX", "zz\r\n", "4\r\n--XX0\r\n", "4\n--XX\r\n0\r\n\r\n", "5\r\n--XX\r\n0\r\n\r\n",
        "4x\r\n--XX\r\n0\r\n\r\n",
        "4\r\n--XX\r\r\n0\r\n\r\n", "4\r\n--XX\r\n0\r\n", "FFFFFFFFFFFFFFFFFF\r\n",
    ])
    func `chunks that break off or are malformed are the root cause`(chunks: String) {
        var examination = RequestExamination()
        let head =
            "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\nTransfer-Encoding: chunked\r\n\r\n"
        examination.read(Array((head + chunks).utf8).span.bytes)
        #expect(examination.finish().problems.first?.code == .malformedChunk)
    }
}

extension [UInt8] {
    fileprivate func chunks(of size: Int) -> [ArraySlice<UInt8>] {
        stride(from: 0, to: count, by: size).map { self[$0..<Swift.min($0 + size, count)] }
    }
}
