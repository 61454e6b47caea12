import Foundation
import PostcardTestSupport
import Testing

/// Who may post, and from where.
extension ServeTests {
    @Test
    func `a token lets in who has it, and rules and a screening refuse what they do not like`() async throws {
        let tokens = try folder.file(".tokens", "post-1\n\n  post-2  \n".utf8)
        let rules = try folder.file(".rules", #"{"fields":{"a":{"atMost":1}},"files":{"f":{}}}"#.utf8)
        let server = try await serve(
            "--host", "0.0.0.0", "--token-file", tokens.path, "--read-token", "read", "--rules", rules.path, "--screen",
            "grep -qv EICAR")
        let address = server.address.replacing("0.0.0.0", with: "127.0.0.1") + "/uploads"
        let cases = [
            (["-F", "a=b"], "token-missing"), (["-H", "Authorization: Bearer read", "-F", "a=b"], "token-wrong"),
            (["-H", "Authorization: Bearer post-1", "-F", "a=b", "-F", "a=c"], "too-many-fields"),
            (["-H", "Authorization: Bearer post-2", "-F", "f=EICAR;filename=x"], "file-refused"),
            (["-H", "Authorization: Bearer post-2", "-F", "f=clean;filename=x"], nil),
        ]
        for (arguments, code) in cases {
            let ending = try await Program.run("curl", ["-sS"] + arguments + [address])
            #expect(try ending.json()["code"] as? String == code, "\(arguments)")
        }
        let read = try await Program.run("curl", ["-sS", "-H", "Authorization: Bearer read", address])
        let uploads = try read.json()["uploads"] as? [Any]
        #expect(uploads?.count == 1)
    }

    @Test
    func `strangers are let in only by who says so`() async throws {
        for host in ["0.0.0.0", "::", "example.com", "127.0.0.1.example.com"] {
            let ending = try await Program.run(["serve", "--port", "0", "--directory", folder.path, "--host", host])
            #expect(ending.status == 64)
            #expect(ending.messages.contains("--open"))
        }
        let server = try await serve("--host", "0.0.0.0", "--open")
        #expect(await server.terminate() == 0)
    }

    @Test func `on loopback a request by another name than the machine's wants --allow-host`()
        async throws
    {
        let server = try await serve("--allow-host", "images.example")
        for (host, isAllowed) in [("images.example", true), ("evil.example", false)] {
            let response = try await Program.run(
                "curl", ["-sS", "-H", "Host: \(host)", "-F", "a=b", "\(server.address)/uploads"]
            ).json()
            #expect((response["id"] != nil) == isAllowed)
            #expect((response["code"] as? String == "host-not-allowed") == !isAllowed)
        }
        #expect(await server.terminate() == 0)
    }

    @Test func `on loopback the page of another origin wants --allow-origin`() async throws {
        let server = try await serve("--allow-origin", "https://app.example")
        for (origin, isAllowed) in [("https://app.example", true), ("https://evil.example", false), ("null", false)] {
            let response = try await Program.run(
                "curl",
                ["-sS", "-H", "Origin: \(origin)", "-H", "Sec-Fetch-Site: cross-site", "-F", "a=b"]
                    + ["\(server.address)/uploads"]
            ).json()
            #expect((response["id"] != nil) == isAllowed)
            #expect((response["code"] as? String == "origin-not-allowed") == !isAllowed)
        }
        #expect(await server.terminate() == 0)
    }

    @Test func `the client that a proxy names counts with --trust-proxy`() async throws {
        for (trusted, client) in [("127.0.0.0/8", "203.0.113.9"), ("::1", "127.0.0.1")] {
            let server = try await serve("--trust-proxy", "10.0.0.1", "--trust-proxy", trusted, "--log-level", "info")
            let response = try await Program.run(
                "curl", ["-sS", "-H", "X-Forwarded-For: 192.0.2.1, 203.0.113.9", "\(server.address)/health"])
            #expect(response.text == "ok")
            #expect(await server.terminate() == 0)
            #expect(try server.messages.contains("client=\(client) "))
        }
    }

    @Test func `without a PROXY header a receiver with --proxy-protocol responds to no one`() async throws {
        let server = try await serve("--proxy-protocol")
        let response = try await Program.run("curl", ["-sS", "\(server.address)/health"])
        #expect(response.status != 0 && response.text.isEmpty)
        #expect(await server.terminate() == 0)
        #expect(try server.messages.contains("Closed connections without a valid PROXY header"))
    }
}
