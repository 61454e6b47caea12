import Foundation
import PostcardTestSupport
import Testing

/// `postcard serve --webhook`.
@Suite(.timeLimit(.minutes(10)))
struct WebhookCommandTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private static let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

    private static let python = Repository.url(".build/receivers/bin/python").path

    private static let script = Repository.url("Tests/Receivers/webhook.py").path

    private func endpoint(port: Int = 0, status: Int? = nil) async throws -> RunningServer {
        try Tool.require(Self.python)
        return try await RunningServer(
            [Self.python, Self.script, "\(port)", Self.secret, folder.path + "/.announced"]
                + (status.map { ["\($0)"] } ?? []),
            of: URL(filePath: "/usr/bin/env"))
    }

    private func serve(_ address: String) async throws -> RunningServer {
        try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--webhook", address, "--webhook-secret", Self.secret,
        ])
    }

    /// What the endpoint has noted.
    private func announced() throws -> [String] {
        let text = (try? String(contentsOfFile: folder.path + "/.announced", encoding: .utf8)) ?? ""
        return text.split(separator: "\n").map(String.init)
    }

    private func records() throws -> Set<String> {
        Set(try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasPrefix(".") })
    }

    /// Posts forms, as far as there is a receiver.
    private static func post(_ count: Int, to server: RunningServer) async throws {
        let post = ["-sS", "--max-time", "60", "-F", "a=b", "\(server.address)/uploads"]
        _ = try await Program.run("curl", ["-Z"] + Array(repeating: post, count: count).joined(separator: ["--next"]))
    }

    @Test func `every record is announced, however often receiver and endpoint are killed`() async throws {
        let environment = ProcessInfo.processInfo.environment
        let kills = environment["POSTCARD_WEBHOOK_KILLS"].flatMap { Int($0) } ?? 3
        let count = max((environment["POSTCARD_WEBHOOK_RECORDS"].flatMap { Int($0) } ?? 60) / (2 * kills), 1)
        let port = try ReservedPort()
        var endpoint = try await endpoint(port: port.number)
        let address = endpoint.address + "/hook"
        var server = try await serve(address)
        for _ in 0..<kills {
            // Both are killed while forms are posted.
            let first = server
            async let posted: Void = Self.post(count, to: first)
            endpoint.kill()
            try await posted
            endpoint = try await self.endpoint(port: port.number)
            let before = try records().count
            async let cut: Void = Self.post(count, to: first)
            try await eventually { try records().count > before }
            server.kill()
            try await cut
            server = try await serve(address)
        }
        // A new start tries at once what has failed.
        server.kill()
        server = try await serve(address)
        let expected = try records()
        try await eventually { expected.isSubset(of: try announced()) }
        withExtendedLifetime(port) {}
        let refused = try announced().filter { $0.hasPrefix("refused") }
        #expect(refused.isEmpty, "\(refused)")
        #expect(Set(try announced()) == expected)
        #expect(expected.count >= count * kills)
        #expect(await server.terminate() == 0)
    }

    /// An endpoint's responses, and what is said of them.
    private static let responses: [(status: Int, failure: String)] = [
        (302, "The endpoint responded with 302, and redirects are not followed."),
        (308, "The endpoint responded with 308, and redirects are not followed."),
        (400, "The endpoint responded with 400."), (410, "The endpoint responded with 410."),
        (503, "The endpoint responded with 503."),
    ]

    @Test(arguments: responses)
    func `a response that is no success is listed as it was`(status: Int, failure: String) async throws {
        let endpoint = try await endpoint(status: status)
        let server = try await serve(endpoint.address + "/hook?key=hidden")
        try await Self.post(1, to: server)
        var list: [String: Any] = [:]
        try await eventually {
            list = try await Program.run("curl", ["-sS", "\(server.address)/webhooks"]).json()
            return (list["stuck"] as? [Any])?.isEmpty == false
        }
        let stuck = try #require((list["stuck"] as? [[String: Any]])?.first)
        #expect(stuck["failure"] as? String == failure)
        #expect(stuck["upload"] as? String == (try records().first))
        #expect(list["url"] as? String == endpoint.address)
        #expect(list["pending"] as? Int == 1)
        // Nothing followed the redirect.
        try await eventually {
            list = try await Program.run("curl", ["-sS", "\(server.address)/webhooks"]).json()
            return try announced().count == list["failedAttempts"] as? Int
        }
        #expect(await server.terminate() == 0)
    }

    @Test func `an endpoint that is not there is listed, without holding up a form`() async throws {
        let server = try await serve("http://127.0.0.1:1/hook")
        try await Self.post(3, to: server)
        #expect(try records().count == 3)
        try await eventually {
            let list = try await Program.run("curl", ["-sS", "\(server.address)/webhooks"]).json()
            return list["stuckCount"] as? Int == 3
        }
        #expect(await server.terminate() == 0)
    }

    private static let mistakes: [(options: [String], message: String)] = [
        (["--webhook", "app.example", "--webhook-secret", secret], "--webhook must be an address"),
        (["--webhook", "ftp://app.example", "--webhook-secret", secret], "--webhook must be an address"),
        (["--webhook", "https://me:word@app.example", "--webhook-secret", secret], "no password"),
        (["--webhook", "https://app.example"], "--webhook-secret-file"),
        (["--webhook", "https://app.example", "--webhook-secret", "secret"], "openssl rand"),
        (["--webhook-secret", secret], "no meaning without --webhook"),
        (["--webhook", "https://app.example", "--webhook-secret", secret, "--store", "s3://a/b"], "--store"),
    ]

    @Test(arguments: mistakes) func `mistakes are explained`(options: [String], message: String) async throws {
        let ending = try await Program.run(["serve"] + options)
        #expect(ending.status == 64)
        #expect(ending.messages.replacing(/\s+/, with: " ").contains(message), "\(ending.messages)")
    }

    @Test(arguments: ["", "no secret\n", secret + "\nno secret\n"])
    func `a file that has something else than secrets is refused`(text: String) async throws {
        let file = try folder.file(".secrets", Data(text.utf8)).path
        let ending = try await Program.run([
            "serve", "--port", "0", "--directory", folder.path, "--webhook", "https://app.example",
            "--webhook-secret-file", file,
        ])
        #expect(ending.status == 66)
        #expect(ending.messages.contains("whsec_"))
        #expect(!ending.messages.contains("MfKQ"))
    }
}
