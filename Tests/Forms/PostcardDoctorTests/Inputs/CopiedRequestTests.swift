import Foundation
import PostcardDoctor
import Testing

@Suite struct CopiedRequestTests {
    private static func explained(_ text: String) throws -> (InputExamination, Explanation) {
        var examination = InputExamination()
        for byte in text.utf8 { try examination.read([byte].span.bytes) }
        let explanation = try examination.finish()
        return (examination, explanation)
    }

    private static let parts =
        "------b\r\nContent-Disposition: form-data; name=\"name\"\r\n\r\nit's \"쵸코\" $a!\r\n------b\r\n"
        + "Content-Disposition: form-data; name=\"img\"; filename=\"a.png\"\r\nContent-Type: image/png\r\n\r\n\r\n------b--\r\n"

    private static var escaped: String {
        parts.replacing("\\", with: "\\\\").replacing("'", with: "\\'").replacing("\r\n", with: "\\r\\n")
            .replacing("!", with: "\\u0021")
    }

    private static var json: String { String(decoding: (try? JSONEncoder().encode(parts)) ?? Data(), as: UTF8.self) }

    private static let copies: [(name: String, format: InputExamination.Format, text: String)] = [
        (
            "Chrome, for bash", .curlCommand,
            "curl 'https://a.example/pets?x=1' \\\n  -X 'PUT' \\\n  -H 'content-type: multipart/form-data; boundary=----b' \\\n"
                + "  -H 'content-length: 99' -H 'x: y' -b 'c=d' --compressed \\\n  --data-raw $'\(escaped)'\n"
        ),
        (
            "Firefox", .curlCommand,
            "curl 'https://a.example/pets?x=1' --compressed -X PUT -H 'Content-Type: multipart/form-data; boundary=----b' "
                + "--data-binary $'\(escaped)'"
        ),
        (
            "Chrome, for cmd", .curlCommand,
            "curl ^\"https://a.example/pets?x=1^\" ^\r\n  -X ^\"PUT^\" ^\r\n  -H ^\"content-type: multipart/form-data; "
                + "boundary=----b^\" ^\r\n  --data-raw ^\""
                + parts.replacing("\\", with: "\\\\").replacing("\"", with: "^\\^\"").replacing(
                    "\r\n", with: "^\r\n\r\n")
                + "^\""
        ),
        (
            "fetch", .fetchCall,
            "fetch(\"https://a.example/pets?x=1\", {\n  \"headers\": { \"content-type\": \"multipart/form-data; "
                + "boundary=----b\" },\n  \"body\": \(json),\n  \"method\": \"PUT\"\n});\n"
        ),
        (
            "Lambda", .lambdaEvent,
            "{\"path\": \"/pets\", \"httpMethod\": \"PUT\", \"headers\": {\"Content-Type\": \"multipart/form-data; "
                + "boundary=----b\", \"Host\": \"a.example\"}, \"isBase64Encoded\": true, \"body\": \""
                + Data(parts.utf8).base64EncodedString() + "\"}"
        ),
    ]

    @Test(arguments: copies.indices)
    func `a copied request is read as it was sent`(index: Int) throws {
        let (name, format, text) = Self.copies[index]
        let (examination, explanation) = try Self.explained(text)
        #expect(examination.format == format, "\(name)")
        #expect(explanation.isValid, "\(name): \(explanation.findings)")
        #expect(explanation.parts.map(\.name) == ["name", "img"], "\(name)")
        #expect(explanation.parts.first?.text == "it's \"쵸코\" $a!", "\(name)")
        #expect(explanation.curl?.url.hasPrefix("https://a.example/pets") == true && explanation.curl?.method == "PUT")
    }

    @Test func `a command whose form curl makes leads to a trace`() throws {
        let (_, explanation) = try Self.explained("curl -F 'a=@b.png' https://a.example/")
        #expect(!explanation.isValid)
        #expect(explanation.findings.first?.message.contains("--trace request.txt") == true, "\(explanation.findings)")
    }

    @Test(arguments: ["curl -d x", "fetch('a', {})", "fetch(", "{\"body\": 1}", "{\"isBase64Encoded\": true}"])
    func `what cannot be read is an error`(text: String) {
        #expect(throws: InputError.self) { try Self.explained(text) }
    }

    @Test func `hostile commands take little time and do not trap`() throws {
        for text in [
            "curl " + String(repeating: "'a", count: 200_000), "curl " + String(repeating: "$'\\u", count: 100_000),
            "curl ^\"" + String(repeating: "^", count: 300_000),
            "curl http://a " + String(repeating: "-d x ", count: 2_000),
        ] {
            _ = try? Self.explained(text)
        }
    }
}
