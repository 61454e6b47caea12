import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct HostTests {
    private static let streams: [(authority: String?, hosts: [String], code: String?)] = [
        ("localhost", [], nil), (nil, ["localhost"], nil), ("localhost", ["LOCALHOST:443"], nil),
        (nil, [], "malformed-request"), (nil, ["evil.example"], "host-not-allowed"),
        ("evil.example", [], "host-not-allowed"), ("localhost", ["evil.example"], "malformed-request"),
        ("evil.example", ["localhost"], "malformed-request"), ("localhost", ["localhost:80"], "malformed-request"),
        (nil, ["localhost", "localhost"], "malformed-request"),
    ]

    @Test(arguments: streams)
    func `over HTTP2 the authority is judged, or the host where there is none`(
        authority: String?, hosts: [String], code: String?
    ) async throws {
        var fields: RawStreams.Fields = [(":method", "GET"), (":scheme", "https"), (":path", "/uploads")]
        if let authority { fields.append((":authority", authority)) }
        for host in hosts { fields.append(("host", host)) }
        try await withSecureReceiver { receiver, _ in
            try await RawStreams.connect(to: receiver.port) { streams in
                try await streams.send(fields, on: 1)
                guard case .body(let body) = try await streams.response(on: 1) else {
                    Issue.record("The request was reset.")
                    return
                }
                #expect(body.contains("\"uploads\":[]") == (code == nil), "\(body)")
                if let code { #expect(body.contains("\"code\":\"\(code)\""), "\(body)") }
            }
        }
    }

    @Test func `a receiver with tokens needs one name over HTTP2 too, and accepts any`() async throws {
        try await withSecureReceiver {
            $0.tokens.posting = ["t"]
        } _: { receiver, _ in
            let start: RawStreams.Fields = [(":method", "GET"), (":scheme", "https"), (":path", "/health")]
            try await RawStreams.connect(to: receiver.port) { streams in
                try await streams.send(start + [(":authority", "any.example")], on: 1)
                try await streams.send(start, on: 3)
                #expect(try await streams.response(on: 1) == .body("ok"))
                guard case .body(let refusal) = try await streams.response(on: 3) else {
                    Issue.record("The request was reset.")
                    return
                }
                #expect(refusal.contains("malformed-request"))
            }
        }
    }

    private static let cases: [(host: String, isAllowed: Bool)] = [
        ("localhost", true), ("LOCALHOST:8080", true), ("localhost.:80", true), ("app.localhost", true),
        ("127.0.0.1:1", true), ("127.1.2.3", true), ("[::1]:8080", true), ("named.example:8080", true),
        ("full.example", true), ("FULL.example.:80", true),
        ("evil.example", false), ("127.0.0.1.evil.example", false), ("127.a.b.c", false), ("127.0.0.256", false),
        ("127.0.0.", false), ("localhost.evil.example", false), ("notlocalhost", false), ("[::2]", false), ("", false),
        ("0.0.0.0", false), ("localhost@evil.example", false),
    ]

    @Test(arguments: cases)
    func `a receiver for this machine alone accepts its own names, and the allowed ones`(
        host: String, isAllowed: Bool
    ) async throws {
        try await withReceiver({ $0.allowedHosts = ["Named.example", "Full.example."] }) { receiver in
            for request in [
                Form.request(body: Form.small), "GET /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            ] {
                let response = try await receiver.exchange(request.replacing("Host: a", with: "Host: \(host)"))
                #expect((response.status < 300) == isAllowed)
                guard !isAllowed else { continue }
                #expect(response.status == 421)
                #expect(response.problem?.code == "host-not-allowed")
                #expect(response.problem?.fix?.contains("--allow-host") == true)
            }
            let status = try await receiver.curl("\(receiver.url)/status").text
            #expect(status.contains("\"host-not-allowed\":2") == !isAllowed)
            let requests = try await receiver.curl("\(receiver.url)/requests").text
            #expect(requests.contains("host-not-allowed") == !isAllowed)
        }
    }

    @Test func `a receiver that needs tokens, or listens to other machines, accepts any name`() async throws {
        func locked(_ receiver: inout Receiver) {
            receiver.tokens.posting = ["t"]
        }
        func open(_ receiver: inout Receiver) { receiver.host = "0.0.0.0" }
        for configure in [locked, open] {
            try await withReceiver(configure) { receiver in
                let request = Form.request(body: Form.small, fields: ["Authorization: Bearer t"])
                let response = try await receiver.exchange(request.replacing("Host: a", with: "Host: b.example"))
                #expect(response.status == 201)
            }
        }
    }
}
