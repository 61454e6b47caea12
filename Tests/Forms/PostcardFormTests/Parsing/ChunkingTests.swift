import PostcardForm
import Testing

@Suite("The way a body is cut does not matter")
struct ChunkingTests {
    /// Bodies with everything that a parser has to carry from one chunk to the next.
    static let bodies: [(about: String, body: String)] = [
        (
            "a text and a file",
            body(
                "--XX", #"Content-Disposition: form-data; name="이름""#, "", "초코", "--XX",
                #"Content-Disposition: form-data; name="picture"; filename="제주 바다.jpg""#, "Content-Type: image/jpeg",
                "", "\u{FF}\u{D8}\r\n\r\r\n--X\r\n--XXY\r\n--XX-\r\n--XX-\r\n-", "--XX--", "")
        ),
        (
            "preamble, padding, epilogue",
            body(
                "This is --XX", "--XX \t ", #"Content-Disposition: form-data; name="a""#, "", "", "--XX",
                #"content-disposition: form-data;"#, #" name="b""#, "", "--XX-- ", "and more", "--XX")
        ),
        (
            "line breaks alone",
            body(
                "--XX", #"Content-Disposition: form-data; name="a"; filename="""#, "",
                String(repeating: "\r\n\r\r\n\n", count: 20), "--XX--")
        ),
        (
            "a part without content, its delimiter straight behind the blank line",
            body(
                "--XX", #"Content-Disposition: form-data; name="a""#, "", "--XX",
                #"Content-Disposition: form-data; name="b""#, "", "--XX--")
        ),
        (
            "cut off in the content",
            body(
                "--XX", #"Content-Disposition: form-data; name="a""#, "", "one", "--X")
        ),
        ("cut off in the header", body("--XX", #"Content-Disposition: form-da"#)),
        ("lines that end in LF", "--XX\nContent-Disposition: form-data; name=\"a\"\n\none\n--XX--\n"),
        ("a lone CR in a header", body("--XX", "Content-Disposition: form-data;\r name=a", "", "", "--XX--")),
        ("text behind a delimiter", body("--XX", #"Content-Disposition: form-data; name="a""#, "", "1", "--XX no")),
        ("no form at all", #"{"name": "초코"}"#),
    ]

    @Test(arguments: bodies)
    func `whole, byte by byte, and split at every position`(about: String, text: String) {
        let bytes = Array(text.utf8)
        let whole = Reading.all(of: [bytes[...]], boundary: "XX")
        #expect(Reading.all(of: bytes.indices.map { bytes[$0...$0] }, boundary: "XX") == whole, "byte by byte")
        for split in 0...bytes.count {
            let readings = Reading.all(of: [bytes[..<split], bytes[split...]], boundary: "XX")
            #expect(readings == whole, "split at \(split)")
        }
    }

    @Test(arguments: bodies)
    func `split at two positions, with an empty chunk between`(about: String, text: String) {
        let bytes = Array(text.utf8)
        let whole = Reading.all(of: [bytes[...]], boundary: "XX")
        for first in stride(from: 0, through: bytes.count, by: 3) {
            for second in stride(from: first, through: bytes.count, by: 5) {
                let chunks = [bytes[..<first], bytes[first..<first], bytes[first..<second], bytes[second...]]
                #expect(Reading.all(of: chunks, boundary: "XX") == whole, "split at \(first) and \(second)")
            }
        }
    }

    @Test(arguments: bodies)
    func `every limit stops at the same byte`(about: String, text: String) {
        let bytes = Array(text.utf8)
        for most in [0, 1, 2, 5, 9, 40, 70, 100, 150] {
            for path in Self.byteLimits {
                var limits = FormLimits()
                limits[keyPath: path] = Int64(most)
                expectSame(bytes, limits)
            }
            var limits = FormLimits()
            limits.maximumHeaderBytes = most
            limits.maximumHeaderFields = most
            limits.maximumParts = most
            expectSame(bytes, limits)
        }
    }

    private static let byteLimits: [any WritableKeyPath<FormLimits, Int64> & Sendable] = [
        \.maximumBodyBytes, \.maximumFileBytes, \.maximumFieldBytes, \.maximumPreambleBytes, \.maximumEpilogueBytes,
    ]

    private func expectSame(_ bytes: [UInt8], _ limits: FormLimits) {
        let whole = Reading.all(of: [bytes[...]], boundary: "XX", limits: limits)
        let single = Reading.all(of: bytes.indices.map { bytes[$0...$0] }, boundary: "XX", limits: limits)
        #expect(single == whole)
    }

    /// With an epilogue, each delimiter begins in a block of positions that are compared together. Without an epilogue,
    /// most begin after the last whole block, at positions that are compared together with positions before them.
    private static let epilogues = ["", "\r\n" + String(repeating: "x", count: 100)]

    @Test(arguments: epilogues)
    func `delimiters are found wherever they stand among the bytes that are searched together`(epilogue: String) {
        for length in 0..<300 {
            let content = [UInt8](repeating: UInt8(ascii: "\r"), count: length)
            let form =
                Array("--XX\r\nContent-Disposition: form-data; name=a; filename=a\r\n\r\n".utf8) + content
                + Array("\r\n--XX--\(epilogue)".utf8)
            let expected: [Reading] =
                [.part(name: "a", filename: "a", contentType: nil, offset: 6)]
                + (length > 0 ? [.content(content)] : []) + [.partEnded, .complete]
            #expect(Reading.all(of: [form[...]], boundary: "XX") == expected)
        }
    }
}
