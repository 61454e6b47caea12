@testable import PostcardDoctor
import PostcardForm
import Testing

@Suite("A trace of curl's")
struct CurlTraceTests {
    private static let head = "POST /u HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n"

    /// What `--trace` writes of a block.
    static func hexadecimal(_ title: String, _ bytes: [UInt8]) -> String {
        var text = "=> Send \(title), \(bytes.count) bytes (0x\(String(bytes.count, radix: 16)))\n"
        for start in stride(from: 0, to: bytes.count, by: 16) {
            let row = bytes[start..<min(start + 16, bytes.count)]
            let digits = row.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) + " " }.joined()
            text += offset(start) + digits + String(repeating: " ", count: (16 - row.count) * 3)
            text += row.map(character).joined() + "\n"
        }
        return text
    }

    /// What `--trace-ascii` writes of one.
    static func characters(_ title: String, _ bytes: [UInt8]) -> String {
        var text = "=> Send \(title), \(bytes.count) bytes (0x\(String(bytes.count, radix: 16)))\n"
        var index = 0
        while index < bytes.count {
            text += offset(index)
            var width = 0
            while width < 64, index < bytes.count, !bytes[index...].starts(with: "\r\n".utf8) {
                text += character(bytes[index])
                index += 1
                width += 1
            }
            if bytes[index...].starts(with: "\r\n".utf8) { index += 2 }
            text += "\n"
        }
        return text
    }

    private static func offset(_ offset: Int) -> String {
        let digits = String(offset, radix: 16)
        return String(repeating: "0", count: max(4 - digits.count, 0)) + digits + ": "
    }

    private static func character(_ byte: UInt8) -> String {
        (0x20..<0x7F).contains(byte) ? String(UnicodeScalar(byte)) : "."
    }

    @Test(arguments: [1, 7, 64, 100_000])
    func `in hexadecimal digits gives every byte back, however it is cut`(piece: Int) throws {
        let body = (0...255).map { UInt8($0) } + Array("\r\n--XX--\r\n=> Send data, 1 bytes\n0000: 41".utf8)
        let trace =
            "== Info:   Trying 127.0.0.1:80...\n" + Self.hexadecimal("header", Array(Self.head.utf8))
            + Self.hexadecimal("data", Array(body[..<100])) + Self.hexadecimal("data", Array(body[100...]))
            + "<= Recv header, 2 bytes (0x2)\n0000: 0d 0a  ..\n"
        let read = try requestBytes(of: Array(trace.utf8), piece: piece)
        #expect(read.bytes == Array(Self.head.utf8) + body)
        #expect(read.format == .curlTrace)
        #expect(read.remarks.isEmpty)
    }

    @Test(arguments: [1, 7, 100_000])
    func `in characters keeps every offset, shows other bytes as dots, and says so`(piece: Int) throws {
        let long = String(repeating: "x", count: 64)
        let body = Array("\r\n--XX\r\n\(long)\r\n\(long)y\r\n\r\n.\n\t초\r\n--XX--".utf8)
        let trace = Self.characters("header", Array(Self.head.utf8)) + Self.characters("data", body)
        let read = try requestBytes(of: Array(trace.utf8), piece: piece)
        let dotted = String(decoding: body, as: UTF8.self).replacing("\n\t초", with: ".....")
            .replacing("..\r\n--XX--", with: "..\r\n--XX--")
        #expect(String(decoding: read.bytes, as: UTF8.self) == Self.head + dotted)
        #expect(read.bytes.count == Self.head.utf8.count + body.count)
        #expect(read.format == .curlTraceASCII)
        #expect(read.remarks.count == 1)
        #expect(read.remarks.first?.contains("--trace-ascii") == true)
    }

    /// Parts of forms, and the problems that a trace in characters shows of them too.
    static let certainProblems: [(name: String, parts: [(header: String, content: [UInt8])], codes: [String])] = [
        (
            "a picture, and names of the same length",
            [
                (
                    "name=\"p\"; filename=\"제주.jpg\"\r\nContent-Type: image/jpeg",
                    [0xFF, 0xD8, 0xFF, 0xDA, 0, 2] + [UInt8](repeating: 0xE7, count: 90) + [0xFF, 0xD9]
                ),
                (
                    "name=\"p\"; filename=\"서울.jpg\"\r\nContent-Type: image/jpeg",
                    [0xFF, 0xD8, 0xFF, 0xDA, 0, 2] + [UInt8](repeating: 0xE8, count: 90) + [0xFF, 0xD9]
                ),
            ], []
        ),
        ("bytes", [("name=\"b\"; filename=\"data\"", [UInt8](repeating: 0x80, count: 60))], []),
        (
            "a GIF, whose first bytes are letters",
            [("name=\"g\"; filename=\"g.png\"\r\nContent-Type: image/png", Array("GIF89a\u{1}\0\u{1}\0\0\0\0;".utf8))],
            ["content-contradicts-type"]
        ),
        (
            "an empty file", [("name=\"e\"; filename=\"e.jpg\"\r\nContent-Type: image/jpeg", [])], ["empty-file"]
        ),
        ("a word", [("name=\"w\"", Array("null".utf8))], ["null-text"]),
        // {"expiration":"2099-01-01T00:00:00Z","conditions":[["starts-with","$key","사진/"]]}
        (
            "a field that is what its policy demands",
            [
                ("name=\"key\"", Array("사진/1".utf8)), ("name=\"x-amz-signature\"", Array("a1b2".utf8)),
                (
                    "name=\"policy\"",
                    Array(
                        ("eyJleHBpcmF0aW9uIjoiMjA5OS0wMS0wMVQwMDowMDowMFoiLCJjb25kaXRpb25z"
                            + "IjpbWyJzdGFydHMtd2l0aCIsIiRrZXkiLCLsgqzsp4QvIl1dfQ==").utf8)
                ),
                ("name=\"file\"; filename=\"a.bin\"", Array("a".utf8)),
            ], []
        ),
    ]

    @Test(arguments: certainProblems)
    func `in characters is no reason for problems that the request does not have`(
        row: (name: String, parts: [(header: String, content: [UInt8])], codes: [String])
    ) throws {
        var body: [UInt8] = []
        for part in row.parts {
            body += Array("--XX\r\nContent-Disposition: form-data; \(part.header)\r\n\r\n".utf8) + part.content
            body += Array("\r\n".utf8)
        }
        body += Array("--XX--\r\n".utf8)
        let type = "Content-Type: multipart/form-data; boundary=XX"
        let head = Array("POST /u HTTP/1.1\r\nHost: a\r\n\(type)\r\nContent-Length: \(body.count)\r\n\r\n".utf8)
        for write in [Self.hexadecimal, Self.characters] {
            let trace = write("header", head) + write("data", body)
            var examination = InputExamination()
            let bytes = Array(trace.utf8)
            try examination.read(bytes.span.bytes)
            let codes = try examination.finish().problems.map(\.code.rawValue)
            #expect(codes == row.codes, "\(row.name)")
        }
    }

    @Test
    func `with times and numbers in front of its titles, and line ends of Windows, is read alike`() throws {
        let body = Array("--XX--\r\n".utf8)
        let plain = Self.hexadecimal("header", Array(Self.head.utf8)) + Self.hexadecimal("data", body)
        for prefix in ["11:07:14.386133 ", "[0-0] ", "11:07:14.386133 [0-x] "] {
            let trace = plain.replacing("=> ", with: prefix + "=> ").replacing("\n", with: "\r\n")
            let read = try requestBytes(of: Array(trace.utf8))
            #expect(read.bytes == Array(Self.head.utf8) + body)
            #expect(read.remarks.isEmpty)
        }
    }

    @Test
    func `of several requests gives the first with a body, or the one that is asked for`() throws {
        let first = Array("POST /1 HTTP/1.1\r\nContent-Length: 0\r\n\r\n".utf8)
        let second = Array("POST /2 HTTP/1.1\r\nExpect: 100-continue\r\n\r\n".utf8)
        let third = Array("POST /3 HTTP/1.1\r\n\r\n".utf8)
        let response = "<= Recv header, 12 bytes (0xc)\n0000: 48 54 54 50 2f 31 2e 31 20 32 30 30 HTTP/1.1 200\n"
        let trace =
            Self.hexadecimal("header", first) + response + Self.hexadecimal("header", second) + response
            + Self.hexadecimal("data", [1, 2]) + response + Self.hexadecimal("header", third)
            + Self.hexadecimal("data", [3]) + response
        let bytes = Array(trace.utf8)
        let chosen = try requestBytes(of: bytes)
        #expect(chosen.bytes == second + [1, 2])
        #expect(chosen.remarks == ["The trace has 3 requests; this is number 2. Choose another with --entry N."])
        #expect(try requestBytes(of: bytes, entry: 1).bytes == first)
        #expect(try requestBytes(of: bytes, entry: 2).bytes == second + [1, 2])
        #expect(try requestBytes(of: bytes, entry: 3).bytes == third + [3])
        let error = #expect(throws: InputError.self) { try requestBytes(of: bytes, entry: 4) }
        #expect(error?.code == .noEntry)
    }

    private static let form = Array("--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--XX--\r\n".utf8)

    private static func formHead(_ host: String) -> [UInt8] {
        let fields = "Host: \(host)\r\nContent-Type: multipart/form-data; boundary=XX\r\nContent-Length: \(form.count)"
        return Array("POST /u HTTP/1.1\r\n\(fields)\r\n\r\n".utf8)
    }

    private static func address(in trace: String, entry: Int? = nil) throws -> String? {
        var examination = InputExamination(entry: entry)
        let bytes = Array(trace.utf8)
        try examination.read(bytes.span.bytes)
        return try examination.finish().curl?.url
    }

    @Test(arguments: ["", "11:07:14.386133 ", "11:07:14.386133 [0-0] "])
    func `of a connection over TLS is sent again over TLS`(stamp: String) throws {
        let notes = ["SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384", "ALPN: curl offers http/1.1"]
        for write in [Self.hexadecimal, Self.characters] {
            let sent = (write("header", Self.formHead("a.example")) + write("data", Self.form))
                .replacing("=> ", with: stamp + "=> ")
            let trying = "\(stamp)== Info:   Trying 127.0.0.1:80...\n"
            #expect(try Self.address(in: trying + sent) == "http://a.example/u")
            for note in notes {
                let trace = "\(trying)\(stamp)== Info: \(note)\n\(sent)"
                #expect(try Self.address(in: trace) == "https://a.example/u")
            }
        }
    }

    @Test
    func `that changes to TLS between two requests is sent again as each of them was`() throws {
        let plain = Self.hexadecimal("header", Self.formHead("a.example")) + Self.hexadecimal("data", Self.form)
        let secure = Self.hexadecimal("header", Self.formHead("b.example")) + Self.hexadecimal("data", Self.form)
        let response = "<= Recv header, 12 bytes (0xc)\n0000: 48 54 54 50 2f 31 2e 31 20 33 30 37 HTTP/1.1 307\n"
        let note = "== Info: SSL connection using TLSv1.3 / TLS_AES_256_GCM_SHA384\n"
        let trace = plain + response + note + secure + response
        #expect(try Self.address(in: trace) == "http://a.example/u")
        #expect(try Self.address(in: trace, entry: 1) == "http://a.example/u")
        #expect(try Self.address(in: trace, entry: 2) == "https://b.example/u")
    }

    /// Traces that lost something, and whether that is noticed.
    static let damagedTraces = [
        hexadecimal("header", Array(head.utf8)) + "=> Send data, 40 bytes (0x28)\n0000: 41 42 AB\n",
        hexadecimal("header", Array(head.utf8)) + "=> Send data, 17 bytes (0x11)\n0010: 41 A\n",
        characters("header", Array(head.utf8)) + "=> Send data, 400 bytes (0x190)\n0000: AB\n0100: C\n",
        characters("header", Array(head.utf8)) + "=> Send data, 4 bytes (0x4)\n0000: ABCDEFGH\n",
    ]

    @Test(arguments: damagedTraces)
    func `that lost lines says that its bytes are not certain`(trace: String) throws {
        let read = try requestBytes(of: Array(trace.utf8))
        #expect(read.bytes.starts(with: Self.head.utf8))
        #expect(read.remarks.contains { $0.contains("not certain") })
    }

    @Test
    func `that holds no request says so`() {
        let error = #expect(throws: InputError.self) {
            try requestBytes(of: Array("== Info:   Trying 127.0.0.1:1...\n== Info: refused\n".utf8))
        }
        #expect(error?.code == .noUpload)
    }
}
