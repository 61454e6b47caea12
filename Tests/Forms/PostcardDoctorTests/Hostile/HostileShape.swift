import Testing

/// An input that grows as a sender likes, and of which a careless reader looks at much again and again.
struct HostileShape: Sendable, CustomTestStringConvertible {
    let name: String
    /// What comes before the repetitions, what is repeated, and what follows.
    let start: String
    let unit: [UInt8]
    let end: String

    /// A request of repetitions.
    init(_ name: String, _ unit: String) {
        self.init(name, Self.head, unit)
    }

    init(_ name: String, _ start: String, _ unit: String, _ end: String = "") {
        self.init(name, start, bytes: Array(unit.utf8), end)
    }

    init(_ name: String, _ start: String, bytes unit: [UInt8], _ end: String = "") {
        self.name = name
        self.start = start
        self.unit = unit
        self.end = end
    }

    var testDescription: String { name }

    /// The input with about so many bytes.
    func bytes(_ count: Int) -> [UInt8] {
        let repeated = repeatElement(unit, count: max(count / unit.count, 1)).joined()
        return Array(start.utf8) + repeated + Array(end.utf8)
    }

    /// Two marks that a normal form sorts the other way.
    private static let marks = "\u{300}\u{316}"
    static let head = "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n"
    private static let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n"
    private static let file = "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"x\"\r\n\r\n"
    private static let disposition = "--b\r\nContent-Disposition: form-data"
    private static let chunked =
        "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=b\r\n"
        + "Transfer-Encoding: chunked\r\n\r\n"
    private static let trace = "=> Send header, 5 bytes (0x5)\n0000: 50 4f 53 54 20   POST \n"
    private static let archive =
        "{\"log\":{\"entries\":[{\"request\":{\"method\":\"POST\",\"url\":\"http://h/\","
        + "\"headers\":[{\"name\":\"Content-Type\",\"value\":\"multipart/form-data; boundary=b\"}],\"postData\":"
        + "{\"mimeType\":\"multipart/form-data\",\"text\":\""

    static func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    static let all = delimiters + headers + contents + framing

    private static let delimiters = [
        HostileShape("delimiters that no part follows", "--b\r\n"),
        HostileShape("delimiters that end in LF", "--b\n"),
        HostileShape("delimiters that end in CR", "--b\r"),
        HostileShape("delimiters and blank lines", "--b\r\n\r\n"),
        HostileShape("delimiters with blanks", "--b \r\n"),
        HostileShape("delimiters with text", "--b x\r\n"),
        HostileShape("delimiters without line breaks", head + part, "--b"),
        HostileShape("delimiters and names of fields without line breaks", "--bcontent-type"),
        HostileShape("delimiters behind text", head + part, "x--b\r\n"),
        HostileShape("delimiters between lines of content", head + part, "x\r\n--b\r\n"),
        HostileShape("one delimiter and blanks", head + part + "\r\n--b", " "),
        HostileShape("close delimiters", "--b--\r\n"),
        HostileShape("close delimiters with text", head + part, "\r\n--b--x"),
        HostileShape("close delimiters without line breaks", head + part, "--b--"),
        HostileShape("delimiters of another boundary", "--c\r\n"),
        HostileShape("parts of another boundary", "--c\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n"),
        HostileShape("delimiters without a head", "", "--b\r\n"),
        HostileShape("delimiters of three dashes", head + part, "\r\n---b\r\n"),
        HostileShape("boundaries and blanks", head + part, "b     "),
        HostileShape("boundaries and dashes", head + part, "b-----"),
        HostileShape("types of parts", head + part, "form-data "),
        HostileShape("headers of parts", head + part, "Content-Disposition: form-data\r\n"),
        HostileShape("lines of a preamble", "--c\r\n", "-\r\n", "--b\r\n"),
        HostileShape("folded lines of a head", "POST / HTTP/1.1\r\nA: b\r\n", " c\r\n", "\r\n--b"),
        HostileShape("dashes", "-"),
        HostileShape("lines of a dash", head + part, "\r\n-"),
    ]

