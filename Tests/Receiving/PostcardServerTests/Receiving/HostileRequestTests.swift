import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

/// What brought other receivers down, sent to a running one.
@Suite(.timeLimit(.minutes(10)))
struct HostileRequestTests {
    struct Attack: Sendable, CustomTestStringConvertible {
        let name: String
        let request: String
        /// The code of the refusal; `nil` where the form is taken.
        let code: String?

        init(_ name: String, _ body: String, contentType: String = Form.contentType, _ code: String?) {
            self.name = name
            request = Form.request(body: body, contentType: contentType)
            self.code = code
        }

        var testDescription: String { name }
    }

    private static let field = #"Content-Disposition: form-data; name="a""#
    private static let file = #"Content-Disposition: form-data; name="a"; filename="a""#

    private static func repeated(_ text: String, _ count: Int) -> String { String(repeating: text, count: count) }

    static let headers = [
        Attack("a header line that begins with a tab", Form.part("\ta: b\r\n" + field), "malformed-header-field"),
        Attack(
            "header lines without a colon", Form.part(repeated("nocolon\r\n", 10_000) + field), "too-many-header-fields"
        ),
        Attack("a header without an end", "--b\r\n" + repeated("X-A: b", 50_000), "header-too-large"),
        Attack("many header fields", Form.part(repeated("X: y\r\n", 1000) + field), "too-many-header-fields"),
        Attack(
            "a name of ten megabytes",
            Form.part("Content-Disposition: form-data; name=\"\(repeated("n", 10_000_000))\""), "header-too-large"),
        Attack("no name", Form.part("Content-Disposition: form-data"), "missing-name"),
        Attack("an empty name", Form.part("Content-Disposition: form-data; name=\"\""), "empty-name"),
        Attack("no Content-Disposition", Form.part("X: y"), "missing-content-disposition"),
        Attack("two Content-Dispositions", Form.part(field + "\r\n" + field), "duplicate-content-disposition"),
        Attack("filenames that disagree", Form.part(file + "; filename*=UTF-8''evil.php"), "contradicting-filenames"),
        Attack(
            "a filename with broken percent codes", Form.part(field + "; filename*=UTF-8''%E0%A4%A"),
            "malformed-parameter"),
        Attack(
            "quotes that are not closed", Form.part("Content-Disposition: form-data; name=\"a"), "malformed-parameter"),
        Attack(
            "eight kilobytes of escapes",
            Form.part("Content-Disposition: form-data; name=\"a\"; filename=\"\(repeated("\\\"", 4000))\""), nil),
        Attack(
            "a NUL in a filename", Form.part("Content-Disposition: form-data; name=\"a\"; filename=\"a\0b\""),
            "nul-in-header"),
        Attack(
            "brackets a thousand deep", Form.part("Content-Disposition: form-data; name=\"a\(repeated("[a", 1000))\""),
            nil),
        Attack("a part in base64", Form.part(field + "\r\nContent-Transfer-Encoding: base64", "aGVsbG8="), nil),
    ]

    static let bodies = [
        Attack(
            "a hundred thousand parts", repeated("--b\r\n\(field)\r\n\r\n\r\n", 100_000) + "--b--\r\n", "too-many-parts"
        ),
        Attack(
            "a hundred thousand empty files", repeated("--b\r\n\(file)\r\n\r\n\r\n", 100_000) + "--b--\r\n",
            "too-many-parts"),
        Attack("a text of megabytes", Form.part(field, repeated("x", 5_000_000)), "field-too-large"),
        Attack("a file that begins with CR", Form.part(file, "\r" + repeated("x", 3_000_000)), nil),
        Attack("a file that begins with LF", Form.part(file, "\n" + repeated("x", 3_000_000)), nil),
        Attack("a file of CRs", Form.part(file, repeated("\r", 5_000_000)), nil),
        Attack("a file of delimiters that are none", Form.part(file, repeated("\r\n--bX", 500_000)), nil),
        Attack("a body of CRs", repeated("\r", 5_000_000), "preamble-too-large"),
        Attack(
            "megabytes before the first delimiter", repeated("x", 5_000_000) + "\r\n" + Form.small, "preamble-too-large"
        ),
        Attack("megabytes behind the last delimiter", Form.small + repeated("x", 5_000_000), "epilogue-too-large"),
        Attack("an end right behind a delimiter", "--b\r\n", "truncated"),
        Attack("a delimiter of another case", "--B\r\n\(field)\r\n\r\n\r\n--B--\r\n", "boundary-case"),
    ]

    static let boundaries = [
        ("", "malformed-content-type"), ("\"\"", "invalid-boundary"), (repeated("b", 71), "invalid-boundary"),
        (repeated("b", 4000), "invalid-boundary"), (repeated("b", 10_000), "request-field-too-long"),
        ("b; boundary=c", "duplicate-boundary"), ("b; BOUNDARY=c", "duplicate-boundary"),
    ].map { boundary, code in
        Attack(
            "the boundary \(boundary.prefix(20))", Form.small,
            contentType: "Content-Type: multipart/form-data; boundary=\(boundary)", code)
    }

    @Test func `it is refused with its code, or accepted as it is, and the receiver keeps running`() async throws {
        try await withReceiver { receiver in
            for attack in Self.headers + Self.bodies + Self.boundaries {
                let before = try receiver.records.count
                let response = try await receiver.exchange(attack.request)
                #expect(response.problem?.code == attack.code, "\(attack.name): \(response.text.prefix(600))")
                #expect(
                    (400..<500).contains(response.status) == (attack.code != nil), "\(attack.name): \(response.status)")
                let taken = try receiver.records.count - before
                #expect(taken == (attack.code == nil ? 1 : 0), "\(attack.name)")
                #expect(try receiver.incoming.isEmpty, "\(attack.name)")
            }
            #expect(try await receiver.curl("\(receiver.url)/health").text == "ok")
        }
    }

    @Test func `a delimiter that is none is kept as the content that it is`() async throws {
        try await withReceiver { receiver in
            let content = "a\r\n--bX\r\n--b-\r\n--\r\n-b"
            let response = try await receiver.exchange(Form.request(body: Form.part(Self.file, content)))
            let record = try UploadRecord(json: Data(response.body.utf8))
            let path = receiver.directory.appending(record.id.text).appending("0").string
            #expect(try String(contentsOfFile: path, encoding: .utf8) == content)
        }
    }

    @Test func `connections that break off, again and again, leave no file and no descriptor`() async throws {
        try await withReceiver { receiver in
            for _ in 0..<100 {
                let socket = try RawSocket(port: receiver.port)
                try await socket.send(
                    Form.head(contentLength: 10_000_000) + Form.fileHeader + Self.repeated("x", 300_000))
                socket.abort()
            }
            try await eventually { try receiver.incoming.isEmpty }
            #expect(try receiver.records.isEmpty)
            #if os(Linux)
            // The only open file in the receiver's folder is its lock.
            try await eventually { try Self.openFiles(under: receiver.directory.string).count == 1 }
            #endif
        }
    }

    private static func openFiles(under folder: String) throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")
            .compactMap { try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/fd/\($0)") }
            .filter { $0.hasPrefix(folder) }
    }
}
