import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct AccessTests {
    private static func request(_ line: String, _ authorization: String?) -> String {
        let fields = ["Host: a", "Connection: close"] + (authorization.map { ["Authorization: \($0)"] } ?? [])
        return "\(line) HTTP/1.1\r\n" + fields.joined(separator: "\r\n") + "\r\n\r\n"
    }

    private static let tokens: AccessTokens = {
        var tokens = AccessTokens()
        tokens.posting = ["post-1", "post-2"]
        tokens.reading = ["read"]
        return tokens
    }()

    private static let posts: [(String?, Int, String?)] = [
        (nil, 401, "token-missing"), ("Basic cG9zdC0x", 401, "token-missing"), ("Bearer", 401, "token-wrong"),
        ("Bearer read", 401, "token-wrong"), ("Bearer post-", 401, "token-wrong"),
        ("Bearer post-11", 401, "token-wrong"), ("Bearer post-1", 201, nil), ("bearer  post-2", 201, nil),
    ]

    /// Tokens, a request's `Authorization`, and the code of its refusal.
    @Test(
        arguments: [
            (["a", "b"], "Bearer b", nil), (["a"], "Bearer  a", nil), (["a"], "Bearer A", "token-wrong"),
            (["a"], nil, "token-missing"), (["a"], "a", "token-missing"), (["a"], "Bearer", "token-wrong"),
            ([], "Bearer a", "token-wrong"), ([""], "Bearer", "token-wrong"), ([""], "Bearer ", "token-wrong"),
        ] as [(Set<String>, String?, String?)])
    func `an empty token lets no one in`(tokens: Set<String>, authorization: String?, code: String?) {
        do throws(UploadProblem) {
            try BearerTokens(tokens).check(authorization)
            #expect(code == nil)
        } catch {
            #expect(error.code.rawValue == code)
        }
    }

    @Test(arguments: posts)
    func `posting needs one of its tokens`(authorization: String?, status: Int, code: String?) async throws {
        try await withReceiver({ $0.tokens = Self.tokens }) { receiver in
            let fields = authorization.map { ["Authorization: \($0)"] } ?? []
            let response = try await receiver.exchange(Form.request(body: Form.small, fields: fields))
            #expect(response.status == status)
            #expect(response.problem?.code == code)
            #expect(response.headers["www-authenticate"]?.hasPrefix("Bearer ") == (status == 401 ? true : nil))
            let records = try receiver.records.count
            #expect(records == (status == 201 ? 1 : 0))
        }
    }

    @Test(arguments: [
        "GET /uploads", "HEAD /uploads", "GET /status", "GET /metrics", "GET /uploads/01abc", "DELETE /uploads/01abc",
        "GET /nothing",
        "POST /elsewhere", "GET //uploads", "GET /requests",
    ])
    func `reading or changing uploads needs a token for reading`(line: String) async throws {
        try await withReceiver({ $0.tokens = Self.tokens }) { receiver in
            for authorization in [nil, "Bearer post-1"] {
                let response = try await receiver.exchange(Self.request(line, authorization))
                #expect(response.status == 401)
            }
            let response = try await receiver.exchange(Self.request(line, "Bearer read"))
            #expect(response.status != 401)
        }
    }

    @Test(arguments: ["GET /uploads", "GET /status", "DELETE /uploads/01abc"])
    func `without tokens of its own, reading needs one for posting, unless everyone may`(line: String) async throws {
        var tokens = AccessTokens()
        tokens.posting = ["t"]
        for isOpen in [false, true] {
            tokens.reading = isOpen ? [] : nil
            try await withReceiver({ $0.tokens = tokens }) { receiver in
                for authorization in [nil, "Bearer t"] {
                    let response = try await receiver.exchange(Self.request(line, authorization))
                    #expect((response.status == 401) == (authorization == nil && !isOpen))
                }
            }
        }
    }

    @Test(arguments: ["GET /", "HEAD /", "GET /health"])
    func `the page and the health need no token`(line: String) async throws {
        try await withReceiver({ $0.tokens = Self.tokens }) { receiver in
            let response = try await receiver.exchange(Self.request(line, nil))
            #expect(response.status == 200)
        }
    }

    @Test func `a client that waits for 100 Continue is refused before it sends its body`() async throws {
        try await withReceiver({ $0.tokens = Self.tokens }) { receiver in
            let head = Form.head(contentLength: 1_000_000, fields: ["Expect: 100-continue"])
            let response = try await receiver.exchange(head)
            #expect(response.text.hasPrefix("HTTP/1.1 401"))
        }
    }

    @Test func `the status counts what was received and what was refused`() async throws {
        struct Status: Decodable {
            struct Uploads: Decodable {
                let underWay, received, refused, files: Int
                let bodyBytes: Int64
                let refusals: [String: Int]
            }
            let uploads: Uploads
            let freeBytes: Int64
            let damagedUploads: Int
        }
        try await withReceiver { receiver in
            let file = Form.fileHeader + "content" + Form.end
            _ = try await receiver.exchange(Form.request(body: file))
            _ = try await receiver.exchange(Form.request(body: Form.fileHeader))
            _ = try await receiver.exchange(Form.request(body: "{}", contentType: "Content-Type: application/json"))
            let response = try await receiver.curl("\(receiver.url)/status")
            let status = try JSONDecoder().decode(Status.self, from: response.output)
            #expect(status.uploads.received == 1)
            #expect(status.uploads.files == 1)
            #expect(status.uploads.underWay == 0)
            #expect(status.uploads.refused == 2)
            #expect(status.uploads.refusals == ["missing-close-delimiter": 1, "not-form-data": 1])
            #expect(status.uploads.bodyBytes == Int64(file.utf8.count + Form.fileHeader.utf8.count))
            #expect(status.freeBytes > 0)
            #expect(status.damagedUploads == 0)
        }
    }
}
