@testable import PostcardDoctor
import PostcardForm
import Testing

@Suite("A HAR file")
struct HTTPArchiveTests {
    private static let body = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nv\r\n--XX--\r\n"

    /// Arrays in each other.
    private static func nested(_ depth: Int) -> String {
        String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
    }

    /// An entry as a recorder writes one.
    static func entry(
        method: String = "POST", url: String = "https://example.com/pets?x=1#top",
        headers: [(String, String)] = [("Content-Type", "multipart/form-data; boundary=XX")], bodySize: Int? = nil,
        postData: String? = nil
    ) -> String {
        let fields = headers.map { #"{"name": "\#($0.0)", "value": "\#($0.1)"}"# }.joined(separator: ",")
        let size = bodySize.map { #", "bodySize": \#($0)"# } ?? ""
        let data = postData.map { #", "postData": \#($0)"# } ?? ""
        return #"{"startedDateTime": "2026-11-20T12:00:00Z", "request": {"method": "\#(method)", "url": "\#(url)", "#
            + #""httpVersion": "h2", "headers": [\#(fields)]\#(size)\#(data)}, "response": {"status": 400}}"#
    }

    static func archive(_ entries: String...) -> [UInt8] {
        Array(#"{"log": {"version": "1.2", "creator": {}, "entries": [\#(entries.joined(separator: ","))]}}"#.utf8)
    }

    static func postData(_ text: String, encoding: String? = nil) -> String {
        let escaped = text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\r\n", with: "\\r\\n")
        let encoding = encoding.map { #", "encoding": "\#($0)""# } ?? ""
        return #"{"mimeType": "multipart/form-data; boundary=XX", "text": "\#(escaped)"\#(encoding)}"#
    }

    @Test(arguments: [1, 100, 100_000])
    func `with one upload among other requests gives its bytes`(piece: Int) throws {
        let har = Self.archive(
            Self.entry(method: "GET", headers: []),
            Self.entry(
                headers: [(":authority", "example.com"), ("content-type", "multipart/form-data; boundary=XX")],
                bodySize: Self.body.utf8.count, postData: Self.postData(Self.body)))
        let read = try requestBytes(of: har, piece: piece)
        let head =
            "POST /pets?x=1 HTTP/1.1\r\ncontent-type: multipart/form-data; boundary=XX\r\n"
            + "Content-Length: \(Self.body.utf8.count)\r\n\r\n"
        #expect(String(decoding: read.bytes, as: UTF8.self) == head + Self.body)
        #expect(read.format == .httpArchive)
        #expect(read.remarks.isEmpty)
    }

    @Test
    func `with several uploads lists them, and gives the one that is asked for`() throws {
        let har = Self.archive(
            Self.entry(method: "GET", url: "https://example.com/", headers: []),
            Self.entry(url: "https://example.com/a", postData: Self.postData(Self.body)),
            Self.entry(url: "https://example.com/b", postData: Self.postData(Self.body)))
        do {
            _ = try requestBytes(of: har)
            Issue.record("Nothing was thrown.")
        } catch let error as InputError {
            #expect(error.code == .severalUploads)
            #expect(error.uploads == ["2  POST https://example.com/a", "3  POST https://example.com/b"])
        }
        #expect(try requestBytes(of: har, entry: 3).bytes.starts(with: "POST /b HTTP/1.1\r\n".utf8))
        let error = #expect(throws: InputError.self) { try requestBytes(of: har, entry: 4) }
        #expect(error?.code == .noEntry)
    }

    /// What an archive says of where a request was sent, and where it is sent again.
    static let addresses: [(url: String, headers: [(String, String)], sentTo: String)] = [
        ("https://example.com/pets?x=1#top", [], "https://example.com/pets?x=1"),
        ("https://example.com:8443/pets", [("Host", "other.example")], "https://example.com:8443/pets"),
        ("https://example.com/pets", [(":authority", "other.example")], "https://example.com/pets"),
        ("HTTP://example.com", [], "http://example.com/"),
        ("https://example.com#a/b", [], "https://example.com/"),
        ("https://name:password@example.com/", [], "https://example.com/"),
        ("/pets", [(":scheme", "https"), (":authority", "example.com")], "https://example.com/pets"),
        ("/pets", [(":authority", "other.example"), ("Host", "example.com")], "http://example.com/pets"),
        ("app://pets/a", [("Host", "example.com:443")], "https://example.com:443/a"),
        ("/pets", [], "http://127.0.0.1:8080/uploads"),
    ]

    @Test(arguments: addresses)
    func `says where the request is sent again`(url: String, headers: [(String, String)], sentTo: String) throws {
        let fields = headers + [("Content-Type", "multipart/form-data; boundary=XX")]
        let har = Self.archive(Self.entry(url: url, headers: fields, postData: Self.postData(Self.body)))
        var examination = InputExamination()
        try examination.read(har.span.bytes)
        #expect(try examination.finish().curl?.url == sentTo)
    }

    @Test
    func `may hold a form that was sent under another type`() throws {
        let har = Self.archive(
            Self.entry(method: "GET", headers: []),
            Self.entry(
                headers: [("Content-Type", "application/json")],
                postData: #"{"mimeType": "application/json", "text": "{}"}"#))
        #expect(try requestBytes(of: har).bytes.suffix(2).elementsEqual("{}".utf8))
    }

    /// Bodies that are no text, as recorders write them, and the bytes that are meant.
    static let binaryBodies: [(name: String, postData: String, bodySize: Int?, bytes: [UInt8])] = [
        ("base64", postData("/9j/4A==", encoding: "base64"), nil, [0xFF, 0xD8, 0xFF, 0xE0]),
        ("a character a byte", #"{"text": "\u00ff\u00d8A"}"#, 3, [0xFF, 0xD8, 0x41]),
        ("a character a byte, and no size", #"{"text": "\u00ff\u00d8A"}"#, nil, [0xFF, 0xD8, 0x41]),
        ("UTF-8", #"{"text": "é"}"#, 2, [0xC3, 0xA9]),
        ("UTF-8 beyond Latin-1", #"{"text": "초"}"#, nil, Array("초".utf8)),
    ]

    @Test(arguments: binaryBodies)
    func `gives the bytes that are meant`(name: String, postData: String, bodySize: Int?, bytes: [UInt8]) throws {
        let read = try requestBytes(of: Self.archive(Self.entry(bodySize: bodySize, postData: postData)))
        #expect(read.bytes.suffix(bytes.count).elementsEqual(bytes))
        #expect(read.remarks.isEmpty)
    }

    /// Bodies of which a recorder kept only a part.
    static let lossyBodies: [(postData: String, bodySize: Int?)] = [
        (postData(body), body.utf8.count + 5000), (#"{"text": "a\ufffdb"}"#, nil),
        (postData(body, encoding: "base64"), nil), (postData("/9j/4A", encoding: "base64"), nil),
    ]

    @Test(arguments: [
        #"{"text": ""}"#, #"{"mimeType": "multipart/form-data", "params": [{"name": "a"}]}"#, nil,
    ])
    func `without the body's bytes is judged by the head alone`(postData: String?) throws {
        for length in ["100", nil] {
            let fields =
                [("Content-Type", "multipart/form-data; boundary=XX")] + (length.map { [("Content-Length", $0)] } ?? [])
            let har = Self.archive(Self.entry(headers: fields, bodySize: -1, postData: postData))
            let head = String(decoding: try requestBytes(of: har, entry: 1).bytes, as: UTF8.self)
            #expect(head.contains("Content-Length") == (length != nil))
            var examination = InputExamination(entry: 1)
            try examination.read(har.span.bytes)
            let explanation = try examination.finish()
            #expect(explanation.problems.map(\.code) == [.bodyNotRecorded])
            #expect(explanation.fixable.isEmpty)
        }
    }

    @Test
    func `keeps a head's lines apart, whatever its texts hold`() throws {
        let har = Self.archive(
            Self.entry(
                method: #"POST\r\nA: 1"#, url: #"https://example.com/a b\r\nX: y"#,
                headers: [(#"C\r\nD"#, #"1\r\n2"#)], postData: Self.postData(Self.body)))
        let text = String(decoding: try requestBytes(of: har).bytes, as: UTF8.self)
        let head = text.prefix(text.count - Self.body.count)
        #expect(
            head
                == "POST  A: 1 /a%20b%0D%0AX:%20y HTTP/1.1\r\nC  D: 1  2\r\nContent-Length: \(Self.body.utf8.count)\r\n\r\n"
        )
    }

    @Test(arguments: lossyBodies)
    func `that lost bytes says so, and its length is not taken for a mistake of the sender`(
        postData: String, bodySize: Int?
    ) throws {
        let fields = [("Content-Type", "multipart/form-data; boundary=XX"), ("Content-Length", "\(bodySize ?? 99)")]
        let har = Self.archive(Self.entry(headers: fields, bodySize: bodySize, postData: postData))
        let read = try requestBytes(of: har)
        #expect(read.remarks.count == 1)
        var examination = InputExamination()
        try examination.read(har.span.bytes)
        let codes = try examination.finish().problems.map(\.code)
        #expect(!codes.contains(.contentLengthMismatch))
    }

    @Test
    func `without the content of files is no reason to say that they are empty`() throws {
        let form =
            "--XX\r\nContent-Disposition: form-data; name=\"p\"; filename=\"p.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
            + "\r\n--XX--\r\n"
        let fields = [("Content-Type", "multipart/form-data; boundary=XX")]
        for (size, codes) in [(form.utf8.count, ["empty-file"]), (form.utf8.count + 5000, [])] {
            let har = Self.archive(Self.entry(headers: fields, bodySize: size, postData: Self.postData(form)))
            var examination = InputExamination()
            try examination.read(har.span.bytes)
            #expect(try examination.finish().problems.map(\.code.rawValue) == codes)
        }
    }

    @Test
    func `without the content of files is no reason to say that they are smaller than a policy demands`() throws {
        // {"expiration":"2099-01-01T00:00:00Z","conditions":[["starts-with","$key",""],["content-length-range",1,1000]]}
        let policy =
            "eyJleHBpcmF0aW9uIjoiMjA5OS0wMS0wMVQwMDowMDowMFoiLCJjb25kaXRpb25zIjpbWyJzdGFy"
            + "dHMtd2l0aCIsIiRrZXkiLCIiXSxbImNvbnRlbnQtbGVuZ3RoLXJhbmdlIiwxLDEwMDBdXX0="
        let fields = ["key": "a", "policy": policy, "x-amz-signature": "a1b2"].sorted { $0.key < $1.key }
        let texts = fields.map { "--XX\r\nContent-Disposition: form-data; name=\"\($0)\"\r\n\r\n\($1)\r\n" }.joined()
        let form =
            texts + "--XX\r\nContent-Disposition: form-data; name=\"file\"; filename=\"p.jpg\"\r\n"
            + "Content-Type: image/jpeg\r\n\r\n\r\n--XX--\r\n"
        let head = [("Content-Type", "multipart/form-data; boundary=XX")]
        for (size, isKnown) in [(form.utf8.count, true), (form.utf8.count + 5000, false)] {
            let har = Self.archive(Self.entry(headers: head, bodySize: size, postData: Self.postData(form)))
            var examination = InputExamination()
            try examination.read(har.span.bytes)
            let codes = try examination.finish().problems.map(\.code)
            #expect(codes.contains(.sizeOutsidePolicy) == isKnown, "\(codes)")
        }
    }

    @Test
    func `keeps a Content-Length that disagrees with a whole body`() throws {
        let fields = [("Content-Type", "multipart/form-data; boundary=XX"), ("Content-Length", "7")]
        let har = Self.archive(
            Self.entry(headers: fields, bodySize: Self.body.utf8.count, postData: Self.postData(Self.body)))
        var examination = InputExamination()
        try examination.read(har.span.bytes)
        #expect(try examination.finish().findings.first?.code == .contentLengthMismatch)
    }

    @Test(arguments: ["12.5", "1e3", "\"62\"", "{}", "null"])
    func `may have a size that is no whole number`(json: String) throws {
        let har = String(
            decoding: Self.archive(Self.entry(bodySize: 77, postData: Self.postData(Self.body))), as: UTF8.self)
        let read = try requestBytes(of: Array(har.replacing("77", with: json).utf8))
        #expect(read.bytes.suffix(Self.body.utf8.count).elementsEqual(Self.body.utf8))
    }

    /// Inputs that begin as JSON, and the words that say what is wrong with them.
    static let noArchives: [(json: String, words: String)] = [
        (#"{"a": 1}"#, "\"log\""), (#"{"log": {"entries": 3}}"#, "log.entries"), ("{", "not JSON"),
        (#"{"log": {"entries": []}}"#, "None of the 0 requests"),
        (#"{"log": {"entries": [{"request": {"method": 3}}]}}"#, "request.method"),
        (#"{"[": \#(nested(511))}"#, "\"log\""), (#"{"\"[": \#(nested(512))}"#, "512 levels"),
    ]

    @Test(arguments: noArchives)
    func `that is none is refused with a reason`(json: String, words: String) throws {
        do {
            _ = try requestBytes(of: Array(json.utf8))
            Issue.record("Nothing was thrown.")
        } catch let error as InputError {
            #expect(error.description.contains(words), "\(error)")
        }
    }
}