    private static let headers = [
        HostileShape("parts of one byte", part + "x\r\n"),
        HostileShape("empty files", file + "\r\n"),
        HostileShape("a header without an end", head + "--b\r\n", "X: y\r\n"),
        HostileShape("headers of many fields", "--b\r\n" + repeated("X: y\r\n", 3_000) + "\r\nx\r\n"),
        HostileShape("headers of lines without colons", "--b\r\n" + repeated("X y\r\n", 3_000) + "\r\nx\r\n"),
        HostileShape("headers of blank lines", "--b\r\n" + repeated("\r\n", 9_000)),
        HostileShape("headers of folded lines", disposition + repeated(";\r\n a=b", 2_000) + "\r\n\r\nx\r\n"),
        HostileShape("headers of parameters", disposition + repeated("; a=b", 3_000) + "\r\n\r\nx\r\n"),
        HostileShape("headers of quotes", disposition + "; name=\"" + repeated("\\\"", 8_000) + "\"\r\n\r\nx\r\n"),
        HostileShape(
            "headers of control characters", disposition + "; name=\"" + repeated("\u{1}", 8_000) + "\"\r\n\r\n"),
        HostileShape("headers of percent signs", disposition + "; name*=utf-8''" + repeated("%41", 6_000) + "\r\n\r\n"),
        HostileShape("headers that end in LF", "--b\nContent-Disposition: form-data; name=\"a\"\n\nx\n"),
        HostileShape("names of marks", disposition + "; name=\"a" + repeated(marks, 3_000) + "\"\r\n\r\nx\r\n"),
        HostileShape(
            "filenames of marks",
            "--b\r\nContent-Disposition: form-data; name=\"a\"; filename=\"" + repeated(marks, 3_000)
                + "\"\r\n\r\nx\r\n"),
        HostileShape("a target of marks", "POST /", marks, " HTTP/1.1\r\n\r\n"),
        HostileShape("a field of marks", "POST / HTTP/1.1\r\nHost: a", marks, "\r\n\r\n"),
        HostileShape(
            "a boundary of marks", "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=a", marks,
            "\r\n\r\n--a"),
        HostileShape("texts of marks", head + part, marks),
        HostileShape("texts of a few marks", part + repeated(marks, 900) + "\r\n"),
        HostileShape("a head without an end", "POST / HTTP/1.1\r\n", "X: y\r\n"),
        HostileShape("a head of types", "POST / HTTP/1.1\r\n", "Content-Type: multipart/form-data\r\n", "\r\n--b"),
    ]

    private static let contents = [
        HostileShape("a JPEG of segments", head + file + "\u{0}", bytes: [0xFF, 0xD8, 0xFF, 0xE1, 0, 4, 1, 2]),
        HostileShape("bytes of 255", head + file, bytes: [0xFF]),
        HostileShape("line breaks", head + part, "\r\n"),
        HostileShape("carriage returns", "\r"),
        HostileShape("line feeds", "\n"),
        HostileShape("base64", "QUJD"),
        HostileShape("percent-encoding", "%2D%2Db%0D%0A"),
        HostileShape("brackets", "[{"),
    ]

    private static let framing = [
        HostileShape("chunks of a byte", chunked, "1\r\nx\r\n"),
        HostileShape("chunks of a delimiter", chunked, "5\r\n--b\r\n\r\n"),
        HostileShape("a chunk extension", chunked + "1;", "a"),
        HostileShape("blocks of a trace", trace, "=> Send data, 5 bytes (0x5)\n0000: 2d 2d 62 0d 0a   --b..\n"),
        HostileShape("notes of a trace", trace, "== Info: x\n"),
        HostileShape("empty lines of a trace", trace, "0000:\n"),
        HostileShape("escapes of a HAR", archive, "\\r\\n--b", "\"}}}]}}"),
        HostileShape("delimiters of a HAR", archive, "--b\\r\\n", "\"}}}]}}"),
        HostileShape(
            "marks in a URL of a HAR", "{\"log\":{\"entries\":[{\"request\":{\"method\":\"POST\",\"url\":\"http://h/a",
            marks, "\"}}]}}"),
        HostileShape(
            "names of marks in a HAR", "{\"log\":{\"entries\":[]", ",\"" + repeated("\\u0300\\u0316", 1_000) + "\":1",
            "}}"),
        HostileShape("brackets of a HAR", "{\"log\":", "[", ""),
    ]
}
