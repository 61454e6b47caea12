import PostcardForm
import Testing

@Suite("The parser")
struct FormParserTests {
    /// A form of one part with a header and the content `1`.
    private static func form(_ header: String...) -> String {
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

    @Test
    func `retired and forbidden ways of writing a header are warned of`() throws {
        let header =
            #"Content-Disposition: form-data; name="\#u{61}"; size=1; name*=utf-8''b"# + "\r\n"
            + "Content-Transfer-Encoding: base64\r\nContent-Type: a/b;\r\n c=d\r\n\te=f\r\n\r\n"
        var parser = try FormParser(boundary: "XX")
        var position = 0
        let event = try parser.nextEvent(in: Array(("--XX\r\n" + header).utf8).span.bytes, at: &position)
        guard case .partBegan(let part) = event else {
            Issue.record("no part began")
            return
        }
        #expect(
            part.warnings.map(\.code) == [
                .ignoredParameter, .foldedHeaderLine, .contentTransferEncoding,
            ])
        let beforeFold = header.split(separator: " c=d", maxSplits: 1)[0]
        #expect(part.warnings.map(\.offset)[1] == Int64(beforeFold.utf8.count + 6))
        #expect(part.fields.map(\.name).first == "Content-Disposition")
    }

    private static let extendedFilenames: [(parameters: String, warning: FormProblem.Code)] = [
        ("filename*=utf-8''a.jpg", .extendedFilename), ("filename=a.jpg; filename*=utf-8''a.jpg", .extendedFilename),
        ("filename=a.jpg; filename*=utf-8''%zz", .ignoredParameter),
    ]

    @Test(arguments: extendedFilenames)
    func `a filename* is warned of, whether it names the file alone, or again, or cannot be read`(
        parameters: String, warning: FormProblem.Code
    ) throws {
        let part = try Self.part("name=a; \(parameters)")
        #expect(part.filename == "a.jpg")
        #expect(part.warnings.map(\.code) == [warning])
    }

    /// The header of a part whose Content-Disposition has these parameters.
    private static func part(_ parameters: String) throws -> PartHeader {
        var parser = try FormParser(boundary: "XX")
        let form = Array("--XX\r\nContent-Disposition: form-data; \(parameters)\r\n\r\n".utf8)
        var position = 0
        guard case .partBegan(let part)? = try parser.nextEvent(in: form.span.bytes, at: &position) else {
            throw NoPart()
        }
        return part
    }

    private struct NoPart: Error {}

