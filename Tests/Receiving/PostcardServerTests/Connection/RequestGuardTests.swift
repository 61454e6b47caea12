import Foundation
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct RequestGuardTests {
    private static let health = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"

    @Test(arguments: [
        (784_111_777.0, "Sun, 06 Nov 1994 08:49:37 GMT"), (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
        (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"), (1_767_225_599, "Wed, 31 Dec 2025 23:59:59 GMT"),
    ])
    func `times are written as header fields have them`(seconds: Double, text: String) {
        #expect(Date(timeIntervalSince1970: seconds).httpDate == text)
    }

    @Test(arguments: [
        ("/uploads/nope", 404), ("/nothing", 404), ("/uploads?limit=0", 400), ("/uploads", 200), ("/health", 200),
    ])
    func `a response to HEAD has no body, so that clients find the next response`(path: String, status: Int)
        async throws
    {
        try await withReceiver { receiver in
            let response = try await receiver.exchange("HEAD \(path) HTTP/1.1\r\nHost: a\r\n\r\n" + Self.health)
            #expect(response.status == status)
            #expect(response.body.hasPrefix("HTTP/1.1 200"), "\(response.text)")
            #expect(response.body.hasSuffix("ok"))
        }
    }

    @Test
    func `HEAD of a listing has the same length as GET`() async throws {
        try await withReceiver { receiver in
            _ = try await receiver.exchange(Form.request(body: Form.small))
            let head = try await receiver.exchange(
                "HEAD /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
            let listing = try await receiver.curl("\(receiver.url)/uploads")
            #expect(head.headers["content-length"] == String(listing.output.count))
            #expect(head.body.isEmpty)
        }
    }

    @Test(arguments: ["close", "Close", "keep-alive, close", "CLOSE , x", "x\r\nConnection: close"])
    func `connection is a case-insensitive list that may contain close anywhere`(value: String) async throws {
        try await withReceiver { receiver in
            // The server ends the connection, and does not respond to the next request.
            let request = "GET /health HTTP/1.1\r\nHost: a\r\nConnection: \(value)\r\n\r\n"
            let response = try await receiver.exchange(request + Self.health)
            #expect(response.headers["connection"] == "close")
            #expect(response.body == "ok")
        }
    }

    @Test
    func `connection options other than close keep the connection open`() async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange(
                "GET /health HTTP/1.1\r\nHost: a\r\nConnection: closed, not-close\r\n\r\n" + Self.health)
            #expect(response.text.components(separatedBy: "HTTP/1.1 200").count == 3)
        }
    }

    @Test
    func `the response to an HTTP/1.0 request has no chunks and no 100 Continue, and ends the connection`() async throws
    {
        try await withReceiver { receiver in
            let listing = try await receiver.exchange("GET /uploads HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
            #expect(listing.status == 200)
            #expect(listing.headers["transfer-encoding"] == nil)
            #expect(listing.body == #"{"uploads":[],"next":null}"#)
            let request = Form.request(body: Form.small, fields: ["Expect: 100-continue"])
            let posted = try await receiver.exchange(request.replacing("HTTP/1.1", with: "HTTP/1.0"))
            #expect(posted.status == 201)
            #expect(!posted.text.contains("100 Continue"))
            let chunked = try await receiver.exchange(Form.chunked("").replacing("HTTP/1.1", with: "HTTP/1.0"))
            #expect(chunked.status == 400)
            #expect(chunked.problem?.code == "malformed-request")
        }
    }

    @Test(arguments: ["X-Sum: 1", "Authorization: b"])
    func `trailer fields after a chunked body are always refused`(field: String) async throws {
        try await withReceiver { receiver in
            let size = String(Form.small.utf8.count, radix: 16)
            let chunks = "\(size)\r\n\(Form.small)\r\n0\r\n\(field)\r\n\r\n"
            let response = try await receiver.exchange(Form.chunked(chunks))
            #expect(response.status == 400)
            #expect(response.problem?.code == "malformed-request")
            #expect(response.headers["date"]?.hasSuffix(" GMT") == true)
            #expect(try receiver.records.isEmpty)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test
    func `two Host fields are refused, even if they are equal`() async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange("GET /health HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n")
            #expect(response.problem?.code == "malformed-request")
        }
    }

    private static let upgrades: [(fields: String, isKeptOpen: Bool)] = [
        ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk", true),
        ("Connection: keep-alive,upgrade\r\nUpgrade: websocket", true),
        ("Connection: x\r\nConnection: UPGRADE\r\nUpgrade: a\r\nUpgrade: b", true),
        ("Connection: upgrade", true), ("Upgrade: h2c", true), ("Connection: keep-alive\r\nUpgrade: h2c", true),
        // Parsers disagree on whether these ask for an upgrade, so the connection ends with the response.
        ("Connection: upgrade\t\r\nUpgrade: h2c", false), ("Connection: upgrade\r\nUpgrade: ", false),
        ("Connection: up_grade, upgrade\r\nUpgrade: h2c", false),
    ]

    @Test(arguments: upgrades)
    func `an upgrade to another protocol is ignored, and the connection stays open`(
        fields: String, isKeptOpen: Bool
    ) async throws {
        let first = Form.request(body: Form.small).replacing("Connection: close", with: fields)
        let chunks = String(Form.small.utf8.count, radix: 16) + "\r\n\(Form.small)\r\n0\r\n\r\n"
        let chunked = Form.chunked(chunks).replacing("Host: a", with: "Host: a\r\n\(fields)")
        let empty = "GET /health HTTP/1.1\r\nHost: a\r\n\(fields)\r\n\r\n"
        try await withReceiver { receiver in
            for request in [first, chunked, empty] {
                let status = request == empty ? "200" : "201"
                let together = try await receiver.exchange(request + request + Self.health)
                let statuses = together.text.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
                #expect(statuses == (isKeptOpen ? [status[...], status[...], "200"] : [status[...]]))
                guard isKeptOpen else { continue }
                let port = receiver.port
                let last = try await onThread {
                    let socket = try RawSocket(port: port)
                    try socket.send(request)
                    _ = try socket.receive(until: " \(status) ")
                    try socket.send(Self.health)
                    return String(decoding: try socket.receiveAll(), as: UTF8.self)
                }
                // No other response says so.
                #expect(last.lowercased().contains("connection: close"))
            }
        }
    }

    @Test func `no request is read after CONNECT`() async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange("CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n" + Self.health)
            #expect(response.headers["connection"] == "close")
            #expect(response.text.components(separatedBy: "HTTP/1.1 ").count == 2)
        }
    }

    @Test
    func `a client that stops reading is disconnected, and a shutdown does not wait for it forever`() async throws {
        var stalled: RawSocket?
        try await withReceiver {
            // The upload before has to keep it on a busy machine too.
            $0.connections.idleTimeout = .seconds(3)
        } _: { receiver in
            let body = Form.fileHeader + String(repeating: "x", count: 24_000_000) + Form.end
            let response = try await receiver.exchange(Form.request(body: body))
            let record = try UploadRecord(json: Data(response.body.utf8))
            let socket = try RawSocket(port: receiver.port)
            try await socket.send("GET \(record.files[0].url) HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try await socket.receive(until: "\r\n\r\n")
            stalled = socket
        }
        // The receiver has ended although this client neither read on nor closed.
        #expect(stalled != nil)
    }
}
