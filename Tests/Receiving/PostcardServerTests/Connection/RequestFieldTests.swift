import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception
@testable import PostcardServer

/// What a stranger writes into the fields of a request, which other code then compares and searches.
@Suite(.timeLimit(.minutes(10)))
struct RequestFieldTests {
    /// A letter with this many marks that a normal form has to sort.
    private static func marks(_ count: Int) -> String {
        "a" + String(repeating: "\u{300}", count: count / 2) + String(repeating: "\u{316}", count: count - count / 2)
    }

    /// Fields without a grammar of their own here, and those with one. A new field is a new word.
    private static let others = [
        "X-Anything", "Cookie", "User-Agent", "Referer", "Accept", "Accept-Encoding", "Idempotency-Key", "Range",
        "If-None-Match", "If-Range", "Last-Event-ID", "Content-Digest", "Repr-Digest", "Want-Repr-Digest", "Prefer",
        "Upload-Complete", "Upload-Offset", "Upload-Length", "Upload-Draft-Interop-Version", "X-Forwarded-For",
        "Forwarded", "Upgrade", "Expect", "traceparent", "Access-Control-Request-Method",
    ]
    private static let grammars = [
        "Origin", "Sec-Fetch-Site", "Authorization", "Connection", "Accept-Language", "Content-Encoding",
        "Content-Type",
    ]

    /// HTTP's decoder refuses a target that is not ASCII.
    static let targets = [
        "/uploads/" + marks(31).utf8.map { "%" + String($0, radix: 16) }.joined(),
        "/uploads?values=%61" + String(repeating: "%CC%80", count: 31),
    ]

    @Test(arguments: targets)
    func `a target with too many combining marks in escapes is refused`(target: String) async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange("GET \(target) HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(response.status == 400)
            #expect(response.problem?.code == "too-many-combining-marks")
        }
    }

    @Test(arguments: ["", "token"])
    func `a field with too many combining marks is refused, before a token is looked at and after`(
        token: String
    ) async throws {
        try await withReceiver {
            if !token.isEmpty { $0.tokens.posting = [token] }
        } _: { receiver in
            let fields = token.isEmpty ? [] : ["Authorization: Bearer \(token)"]
            for field in Self.others {
                let refused = try await receiver.exchange(
                    Form.request(body: Form.small, fields: fields + ["\(field): \(Self.marks(31))"]))
                #expect(refused.status == 400, "\(field)")
                #expect(refused.problem?.code == "too-many-combining-marks", "\(field)")
                #expect(refused.problem?.detail.contains(field) == true, "\(field)")
            }
        }
    }

    @Test(arguments: grammars + ["Host"])
    func `a field with a grammar is refused for a byte that it cannot have, and for its length`(
        field: String
    ) async throws {
        try await withReceiver { receiver in
            for (value, code) in [
                (Self.marks(1), "malformed-request-field"), (Self.marks(34_000), "request-field-too-long"),
                ("é", "malformed-request-field"), (String(repeating: "a", count: 66_000), "request-field-too-long"),
            ] {
                let host = field == "Host" ? "" : "Host: a\r\n"
                let response = try await receiver.exchange(
                    "POST /uploads HTTP/1.1\r\n\(host)\(field): \(value)\r\n\r\n")
                #expect(response.problem?.code == code, "\(field): \(value.prefix(5))")
            }
        }
    }

    @Test func `text in every language passes in fields, targets and names`() async throws {
        try await withReceiver { receiver in
            let words = ["제주도의 초코", "नमस्ते दुनिया", "שָׁלוֹם", "Tiếng Việt", "e\u{301}\u{323}", Self.marks(30)]
            for word in words {
                let part =
                    "--b\r\nContent-Disposition: form-data; name=\"\(word)\"; filename=\"\(word).jpg\"\r\n\r\nx\r\n--b--\r\n"
                let response = try await receiver.exchange(Form.request(body: part, fields: ["X-Word: \(word)"]))
                #expect(response.status == 201, "\(response.text)")
                #expect(response.body.contains(word))
            }
        }
    }

    /// Headers of parts, with marks in each of their texts.
    static let parts = [
        "Content-Disposition: form-data; name=\"\(marks(31))\"",
        "Content-Disposition: form-data; name=\"f\"; filename=\"\(marks(31)).jpg\"",
        "Content-Disposition: form-data; name=\"f\"; filename*=UTF-8''a" + String(repeating: "%CC%80", count: 31),
        "Content-Disposition: form-data; name=\"f\"; \(marks(31))=x",
        "Content-Disposition: form-data; name=\"f\"\r\nContent-Type: text/\(marks(31))",
        "Content-Disposition: form-data; name=\"f\"\r\nX-Other: \(marks(31))",
        "Content-Disposition: \(marks(31)); name=\"f\"",
    ]

    @Test(arguments: parts)
    func `a part with too many combining marks is refused`(header: String) async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange(Form.request(body: Form.part(header)))
            #expect(response.status == 400)
            #expect(response.problem?.code == "too-many-combining-marks")
            #expect(try receiver.records.isEmpty)
        }
    }

    @Test func `the value of a field may be any text`() async throws {
        try await withReceiver { receiver in
            let value = Self.marks(1000)
            let body = Form.part("Content-Disposition: form-data; name=\"a\"", value)
            let response = try await receiver.exchange(Form.request(body: body))
            #expect(response.status == 201)
            #expect(response.body.utf8.count > value.utf8.count)
            let record = try UploadRecord(json: Data(response.body.utf8))
            #expect(record.fields[0].value.utf8.elementsEqual(value.utf8))
        }
    }

    @Test(arguments: ["X-Anything", "Cookie", "Origin", "Accept-Language"])
    func `fields are refused over HTTP/2 too, and the connection goes on`(field: String) async throws {
        try await withSecureReceiver { receiver, certificate in
            let url = "\(receiver.url)/health"
            let refused = try await receiver.curl(
                "--http2", "--cacert", certificate, "-H", "\(field): \(Self.marks(31))", url, url)
            let codes = ["too-many-combining-marks", "malformed-request-field"]
            #expect(codes.contains { refused.text.contains($0) }, "\(refused.text)")
            let served = try await receiver.curl("--http2", "--cacert", certificate, url)
            #expect(served.text == "ok")
        }
    }

    @Test func `refusals are counted by their code`() async throws {
        try await withReceiver { receiver in
            _ = try await receiver.exchange("GET / HTTP/1.1\r\nHost: a\r\nX: \(Self.marks(31))\r\n\r\n")
            _ = try await receiver.exchange("GET / HTTP/1.1\r\nHost: a\r\nOrigin: é\r\n\r\n")
            let metrics = try await receiver.curl("\(receiver.url)/metrics").text
            for code in ["too-many-combining-marks", "malformed-request-field"] {
                #expect(metrics.contains("code=\"\(code)\""), "\(metrics)")
            }
        }
    }
}
