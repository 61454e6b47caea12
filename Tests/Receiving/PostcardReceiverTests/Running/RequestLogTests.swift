import Logging
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct RequestLogTests {
    @Test func `refusals of a client that holds too much are one line a minute`() async throws {
        let lines = CapturedLog.Lines()
        try await withReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
            $0.uploads.maximumHeldBytes = 1000
        } _: { receiver in
            let form = Form.part("Content-Disposition: form-data; name=\"a\"", String(repeating: "x", count: 900))
            for _ in 0..<5 {
                let response = try await receiver.exchange(Form.request(body: form))
                #expect(response.status == 429)
            }
            let refusals = lines.all.filter { $0["code"] == "too-much-text-of-client" }
            #expect(refusals.map { $0["count"] } == ["1"])
        }
    }

    @Test func `each request is one line, whatever becomes of it`() async throws {
        let lines = CapturedLog.Lines()
        func capture(_ receiver: inout Receiver) {
            receiver.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
        }
        try await withReceiver(capture) { receiver in
            let made = try await receiver.exchange(Form.request(body: Form.small))
            _ = try await receiver.exchange(Form.request(body: "no form"))
            _ = try await receiver.curl("\(receiver.url)/nothing?token=secret")
            _ = try await receiver.curl("-X", "DELETE", receiver.url + (made.headers["location"] ?? ""))
            // Anyone who knows an upload's address can resume it.
            _ = try await receiver.curl(
                "-X", "PATCH", receiver.url + "/uploads/resumable/0123456789abcdefghjkmnpqrstvwxyz")
            _ = try await receiver.exchange("GET /\u{1B}[31m HTTP/1.1\r\nHost: a\r\nbroken\r\n\r\n")
            let requests = lines.all.filter { $0["method"] != nil }
            let logged = requests.map { line in
                ["method", "path", "status", "code"].map { line[$0].map { "\($0)" } ?? "" }.joined(separator: " ")
            }
            #expect(
                logged == [
                    "POST /uploads 201 ", "POST /uploads 400 delimiter-not-found", "GET /nothing 404 not-found",
                    "DELETE \(made.headers["location"] ?? "") 204 ",
                    "PATCH /uploads/resumable/*** 415 not-partial-upload", "GET /?[31m 400 malformed-request",
                ])
            #expect(
                requests.first?["upload"].map { "\($0)" }
                    == made.headers["location"]?.split(separator: "/").last.map(String.init))
        }
    }

    @Test func `a download is logged when it ends, and says if it was broken off`() async throws {
        let lines = CapturedLog.Lines()
        try await withReceiver {
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: lines) }
        } _: { receiver in
            // More than the buffers of both ends hold.
            let header = "Content-Disposition: form-data; name=\"f\"; filename=\"f\""
            let body = Form.part(header, String(repeating: "x", count: 12 << 20))
            let made = try await receiver.exchange(Form.request(body: body))
            let path = (made.headers["location"] ?? "") + "/files/0"
            let whole = try await receiver.curl(receiver.url + path)
            #expect(whole.output.count == 12 << 20)
            let socket = try RawSocket(port: receiver.port, receiveBufferBytes: 4096)
            try await socket.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
            _ = try await socket.receive(until: "\r\n\r\n")
            socket.abort()
        }
        let downloads = lines.all.filter { $0["method"] == "GET" }
        #expect(downloads.map { $0["status"] } == ["200", "200"])
        #expect(downloads.map { $0["sent"] } == [nil, "in part"])
    }
}
