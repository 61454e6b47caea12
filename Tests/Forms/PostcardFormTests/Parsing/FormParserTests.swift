import PostcardForm
import Testing

@Suite("The parser")
struct FormParserTests {
    /// A form of one part with a header and the content `1`.
    static func form(_ header: String...) -> String {
        "--XX\r\n" + header.map { $0 + "\r\n" }.joined() + "\r\n1\r\n--XX--\r\n"
    }

    /// What follows `Content-Disposition: form-data`, and the name and filename that it gives.
    static let dispositions: [(parameters: String, name: String, filename: String?)] = [
        (#"; name="a""#, "a", nil),
        (#";name="a";filename="b.jpg""#, "a", "b.jpg"),
        (#"; filename="b.jpg"; name="a""#, "a", "b.jpg"),
        (#"; NAME="a"; FileName="b.jpg""#, "a", "b.jpg"),
        (#"; name=a; filename=b.jpg"#, "a", "b.jpg"),
        (#"; name="a"; filename="""#, "a", ""),
        (#"; name="a" ; filename="b.jpg" ; "#, "a", "b.jpg"),
        (#"; name="a;b=c"; filename="x;y.jpg""#, "a;b=c", "x;y.jpg"),
        (#"; name="pet[0][이름]"; filename="제주 바다.jpg""#, "pet[0][이름]", "제주 바다.jpg"),
        (#"; name=이름; filename=초코.jpg"#, "이름", "초코.jpg"),
        (#"; name="a%22b%0D%0Ac%0d%0a%20%2"; filename="%22.jpg""#, "a\"b\r\nc\r\n%20%2", "\".jpg"),
        (#"; name=a%22b"#, "a%22b", nil),
        (#"; name="a\"b\\c\d""#, #"a"b\c\d"#, nil),
        (#"; name="a"; filename="C:\photos\cat.jpg""#, "a", "cat.jpg"),
        (#"; name="a"; filename="\\server\photos\cat.jpg""#, "a", "cat.jpg"),
        (#"; name="a\b"; filename=C:\photos\cat.jpg"#, "a\\b", "cat.jpg"),
        (#"; name="a\\"; filename="a\\b\\""#, "a\\", "a\\b\\"),
        (#"; name="a\\%22"; filename="../a\\b""#, "a\\\"", "a\\b"),
        (#"; name="a"; filename="a\\b"; filename*=utf-8''a%5Cb"#, "a", "b"),
        (#"; name="a"; filename="C:\photos\""#, "a", #"photos\"#),
        (#"; name="a"; filename=b\; filename*=utf-8''b%5C"#, "a", #"b\"#),
        (#"; name="a"; filename="../../etc/passwd""#, "a", "passwd"),
        (#"; name="a"; filename="photos/""#, "a", ""),
        (#"; name="a"; filename*=UTF-8''%ec%b4%88%EC%BD%94.jpg"#, "a", "초코.jpg"),
        (#"; name="a"; filename*=iso-8859-1'en'caf%E9.jpg"#, "a", "café.jpg"),
        (#"; name="a"; filename*=utf-8''caf%C3%A9"#, "a", "café"),
        (#"; name="a"; filename*=utf-8''it's.jpg"#, "a", "it's.jpg"),
        (#"; name="a"; filename="초코.jpg"; filename*=utf-8''%EC%B4%88%EC%BD%94.jpg"#, "a", "초코.jpg"),
        (
            #"; name="a"; filename="=?utf-8?B?7LSI7L2ULmpwZw==?="; filename*=utf-8''%EC%B4%88%EC%BD%94.jpg"#, "a",
            "초코.jpg"
        ),
        (#"; name="a"; filename="b.jpg"; filename*=utf-8''%zz"#, "a", "b.jpg"),
        (#"; name="a"; filename="b.jpg"; filename*=utf-8''b%2"#, "a", "b.jpg"),
        (#"; name="a"; size=3; filename="b.jpg""#, "a", "b.jpg"),
        (#"; name="a"; creation-date="today""#, "a", nil),
        // Parameters whose names differ from `name` in one letter.
        (#"; name="a"; game="b"; nome="c""#, "a", nil),
    ]

    @Test(arguments: dispositions)
    func `names and filenames are what their sender meant`(parameters: String, name: String, filename: String?) {
        let readings = Reading.all(of: Self.form("Content-Disposition: form-data" + parameters))
        #expect(readings.first == .part(name: name, filename: filename, contentType: nil, offset: 6))
        #expect(readings.last == .complete)
    }

    /// What browsers write of names that end in a backslash, which they never escape; and what others write of quotes,
    /// which looks similar.
    static let backslashes: [(parameters: String, name: String, filename: String?)] = [
        (#"; name="a\""#, #"a\"#, nil),
        (#"; name="\""#, #"\"#, nil),
        (#"; name="a\"; filename="b.jpg""#, #"a\"#, "b.jpg"),
        (#"; name="a\" ;; filename="b\" ; "#, #"a\"#, #"b\"#),
        (#"; name="a"; filename="b\""#, "a", #"b\"#),
        (#"; name="a\"; filename="""#, #"a\"#, ""),
        (#"; name="a\"; filename=";""#, #"a\"#, ";"),
        (#"; name="a\"; filename="; b=c""#, #"a\"#, "; b=c"),
        (#"; name="\\a\b\"; filename="C:\photos\cat.jpg""#, #"\\a\b\"#, "cat.jpg"),
        (#"; name="a\%22b\"; filename="c"; filename*=utf-8''c"#, #"a\"b\"#, "c"),
        // Old versions of Firefox escaped quotes and no backslashes.
        (#"; name="a\"b"; filename="c\""#, #"a"b"#, #"c\"#),
        (#"; name="a\";b"; filename="c\""#, #"a";b"#, #"c\"#),
        (#"; name="a\"; =b"; filename="c\""#, #"a"; =b"#, #"c\"#),
        (#"; name="a\"b\""#, #"a"b\"#, nil),
        // Quoted strings of RFC 9110, in which a name holds what looks like its end.
        (#"; name="a\"; b=\"c""#, #"a"; b="c"#, nil),
        (#"; name="a\"; filename=\"b"; filename="c""#, #"a"; filename="b"#, "c"),
        (#"; name="a\"; b=c""#, #"a"; b=c"#, nil),
        (#"; name="a\"; b=""#, #"a"; b="#, nil),
        (#"; name="a\";"; filename="\"""#, #"a";"#, "\""),
        (#"; name="a\\"; filename="b\\""#, #"a\"#, #"b\"#),
    ]

    @Test(arguments: backslashes)
    func `a backslash at a name's end is part of it, unless the header is well-formed otherwise`(
        parameters: String, name: String, filename: String?
    ) {
        let readings = Reading.all(of: Self.form("Content-Disposition: form-data" + parameters))
        #expect(readings.first == .part(name: name, filename: filename, contentType: nil, offset: 6))
        #expect(readings.last == .complete)
    }

    /// Headers that are read although they are written unusually, and the Content-Type that they give.
    static let headers: [(header: [String], contentType: String?)] = [
        (["content-disposition:form-data;name=a", "CONTENT-TYPE:\t image/jpeg \t"], "image/jpeg"),
        (["Content-Disposition: FORM-DATA; name=a"], nil),
        (
            ["Content-Disposition: form-data;", "\tname=a", "Content-Type: text/plain;", "  charset=utf-8"],
            "text/plain;    charset=utf-8"
        ),
        (["X-Empty:", "Content-Disposition: form-data; name=a", "Content-Type:"], ""),
        (["X-Empty: ", "Content-Disposition: form-data; name=a", "Content-Type: \t"], ""),
    ]

    @Test(arguments: headers)
    func `header fields are read in any case and order, folded or not`(lines: [String], contentType: String?) {
        let readings = Reading.all(of: "--XX\r\n" + lines.joined(separator: "\r\n") + "\r\n\r\n1\r\n--XX--")
        #expect(
            readings == [
                .part(name: "a", filename: nil, contentType: contentType, offset: 6), .content([0x31]), .partEnded,
                .complete,
            ])
    }

    /// Headers that are refused, with what and where: the offset is counted from the header's start, 6.
    static let refusedHeaders: [(header: String, code: FormProblem.Code, offset: Int64)] = [
        ("", .missingContentDisposition, 6),
        ("Content-Type: text/plain\r\n", .missingContentDisposition, 6),
        (" Content-Disposition: form-data; name=a\r\n", .malformedHeaderField, 6),
        ("Content-Disposition: form-data; name=a\r\nno colon\r\n", .malformedHeaderField, 46),
        (": form-data\r\n", .malformedHeaderField, 6),
        ("Content-Disposition : form-data; name=a\r\n", .malformedHeaderField, 6),
        ("Content-Disposition: form-data; name=a\n\r\n", .bareLineBreak, 44),
        ("Content-Disposition: form-data;\rname=a\r\n", .bareLineBreak, 37),
        ("Content-Disposition: form-data; name=a\u{0}\r\n", .nulInHeader, 44),
        (
            "Content-Disposition: form-data; name=a\r\nContent-Disposition: form-data; name=b\r\n",
            .duplicateContentDisposition, 46
        ),
        (
            "Content-Type: image/png\r\nContent-Disposition: form-data; name=a\r\nContent-Type: image/jpeg\r\n",
            .duplicatePartContentType, 71
        ),
        (
            "Content-Disposition: form-data; name=a\r\ncontent-type: image/png\r\nContent-Type: image/png\r\n",
            .duplicatePartContentType, 71
        ),
        ("Content-Disposition: attachment; name=a\r\n", .dispositionNotFormData, 6),
        ("Content-Disposition:\r\n", .dispositionNotFormData, 6),
        ("Content-Disposition: form-data\r\n", .missingName, 6),
        ("Content-Type: a/b\r\nContent-Disposition: form-data\r\n", .missingName, 25),
        ("Content-Disposition: form-data; filename=a\r\n", .missingName, 6),
        ("Content-Disposition: form-data; name*=utf-8''a\r\n", .missingName, 6),
        ("Content-Disposition: form-data; name=\"\"\r\n", .emptyName, 38),
        ("Content-Disposition: form-data; name=\"a\r\n", .malformedParameter, 43),
        ("Content-Disposition: form-data; name=\r\n", .malformedParameter, 43),
        ("Content-Disposition: form-data; name\r\n", .malformedParameter, 42),
        ("Content-Disposition: form-data; name=a; =b\r\n", .malformedParameter, 46),
        ("Content-Disposition: form-data; name=\"a\"b\r\n", .malformedParameter, 46),
        ("Content-Disposition: form-data;\r\n name=\"a\" b\r\n", .malformedParameter, 49),
        ("Content-Disposition: form-data; name=\"a\\\"b\r\n", .malformedParameter, 43),
        ("Content-Disposition: form-data; name=\"a\\\"; b\r\n", .malformedParameter, 43),
        ("Content-Disposition: form-data; name=\"a\\\"; =b\r\n", .malformedParameter, 43),
        ("Content-Disposition: form-data; name=\"\\\"a\\\\\"b\"\r\n", .malformedParameter, 50),
        ("Content-Disposition: form-data; name=a; name=a\r\n", .duplicateParameter, 46),
        ("Content-Disposition: form-data; name=a; filename=b; filename=c\r\n", .duplicateParameter, 58),
        (
            "Content-Disposition: form-data; name=a; filename=b.txt; filename*=utf-8''b.php\r\n",
            .contradictingFilenames, 62
        ),
        (
            "Content-Disposition: form-data; name=a; filename=\"=?utf-8??B?YQ==?=\"; filename*=utf-8''a\r\n",
            .contradictingFilenames, 76
        ),
        ("Content-Disposition: form-data; name=a; filename*=utf-8''%zz\r\n", .malformedParameter, 46),
        ("Content-Disposition: form-data; name=a; filename*=utf-8''a%2\r\n", .malformedParameter, 46),
        ("Content-Disposition: form-data; name=a; filename*0=a; filename*1=b\r\n", .malformedParameter, 46),
        ("Content-Disposition: form-data; name=a; x=y; filename*0=a\r\n", .malformedParameter, 51),
        ("Content-Disposition: form-data; name=a; filename*=utf-8''a.php%00.jpg\r\n", .nulInHeader, 46),
    ]

    @Test(arguments: refusedHeaders)
    func `a header that two receivers could read differently is refused`(
        header: String, code: FormProblem.Code, offset: Int64
    ) {
        let readings = Reading.all(of: "--XX\r\n" + header + "\r\n1\r\n--XX--")
        #expect(readings == [.problem(code, offset: offset, part: 0)])
    }

    @Test
    func `sixteen parameters are read, and one more is refused`() {
        let sixteen = "Content-Disposition: form-data; name=a" + (2...16).map { "; x\($0)=1" }.joined()
        #expect(Reading.all(of: Self.form(sixteen)).last == .complete)
        let offset = Int64("--XX\r\n\(sixteen); ".utf8.count)
        #expect(
            Reading.all(of: Self.form(sixteen + "; x17=1")) == [.problem(.malformedParameter, offset: offset, part: 0)])
    }

    /// What surrounds a part `a` with the content `1`.
    static let frames: [(before: String, after: String)] = [
        ("--XX\r\n", "\r\n--XX--\r\n"),
        ("--XX\r\n", "\r\n--XX--"),
        ("--XX \t\r\n", "\r\n--XX-- \t\r\n"),
        ("\r\n--XX\r\n", "\r\n--XX--\r\n\r\n"),
        ("preamble\r\n--XX\r\n", "\r\n--XX--\r\nepilogue\r\n--XX\r\n"),
        ("--XXY\r\n--XX-\r\n--XX\r\n", "\r\n--XX--\n"),
    ]

    @Test(arguments: frames)
    func `padding, preamble and epilogue are passed over`(before: String, after: String) {
        let form = before + "Content-Disposition: form-data; name=a\r\n\r\n1" + after
        let offset = Int64(before.utf8.count)
        #expect(
            Reading.all(of: form) == [
                .part(name: "a", filename: nil, contentType: nil, offset: offset), .content([0x31]), .partEnded,
                .complete,
            ])
    }

    @Test(arguments: 1...24)
    func `a line that differs from a delimiter in one character is content`(length: Int) {
        let boundary = String("abcdefghijklmnopqrstuvwx".prefix(length))
        let content = boundary.indices.map { "\r\n--\(boundary[..<$0])X\(boundary[$0...].dropFirst())" }.joined()
        let head = "\r\n--\(boundary)\r\nContent-Disposition: form-data; name=a\r\n\r\n"
        let readings = Reading.all(of: "\(head)\(content)\(head)\r\n--\(boundary)--", boundary: boundary)
        let whole = Reading.content(Array(content.utf8))
        #expect(readings.contains(whole))
        #expect(readings.last == .complete)
    }

    /// Bodies that are refused, with what, where and in which part.
    static let refusedBodies: [(body: String, code: FormProblem.Code, offset: Int64, part: Int?)] = [
        ("", .delimiterNotFound, 0, nil),
        ("name=value", .delimiterNotFound, 0, nil),
        ("XX\r\n", .delimiterNotFound, 0, nil),
        ("--XX", .truncated, 4, nil),
        ("--XX-", .truncated, 5, nil),
        ("--XX\r\n", .truncated, 6, 0),
        ("--XX\n", .bareLineBreak, 4, nil),
        ("--XX\r--", .bareLineBreak, 4, nil),
        ("--XX\r\r\n", .bareLineBreak, 4, nil),
        ("--XX \n", .bareLineBreak, 5, nil),
        ("--XX x\r\n", .malformedDelimiter, 5, nil),
        ("--XX-- x", .textAfterCloseDelimiter, 7, nil),
        ("--XX--\rx", .textAfterCloseDelimiter, 7, nil),
        ("--XX--\r\r\n", .textAfterCloseDelimiter, 7, nil),
        ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12", .truncated, 50, 0),
        ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12\r\n", .missingCloseDelimiter, 52, 0),
        ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12\r", .truncated, 51, 0),
        ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n", .truncated, 48, 0),
        ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12\r\n--XX", .truncated, 56, 0),
        ("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12\r\n--XX\n", .bareLineBreak, 56, 0),
    ]

    @Test(arguments: refusedBodies)
    func `a malformed body is refused at its first wrong byte`(
        body: String, code: FormProblem.Code, offset: Int64, part: Int?
    ) {
        #expect(Reading.all(of: body).last == .problem(code, offset: offset, part: part))
    }

    @Test
    func `an empty body has another message than one that lacks the boundary`() throws {
        var parser = try FormParser(boundary: "XX")
        let empty = #expect(throws: FormProblem.self) { try parser.finish() }
        #expect(empty?.message == "The body is empty.")
        parser = try FormParser(boundary: "XX")
        let body = Array("name=value".utf8)
        var position = 0
        _ = try parser.nextEvent(in: body.span.bytes, at: &position)
        let other = #expect(throws: FormProblem.self) { try parser.finish() }
        #expect(other?.message == "The Content-Type's boundary begins no line of the body's 10 bytes.")
    }

    @Test
    func `a form without parts is a form`() {
        #expect(Reading.all(of: "--XX--\r\n") == [.complete])
    }

    @Test
    func `what was thrown once is thrown again`() throws {
        var parser = try FormParser(boundary: "XX")
        let chunk = Array("--XX\n".utf8)
        var position = 0
        let problem = try #require(
            #expect(throws: FormProblem.self) { try parser.nextEvent(in: chunk.span.bytes, at: &position) })
        position = 0
        #expect(throws: problem) { try parser.nextEvent(in: chunk.span.bytes, at: &position) }
        #expect(throws: problem) { try parser.finish() }
    }

    @Test
    func `a limit that the end of a chunk goes over is thrown before the next chunk is there`() throws {
        var limits = FormLimits()
        limits.maximumFieldBytes = 2
        var parser = try FormParser(boundary: "XX", limits: limits)
        let chunk = Array("--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n123".utf8)
        var position = 0
        _ = try parser.nextEvent(in: chunk.span.bytes, at: &position)
        guard case .bytes(let bytes) = try parser.nextEvent(in: chunk.span.bytes, at: &position) else {
            Issue.record("no content came")
            return
        }
        #expect(bytes.count == 2)
        #expect(position == chunk.count)
        let problem = #expect(throws: FormProblem.self) { try parser.nextEvent(in: chunk.span.bytes, at: &position) }
        #expect(problem?.code == .fieldTooLarge)
    }

    /// Content-Type values, and the boundary or the code that they give.
    static let contentTypes: [(value: String, boundary: String?, code: FormProblem.Code?)] = [
        ("multipart/form-data; boundary=XX", "XX", nil),
        ("Multipart/Form-Data;BOUNDARY=\"X X\" ; charset=utf-8;", "X X", nil),
        ("multipart/form-data ; boundary=XX", "XX", nil),
        ("multipart/form-data; boundary=a=b:c/d?e", "a=b:c/d?e", nil),
        ("multipart/form-data; boundary=\(String(repeating: "x", count: 70))", String(repeating: "x", count: 70), nil),
        ("multipart/form-data; boundary=\(String(repeating: "x", count: 71))", nil, .invalidBoundary),
        ("multipart/form-data; boundary=\"\"", nil, .invalidBoundary),
        ("multipart/form-data; boundary=\"X \"", nil, .invalidBoundary),
        ("multipart/form-data; boundary=", nil, .malformedContentType),
        ("multipart/form-data; boundary=\"XX", nil, .malformedContentType),
        ("multipart/form-data; boundary=\"XX\\", nil, .malformedContentType),
        ("multipart/form-data; boundary", nil, .malformedContentType),
        ("multipart/form-data", nil, .missingBoundary),
        ("multipart/form-data; boundary=X; Boundary=Y", nil, .duplicateBoundary),
        ("multipart/form-data; boundary=X; Boundary=\"X\"", "X", nil),
        ("multipart/form-data; boundary=a@b", "a@b", nil),
        ("multipart/form-data; boundary=X; boundary*=utf-8''Y", nil, .duplicateBoundary),
        ("multipart/form-data; boundary*=utf-8''Y", nil, .malformedContentType),
        ("multipart/form-data; reply-separator=Y; boundary=X", "X", nil),
        ("multipart/form-data; boundary=é", nil, .invalidBoundary),
        ("multipart/mixed; boundary=XX", nil, .notFormData),
        ("application/x-www-form-urlencoded", nil, .notFormData),
        ("", nil, .missingContentType),
    ]

    @Test(arguments: contentTypes)
    func `the Content-Type must name one boundary`(value: String, boundary: String?, code: FormProblem.Code?) {
        do throws(FormProblem) {
            #expect(try FormParser(contentType: value).boundary == boundary)
        } catch {
            #expect(error.code == code)
            #expect(error.offset == 0)
        }
    }

    @Test(arguments: ["", "X ", "é", String(repeating: "x", count: 71)])
    func `a boundary that is known must be one that is allowed`(boundary: String) {
        let problem = #expect(throws: FormProblem.self) { try FormParser(boundary: boundary) }
        #expect(problem?.code == .invalidBoundary)
    }
}
