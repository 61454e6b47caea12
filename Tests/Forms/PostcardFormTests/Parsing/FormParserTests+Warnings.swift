import PostcardForm
import Testing

/// What is read, and warned of.
extension FormParserTests {
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
}
