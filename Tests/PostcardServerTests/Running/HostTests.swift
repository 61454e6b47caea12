import PostcardServer
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10)))
struct HostTests {
    private static let cases: [(host: String, isAllowed: Bool)] = [
        ("localhost", true), ("LOCALHOST:8080", true), ("localhost.:80", true), ("app.localhost", true),
        ("127.0.0.1:1", true), ("127.1.2.3", true), ("[::1]:8080", true), ("named.example:8080", true),
        ("evil.example", false), ("127.0.0.1.evil.example", false), ("127.a.b.c", false), ("127.0.0.256", false),
        ("127.0.0.", false), ("localhost.evil.example", false), ("notlocalhost", false), ("[::2]", false), ("", false),
        ("0.0.0.0", false), ("localhost@evil.example", false),
    ]

    @Test(arguments: cases)
    func `a receiver for this machine alone answers to its own names, and to those it was told`(
        host: String, isAllowed: Bool
    ) async throws {
        try await withReceiver({ $0.allowedHosts = ["Named.example"] }) { receiver in
            for request in [
                Form.request(body: Form.small), "GET /uploads HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            ] {
                let answer = try await receiver.exchange(request.replacing("Host: a", with: "Host: \(host)"))
                #expect((answer.status < 300) == isAllowed)
                guard !isAllowed else { continue }
                #expect(answer.status == 421)
                #expect(answer.problem?.code == "host-not-allowed")
                #expect(answer.problem?.fix?.contains("--allow-host") == true)
            }
            let status = try await receiver.curl("\(receiver.url)/status").text
            #expect(status.contains("\"host-not-allowed\":2") == !isAllowed)
            let requests = try await receiver.curl("\(receiver.url)/requests").text
            #expect(requests.contains("host-not-allowed") == !isAllowed)
        }
    }

    @Test func `who wants a token for everything, or listens to others too, is called as they like`() async throws {
        func locked(_ receiver: inout Receiver) {
            receiver.tokens.posting = ["t"]
            receiver.tokens.reading = ["t"]
        }
        func open(_ receiver: inout Receiver) { receiver.host = "0.0.0.0" }
        for configure in [locked, open] {
            try await withReceiver(configure) { receiver in
                let request = Form.request(body: Form.small, fields: ["Authorization: Bearer t"])
                let answer = try await receiver.exchange(request.replacing("Host: a", with: "Host: b.example"))
                #expect(answer.status == 201)
            }
        }
    }
}
