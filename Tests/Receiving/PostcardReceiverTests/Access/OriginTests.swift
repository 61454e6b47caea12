import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

/// What a browser sends for a page, and what others send.
@Suite(.timeLimit(.minutes(10)))
struct OriginTests {
    private static let cases: [(fields: [String], isAllowed: Bool)] = [
        ([], true), (["Sec-Fetch-Site: same-origin"], true), (["Sec-Fetch-Site: none"], true),
        (["Sec-Fetch-Site: cross-site"], false), (["Sec-Fetch-Site: same-site"], false),
        (["Sec-Fetch-Site: "], false), (["Sec-Fetch-Site: same-origin", "Sec-Fetch-Site: cross-site"], false),
        // As the receiver's own page is sent by a proxy that gives the receiver another name.
        (["Sec-Fetch-Site: same-origin", "Origin: https://photos.example"], true),
        (["Sec-Fetch-Site: cross-site", "Origin: http://a"], false),
        (["Sec-Fetch-Site: cross-site", "Origin: null"], false),
        (["Origin: http://a"], true), (["Origin: http://a:80"], true), (["Origin: https://a"], true),
        (["Origin: http://a:8080"], false), (["Origin: null"], false), (["Origin: "], false),
        (["Origin: http://evil.example"], false), (["Origin: http://a.evil.example"], false), (["Origin: a"], false),
        (["Origin: http://a", "Origin: http://evil.example"], false), (["Origin: ftp://a"], false),
        (["Origin: https://app.example"], true), (["Origin: HTTPS://APP.example"], true),
        (["Sec-Fetch-Site: cross-site", "Origin: https://app.example"], true),
        (["Origin: http://app.example"], false),
    ]

    @Test(arguments: cases)
    func `without tokens only the receiver's own pages, and those of named origins, change something`(
        fields: [String], isAllowed: Bool
    ) async throws {
        try await withReceiver({ $0.allowedOrigins = ["https://App.example"] }) { receiver in
            let post = try await receiver.exchange(Form.request(body: Form.small, fields: fields))
            #expect(post.status == (isAllowed ? 201 : 403))
            #expect(post.problem?.code == (isAllowed ? nil : "origin-not-allowed"))
            #expect(try receiver.records.count == (isAllowed ? 1 : 0))
            for (line, status) in [("DELETE /uploads/01m7yjcrp4j93gdt2y3c5vqpd7", 404), ("GET /uploads", 200)] {
                let lines = ["\(line) HTTP/1.1", "Host: a", "Connection: close"] + fields
                let response = try await receiver.exchange(lines.joined(separator: "\r\n") + "\r\n\r\n")
                #expect(response.status == (isAllowed || status == 200 ? status : 403))
            }
        }
    }

    @Test func `if a token is needed, the page's origin does not matter`() async throws {
        try await withReceiver {
            $0.tokens.posting = ["t"]
            $0.tokens.reading = []
        } _: { receiver in
            let fields = ["Sec-Fetch-Site: cross-site", "Origin: https://evil.example"]
            let response = try await receiver.exchange(
                Form.request(body: Form.small, fields: fields + ["Authorization: Bearer t"]))
            #expect(response.status == 201)
            #expect(response.headers["access-control-allow-origin"] == nil)
            // Deleting needs no token here.
            let lines = ["DELETE /uploads/x HTTP/1.1", "Host: a", "Connection: close"] + fields
            let delete = try await receiver.exchange(lines.joined(separator: "\r\n") + "\r\n\r\n")
            #expect(delete.problem?.code == "origin-not-allowed")
        }
    }

    private static func preflight(_ origin: String) -> String {
        [
            "OPTIONS /uploads HTTP/1.1", "Host: a", "Connection: close", "Origin: \(origin)",
            "Access-Control-Request-Method: POST", "Access-Control-Request-Headers: authorization", "\r\n",
        ].joined(separator: "\r\n")
    }

    @Test(arguments: [[], ["t"]])
    func `a page of a named origin may ask before it sends, and read the responses`(tokens: Set<String>) async throws {
        try await withReceiver {
            $0.allowedOrigins = ["https://app.example"]
            $0.tokens.posting = tokens
        } _: { receiver in
            let offer = try await receiver.exchange(Self.preflight("https://app.example"))
            #expect(offer.status == 204)
            #expect(offer.headers["access-control-allow-origin"] == "https://app.example")
            #expect(offer.headers["access-control-allow-headers"]?.contains("Authorization") == true)
            let other = try await receiver.exchange(Self.preflight("https://evil.example"))
            #expect(other.headers["access-control-allow-origin"] == nil)
            let fields = ["Origin: https://app.example", "Sec-Fetch-Site: cross-site", "Authorization: Bearer t"]
            let stored = try await receiver.exchange(Form.request(body: Form.small, fields: fields))
            #expect(stored.status == 201)
            let refused = try await receiver.exchange(Form.request(body: "", fields: fields))
            #expect(refused.status == 400)
            for response in [stored, refused] {
                #expect(response.headers["access-control-allow-origin"] == "https://app.example")
                #expect(response.headers["vary"] == "Origin")
            }
        }
    }

    @Test func `over TLS the receiver's own origin is of TLS`() async throws {
        try await withSecureReceiver { receiver, certificate in
            for (scheme, code) in [("https", "201"), ("http", "403")] {
                let response = try await receiver.curl(
                    "--cacert", certificate, "-o", "/dev/null", "-w", "%{http_code}", "-F", "a=b", "-H",
                    "Origin: \(scheme)://127.0.0.1:\(receiver.port)", "\(receiver.url)/uploads")
                #expect(response.text == code)
            }
        }
    }
}
