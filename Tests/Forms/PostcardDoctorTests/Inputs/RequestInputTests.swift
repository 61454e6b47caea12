@testable import PostcardDoctor
import PostcardForm
import Testing

/// Gives an input to a reader in pieces of a size, and puts together what it hands on.
func requestBytes(
    of input: [UInt8], entry: Int? = nil, piece: Int = .max
) throws -> (bytes: [UInt8], format: InputExamination.Format?, remarks: [String]) {
    var request = RequestInput(entry: entry)
    var bytes: [UInt8] = []
    for start in stride(from: 0, to: input.count, by: min(piece, max(input.count, 1))) {
        let chunk = Array(input[start..<min(start + min(piece, input.count), input.count)])
        try request.read(chunk.span.bytes) { span in span.withUnsafeBytes { bytes.append(contentsOf: $0) } }
    }
    try request.finish { span in span.withUnsafeBytes { bytes.append(contentsOf: $0) } }
    return (bytes, request.format, request.remarks)
}

@Suite("An input")
struct RequestInputTests {
    /// Inputs that are no request, and what the explanation calls them.
    static let foreignInputs: [(name: String, bytes: [UInt8], words: String)] = [
        ("nothing", [], "is empty"),
        ("line breaks", Array("\r\n\r\n".utf8), "text"),
        ("a JPEG", [0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10] + Array("JFIF".utf8), "image/jpeg"),
        ("a PNG", [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A, 0, 0, 0, 13], "image/png"),
        ("gzip", [0x1F, 0x8B, 0x08, 0, 0], "application/gzip"),
        ("an ELF file", [0x7F, 0x45, 0x4C, 0x46, 2, 1, 1, 0], "a program"),
        ("random bytes", [0x9A, 0x00, 0xF3, 0x12, 0x7E, 0xC0, 0x01, 0xFE, 0x44, 0x03], "not text"),
        ("bytes that are not UTF-8", [0x9A, 0xF3, 0x7E, 0xC0, 0xFE, 0x44, 0xB0, 0xB1], "not text"),
        ("a text", Array("Dear reader,\nthis is a letter.\n".utf8), "is text"),
        ("a text in Korean", Array("제주 바다에서 보내는 엽서\n안녕\n".utf8), "is text"),
        ("a response", Array("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".utf8), "response"),
        ("a TLS handshake", [0x16, 0x03, 0x01, 0x02, 0x00, 0x01], "encrypted"),
        ("HTTP/2", Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8), "HTTP/2"),
        ("curl -v", Array("*   Trying 1.2.3.4\n> POST / HTTP/1.1\n> Host: x\n>\n".utf8), "curl -v"),
        ("a JSON array", Array(#"[{"a": 1}]"#.utf8), "JSON"),
        ("a URL-encoded form", Array("name=a&photo=b".utf8), "urlencoded"),
        ("UTF-16", [0xFF, 0xFE, 0x50, 0x00, 0x4F, 0x00], "UTF-16"),
        ("a packet capture", [0xD4, 0xC3, 0xB2, 0xA1, 2, 0, 4, 0], "packet capture"),
        (
            "a body alone", Array("--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--XX--\r\n".utf8),
            "body alone"
        ),
    ]

    @Test(arguments: foreignInputs)
    func `that is no request is called by its name, however it is cut`(name: String, bytes: [UInt8], words: String)
        throws
    {
        for size in [1, 5, 4096] {
            var examination = InputExamination()
            for start in stride(from: 0, to: bytes.count, by: size) {
                try examination.read(bytes[start..<min(start + size, bytes.count)].span.bytes)
            }
            let explanation = try examination.finish()
            #expect(!explanation.isValid)
            #expect(explanation.findings.map(\.code) == [.malformedRequest])
            #expect(explanation.findings.first?.message.contains(words) == true, "\(explanation.findings)")
        }
    }

    @Test
    func `that is a body alone is answered with the option that explains it`() throws {
        var examination = InputExamination()
        let body = Array("--a1\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nx\r\n--a1--\r\n".utf8)
        try examination.read(body.span.bytes)
        let finding = try #require(try examination.finish().findings.first)
        #expect(finding.advice.contains("--content-type 'multipart/form-data; boundary=a1'"))
    }

    @Test(arguments: [
        "POST /\r\nHost: x\r\n\r\n", "POST\r\nHost: x\r\n\r\n", "post / http/1.1\nhost: x\n\n",
        "\r\nPOST / HTTP/1.1\r\nHost: x\r\n\r\n", "Host: x\r\nContent-Type: multipart/form-data\r\n\r\n",
    ])
    func `that is a request, though a broken one, is judged as one`(request: String) throws {
        var input = RequestInput()
        let bytes = Array(request.utf8)
        try input.read(bytes.span.bytes) { _ in }
        try input.finish { _ in }
        #expect(input.foreign == nil)
    }

    @Test
    func `that is a HAR file beyond the limit is refused with what to do`() throws {
        let archive = Array(#"{"log": {"entries": []}}"#.utf8) + [UInt8](repeating: 0x20, count: 1 << 20)
        var input = RequestInput(maximumArchiveBytes: archive.count)
        try input.read(archive.span.bytes) { _ in }
        let error = #expect(throws: InputError.self) { try input.read([0x20].span.bytes) { _ in } }
        #expect(error?.code == .malformedArchive)
        #expect(error?.description.contains("larger than 1 MiB") == true)
        #expect(error?.description.contains("curl --trace FILE") == true)
        #expect(throws: InputError.self) { try input.finish { _ in } }
    }

    private static let visit = "GET /form HTTP/1.1\r\nHost: x\r\n\r\n"
    private static let empty = "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n"
    private static let form = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nhi\r\n--XX--\r\n"
    private static let type = "Content-Type: multipart/form-data; boundary=XX\r\n"
    private static let post =
        "POST /1 HTTP/1.1\r\nHost: x\r\n\(type)Content-Length: \(form.utf8.count)\r\n\r\n\(form)"
    private static let chunked =
        "POST /2 HTTP/1.1\r\nHost: x\r\n\(type)Transfer-Encoding: chunked\r\n\r\n"
        + "\(String(form.utf8.count, radix: 16))\r\n\(form)\r\n0\r\n\r\n"
    private static let unframed = "POST /3 HTTP/1.1\r\nHost: x\r\n\(type)\r\n\(form)"

    /// Requests that follow each other, and which of them is read.
    static let sequences: [(requests: [String], entry: Int?, taken: Int)] = [
        ([visit, post], nil, 2), ([post, chunked], nil, 1), ([chunked, post], nil, 1),
        ([chunked, visit, visit], nil, 1), ([visit, empty, visit, chunked, post], nil, 4),
        ([visit, unframed], nil, 2), ([post, unframed], nil, 1),
        ([visit, visit, empty], nil, 3), ([post, visit], 2, 2), ([visit, post, chunked], 3, 3), ([visit, post], 1, 1),
        ([visit, "POST /cut HTTP/1.1\r\nHost: x\r\n"], nil, 2), ([post, "POST /cut HTTP/1.1\r\nHost"], nil, 1),
    ]

    @Test(arguments: sequences)
    func `of several requests gives the first with a form, or the one that is asked for`(
        requests: [String], entry: Int?, taken: Int
    ) throws {
        // Servers ignore empty lines between requests.
        for (piece, separator) in [(1, ""), (7, ""), (64, "\r\n"), (1, "\r\n\n"), (1000, ""), (1000, "\r\n")] {
            let bytes = Array(requests.joined(separator: separator).utf8)
            let read = try requestBytes(of: bytes, entry: entry, piece: piece)
            #expect(String(decoding: read.bytes, as: UTF8.self) == requests[taken - 1])
            #expect(
                read.remarks == [
                    "The input has \(requests.count) requests; this is number \(taken). Choose another with --entry N."
                ])
        }
    }

    @Test
    func `of several requests is explained as if it had only one`() throws {
        let wanted = Self.chunked.replacing("\"a\"\r\n\r\n", with: "\"a\"\n\r\n\n")
        for input in [Self.visit + wanted + Self.post, wanted + Self.visit] {
            var examination = InputExamination()
            let bytes = Array(input.utf8)
            try examination.read(bytes.span.bytes)
            let explanation = try examination.finish()
            #expect(explanation.problems.map(\.code) == [.bareLineBreak])
            #expect(explanation.parts.map(\.size) == [3])
        }
        var examination = InputExamination(entry: 3)
        let bytes = Array((Self.visit + Self.post).utf8)
        try examination.read(bytes.span.bytes)
        let error = #expect(throws: InputError.self) { try examination.finish() }
        #expect(error?.code == .noEntry)
    }

    @Test(arguments: [
        "hello\r\n", "\r\nhello\r\n", "POST /\r\n\r\n", "post / HTTP/1.1\r\n\r\n", "POST / FTP/1.1\r\n\r\n",
        "POST / HTTP/2\r\n\r\n", "POST / HTTP/1.1", String(repeating: "x", count: 9_000),
        "POST /\(String(repeating: "x", count: 9_000)) HTTP/1.1\r\n\r\n",
    ])
    func `that goes on without a request line is one request`(bytes: String) throws {
        for request in [Self.post, Self.chunked, Self.unframed, Self.visit] {
            let input = Array((request + bytes + Self.post).utf8)
            for piece in [1, 100, 100_000] {
                let read = try requestBytes(of: input, piece: piece)
                #expect(read.bytes == input)
                #expect(read.remarks.isEmpty)
            }
        }
    }

    @Test
    func `that is a request comes out as it went in`() throws {
        let bytes = Array("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc".utf8)
        for piece in [1, 16, 1000] {
            let read = try requestBytes(of: bytes, piece: piece)
            #expect(read.bytes == bytes)
            #expect(read.format == .request)
            #expect(read.remarks.isEmpty)
        }
    }
}