    private static let unescapedBackslashes: [(parameters: String, offset: Int64?)] = [
        (#"name="a\""#, 38), (#"name="a"; filename="\b\""#, 48), (#"filename=b\; name="a\""#, 51),
        (#"name="a\b"; filename="c""#, nil), (#"name="a\\""#, nil), (#"name="a"; filename=b\"#, nil),
        (#"name="a\"; b=\"c""#, nil),
    ]

    @Test(arguments: unescapedBackslashes)
    func `a name that ends in a backslash is warned of where nothing escapes it`(parameters: String, offset: Int64?)
        throws
    {
        let part = try Self.part(parameters)
        #expect(part.warnings.map(\.code) == (offset == nil ? [] : [.unescapedBackslash]))
        #expect(part.warnings.first?.offset == offset)
    }

    /// Parameters of a file, its filename, and the one that was sent if it has more.
    private static let sentFilenames: [(parameters: String, filename: String, sent: String?)] = [
        (#"filename="a.jpg""#, "a.jpg", nil), (#"filename="trip/day1/a.jpg""#, "a.jpg", "trip/day1/a.jpg"),
        (#"filename="C:\photos\a.jpg""#, "a.jpg", #"C:\photos\a.jpg"#), (#"filename="100%.jpg""#, "100%.jpg", nil),
        (#"filename="d%22/e%22.jpg""#, "e\".jpg", "d\"/e\".jpg"),
        (#"filename="dir/""#, "", "dir/"), (#"filename="""#, "", nil),
        (#"filename*=UTF-8''a%2Fb.jpg"#, "b.jpg", "a/b.jpg"),
        (#"filename="x/b.jpg"; filename*=UTF-8''a%2Fb.jpg"#, "b.jpg", "a/b.jpg"),
        (#"filename=a/b.jpg"#, "b.jpg", "a/b.jpg"),
        (#"filename="여행/a.jpg""#, "a.jpg", "여행/a.jpg"), (#"filename="x/a\""#, "a\\", "x/a\\"),
    ]

    @Test(arguments: sentFilenames)
    func `a filename is kept as it was sent, with its path`(parameters: String, filename: String, sent: String?) throws
    {
        let part = try Self.part("name=a; \(parameters)")
        #expect(part.filename == filename)
        #expect(part.sentFilename == sent)
    }

    /// Names in ISO-8859-1 and, of one euro sign, in Windows-1252; and what is left of them.
    private static let otherCharsets: [(name: [UInt8], repaired: String)] = [
        (Array("caf".utf8) + [0xE9], "caf\u{FFFD}"), ([0x80], "\u{FFFD}"),
    ]

    @Test(arguments: otherCharsets)
    func `a name that is not UTF-8 is repaired, with a warning`(name: [UInt8], repaired: String) throws {
        var parser = try FormParser(boundary: "XX")
        let form = Array("--XX\r\nContent-Disposition: form-data; name=\"".utf8) + name + Array("\"\r\n\r\n".utf8)
        var position = 0
        guard case .partBegan(let part) = try parser.nextEvent(in: form.span.bytes, at: &position) else {
            Issue.record("no part began")
            return
        }
        #expect(part.name == repaired)
        #expect(part.warnings.map(\.code) == [.nameNotUTF8])
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

    /// A limit as the form below just keeps to it, and the code, the offset and the part where it is one less.
    struct Limit: Sendable {
        let name: String
        let set: @Sendable (inout FormLimits, _ value: Int64) -> Void
        let value: Int64
        let code: FormProblem.Code
        let offset: Int64
        var part: Int?
    }

    static let limits = [
        Limit(name: "body", set: { $0.maximumBodyBytes = $1 }, value: 149, code: .bodyTooLarge, offset: 148),
        Limit(name: "parts", set: { $0.maximumParts = Int($1) }, value: 2, code: .tooManyParts, offset: 73),
        Limit(name: "field", set: { $0.maximumFieldBytes = $1 }, value: 5, code: .fieldTooLarge, offset: 62, part: 0),
        Limit(name: "file", set: { $0.maximumFileBytes = $1 }, value: 3, code: .fileTooLarge, offset: 129, part: 1),
        Limit(
            name: "header", set: { $0.maximumHeaderBytes = Int($1) }, value: 56, code: .headerTooLarge, offset: 126,
            part: 1),
        Limit(
            name: "fields", set: { $0.maximumHeaderFields = Int($1) }, value: 1, code: .tooManyHeaderFields, offset: 16,
            part: 0),
        Limit(name: "preamble", set: { $0.maximumPreambleBytes = $1 }, value: 8, code: .preambleTooLarge, offset: 7),
        Limit(name: "epilogue", set: { $0.maximumEpilogueBytes = $1 }, value: 9, code: .epilogueTooLarge, offset: 148),
    ]

    /// Its first header has 42 bytes; its second has 54 and is padded by two.
    private static let formAtLimits =
        "preamble\r\n--XX\r\nContent-Disposition: form-data; name=a\r\n\r\n12345\r\n--XX  \r\n"
        + "Content-Disposition: form-data; name=b; filename=c\r\n\r\n123\r\n--XX-- \r\nepilogue"

    @Test(arguments: limits)
    func `each limit is kept to the byte, and has a code of its own`(limit: Limit) {
        var limits = FormLimits()
        limit.set(&limits, limit.value)
        #expect(Reading.all(of: Self.formAtLimits, limits: limits).last == .complete)
        limit.set(&limits, limit.value - 1)
        #expect(
            Reading.all(of: Self.formAtLimits, limits: limits).last
                == .problem(limit.code, offset: limit.offset, part: limit.part))
    }

    @Test
    func `of a body that is too large, the content up to the limit is passed on, and none of the rest`() {
        var limits = FormLimits()
        limits.maximumBodyBytes = 60
        #expect(
            Reading.all(of: Self.formAtLimits, limits: limits) == [
                .part(name: "a", filename: nil, contentType: nil, offset: 16), .content(Array("12".utf8)),
                .problem(.bodyTooLarge, offset: 60, part: 0),
            ])
        limits.maximumBodyBytes = 100
        #expect(
            Reading.all(of: Self.formAtLimits, limits: limits).last == .problem(.bodyTooLarge, offset: 100, part: 1))
    }

    @Test
    func `the limits that a receiver does not set are those of the documentation`() {
        var limits = FormLimits()
        limits.maximumBodyBytes = 4_294_967_296
        limits.maximumParts = 1000
        limits.maximumFileBytes = 4_294_967_296
        limits.maximumFieldBytes = 1_048_576
        limits.maximumHeaderBytes = 16_384
        limits.maximumHeaderFields = 64
        limits.maximumPreambleBytes = 8192
        limits.maximumEpilogueBytes = 8192
        #expect(FormLimits() == limits)
        limits.maximumBodyBytes = 16_777_216
        limits.maximumFileBytes = 16_777_216
        #expect(FormLimits.inMemory == limits)
    }

    @Test
    func `padding alone goes over the header's limit too`() {
        var limits = FormLimits()
        limits.maximumHeaderBytes = 3
        #expect(Reading.all(of: "--XX    \r\n", limits: limits).last == .problem(.headerTooLarge, offset: 7, part: 0))
        limits.maximumEpilogueBytes = 3
        #expect(Reading.all(of: "--XX--   ", limits: limits).last == .complete)
        #expect(Reading.all(of: "--XX--    ", limits: limits).last == .problem(.epilogueTooLarge, offset: 9, part: nil))
    }
}
