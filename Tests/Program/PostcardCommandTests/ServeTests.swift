import Crypto
import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite("postcard serve", .timeLimit(.minutes(10)))
struct ServeTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func serve(_ options: String...) async throws -> RunningServer {
        try await RunningServer(["serve", "--port", "0", "--directory", folder.path] + options)
    }

    /// What is in the receiver's directory, except its own bookkeeping.
    private func records() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasPrefix(".") }
    }

    private func temporaryFiles() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path + "/.incoming")
    }

    @Test
    func `five pictures and Korean text from curl arrive byte for byte and name by name`() async throws {
        let server = try await serve()
        let pictures = try SamplePictures.all()
        let five = pictures + pictures.prefix(2)
        var arguments = ["-sS", "-F", "이름=초코", "-F", "message=안녕하세요,\n제주에서"]
        for picture in five { arguments += ["-F", "사진=@\(picture.path)"] }
        let ending = try await Program.run("curl", arguments + ["\(server.address)/uploads"])
        let record = try ending.json()
        let fields = try #require(record["fields"] as? [[String: String]])
        #expect(fields == [["name": "이름", "value": "초코"], ["name": "message", "value": "안녕하세요,\n제주에서"]])
        let files = try #require(record["files"] as? [[String: Any]])
        #expect(files.map { $0["name"] as? String } == Array(repeating: "사진", count: 5))
        #expect(files.map { $0["filename"] as? String } == five.map(\.lastPathComponent))
        for (file, picture) in zip(files, five) {
            let path = try #require(file["url"] as? String)
            let fetched = try await Program.run("curl", ["-sS", server.address + path])
            #expect(fetched.output == (try Data(contentsOf: picture)))
            #expect(file["sha256"] as? String == SHA256.hash(data: fetched.output).hexadecimal)
        }
    }

    @Test
    func `forms are posted where --path says, and limits are told by their names`() async throws {
        let server = try await serve(
            "--path", "/api/v1/images", "--max-body", "2kB", "--max-file", "1000", "--max-field", "9")
        let address = "\(server.address)/api/v1/images"
        #expect(try await Program.run("curl", ["-sS", "-F", "a=b", address]).json()["id"] != nil)
        let cases = [
            ("a=0123456789", "field-too-large"),
            ("a=@\(try folder.file(".1", Data(count: 1001)).path)", "file-too-large"),
            ("a=@\(try folder.file(".2", Data(count: 2001)).path)", "body-too-large"),
        ]
        for (part, code) in cases {
            let ending = try await Program.run("curl", ["-sS", "-F", part, address])
            #expect(try ending.json()["code"] as? String == code)
            #expect(try ending.json()["status"] as? Int == 413)
        }
        #expect(try records().count == 1)
        #expect(try temporaryFiles().isEmpty)
    }

    @Test func `the record has fields and files in the order of the form too`() async throws {
        let server = try await serve()
        let file = try folder.file(".file", Data("content".utf8)).path
        let parts = ["-F", "a=1", "-F", "f=@\(file)", "-F", "b=2", "-F", "g=@\(file)"]
        let record = try await Program.run("curl", ["-sS"] + parts + ["\(server.address)/uploads"]).json()
        let order = [["field": 0], ["file": 0], ["field": 1], ["file": 1]]
        #expect(record["parts"] as? [[String: Int]] == order)
        let id = try #require(record["id"] as? String)
        let stored = try await Program.run("curl", ["-sS", "\(server.address)/uploads/\(id)"]).json()
        #expect(stored["parts"] as? [[String: Int]] == order)
    }

    @Test(
        arguments: [
            (nil, 201, "image/jpeg", "image/png"), ("record", 201, "image/jpeg", "image/png"),
            ("correct", 201, "image/png", nil), ("refuse", 415, nil, nil),
        ] as [(String?, Int, String?, String?)])
    func `a type that the first bytes contradict is recorded, corrected or refused`(
        policy: String?, status: Int, type: String?, detected: String?
    ) async throws {
        let server = try await RunningServer(
            ["serve", "--port", "0", "--directory", folder.path] + (policy.map { ["--contradicted-types", $0] } ?? []))
        let png = try folder.file(".png", Data([0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A])).path
        func post(_ part: String) async throws -> [String: Any] {
            try await Program.run("curl", ["-sS", "-F", part, "\(server.address)/uploads"]).json()
        }
        let answer = try await post("f=@\(png);type=image/jpeg")
        let file = (answer["files"] as? [[String: Any]])?.first
        #expect(answer["status"] as? Int == (status == 201 ? nil : status))
        #expect(answer["code"] as? String == (status == 201 ? nil : "content-contradicts-type"))
        #expect(file?["contentType"] as? String == type)
        #expect(file?["detectedType"] as? String == detected)
        // What says nothing, and what is not known, contradicts nothing.
        for part in ["f=@\(png);type=application/octet-stream", "f=@\(png);type=image/x-own"] {
            let file = (try await post(part)["files"] as? [[String: Any]])?.first
            #expect(file != nil && file?["detectedType"] == nil)
        }
    }

    @Test func `a picture has a small one, and other files have none`() async throws {
        let server = try await serve()
        let picture = try #require(try SamplePictures.all().first { $0.pathExtension == "jpg" })
        let text = try folder.file(".jpg", Data("no picture".utf8)).path
        let record = try await Program.run(
            "curl", ["-sS", "-F", "p=@\(picture.path)", "-F", "p=@\(text)", "\(server.address)/uploads"]
        ).json()
        let files = try #require(record["files"] as? [[String: Any]]).compactMap { $0["url"] as? String }
        try #require(files.count == 2)
        let small = try await Program.run("curl", ["-sSi", server.address + files[0] + "/thumbnail"])
        guard small.text.hasPrefix("HTTP/1.1 200") else {
            // This build has no codecs.
            let page = try await Program.run("curl", ["-sS", server.address + "/"])
            return #expect(page.text.contains(#""hasThumbnails":false"#))
        }
        let head = small.text.lowercased()
        #expect(head.contains("content-type: image/jpeg") && head.contains("nosniff"))
        let tag = try #require(small.text.firstMatch(of: /(?i)etag: (\S+)/)?.1)
        let again = try await Program.run(
            "curl", ["-sSi", "-H", "If-None-Match: \(tag)", server.address + files[0] + "/thumbnail"])
        #expect(again.text.hasPrefix("HTTP/1.1 304"))
        for path in [files[1], files[0].dropLast() + "7"] {
            let none = try await Program.run("curl", ["-sS", server.address + path + "/thumbnail"]).json()
            #expect(none["status"] as? Int == 404)
        }
    }

    @Test func `limits of parts and their headers are set on the command line`() async throws {
        let server = try await serve(
            "--max-parts", "2", "--max-part-header", "200", "--max-part-header-fields", "2", "--max-preamble", "10",
            "--max-epilogue", "12")
        let part = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nc\r\n"
        let header = "--b\r\nContent-Disposition: form-data; name=\"a\"\r\n"
        let cases = [
            (part + part + "--b--", nil), (part + part + part + "--b--", "too-many-parts"),
            (header + "X: \(String(repeating: "x", count: 100))\r\n\r\nc\r\n--b--", nil),
            (header + "X: \(String(repeating: "x", count: 200))\r\n\r\nc\r\n--b--", "header-too-large"),
            (header + "X: y\r\nZ: z\r\n\r\nc\r\n--b--", "too-many-header-fields"),
            ("1234567890\r\n" + part + "--b--", nil), ("12345678901\r\n" + part + "--b--", "preamble-too-large"),
            (part + "--b--\r\n123456789012", nil), (part + "--b--\r\n1234567890123", "epilogue-too-large"),
        ]
        for (body, code) in cases {
            let file = try folder.file(".body", body.utf8)
            let ending = try await Program.run(
                "curl",
                [
                    "-sS", "-H", "Content-Type: multipart/form-data; boundary=b", "--data-binary", "@\(file.path)",
                    "\(server.address)/uploads",
                ])
            #expect(try ending.json()["code"] as? String == code, "\(body)")
        }
        let help = try await Program.run(["serve", "--help"])
        for text in ["parts in a form (1000)", "(16384)", "(64)", "(8192)"] { #expect(help.text.contains(text)) }
    }

    @Test func `a shutdown waits for a slow sender only for as long as --shutdown-timeout says`() async throws {
        try Tool.require("curl")
        let server = try await serve("--shutdown-timeout", "0.3", "--minimum-rate", "0", "--idle-timeout", "600")
        let picture = try folder.file(".picture", Data(count: 20_000_000))
        async let sent = Program.run(
            "curl",
            [
                "-sS", "--max-time", "300", "--limit-rate", "20k", "-F", "f=@\(picture.path)",
                "\(server.address)/uploads",
            ])
        try await eventually { try !temporaryFiles().isEmpty }
        #expect(await server.terminate() == 0)
        #expect(try await sent.status != 0)
        #expect(try records().isEmpty)
    }

    @Test(arguments: [SIGTERM, SIGINT])
    func `a second signal ends it at once, and a screening command that runs with it`(signal: Int32) async throws {
        try Tool.require("curl")
        let pidFile = folder.path + "/.pid"
        let server = try await serve(
            "--shutdown-timeout", "600", "--screen", "sh -c 'exec 2>/dev/null; echo $$ > \(pidFile); exec sleep 600'")
        async let sent = Program.run(
            "curl", ["-sS", "--max-time", "300", "-F", "f=x;filename=x", "\(server.address)/uploads"])
        func process() -> Int32? {
            let text = try? String(contentsOfFile: pidFile, encoding: .utf8)
            return text?.hasSuffix("\n") == true ? text.flatMap { Int32($0.dropLast()) } : nil
        }
        try await eventually { process() != nil }
        server.signal(signal)
        // Once no connection is accepted any more, the first signal has started the shutdown.
        try await eventually { try await Program.run("curl", ["-s", "\(server.address)/health"]).status != 0 }
        server.signal(signal)
        #expect(await server.exitStatus() == 128 + signal)
        #expect(try await sent.status != 0)
        let screening = try #require(process())
        // Its parent is gone, and it may be that no one asks for its end.
        try await eventually {
            if Foundation.kill(screening, 0) != 0 { return true }
            return try await Program.run("ps", ["-o", "stat=", "-p", "\(screening)"]).text.hasPrefix("Z")
        }
    }

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

    @Test func `each request has a line if it is asked for, in text or as JSON`() async throws {
        for format in ["text", "json", "none"] {
            let server = try await serve("--log-format", format, "--max-field", "3")
            let url = "\(server.address)/uploads"
            _ = try await Program.run(["send", url, "-F", "a=b", "-F", "f=@/etc/hostname"])
            _ = try await Program.run(["send", url, "-F", "a=four"])
            #expect(await server.terminate() == 0)
            let lines = try server.messages.split(separator: "\n").filter { $0.contains("/uploads") }
            switch format {
            case "text":
                #expect(lines.count == 2)
                #expect(lines.first?.contains("  127.0.0.1  POST /uploads  201  ") == true)
                #expect(lines.first?.hasSuffix("  1 file") == true)
                #expect(lines.last?.hasSuffix("  field-too-large") == true, "\(lines)")
            case "json":
                let objects = try lines.map { line in
                    try #require(try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                }
                #expect(objects.map { $0["status"] as? Int } == [201, 413])
                #expect(objects.first?["files"] as? Int == 1 && objects.first?["upload"] as? String != nil)
                #expect(objects.last?["code"] as? String == "field-too-large")
                #expect((objects.first?["time"] as? String)?.hasSuffix("Z") == true)
            default: #expect(lines.isEmpty)
            }
        }
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

    @Test func `a receiver keeps descriptors for requests, however many connections are allowed`() async throws {
        let limit = ProcessInfo.processInfo.activeProcessorCount * 7 + 80
        let bash = URL(filePath: "/bin/bash")
        let server = try await RunningServer(
            [
                "-c", #"ulimit -n "$0" && exec "$@""#, "\(limit)", Program.url.path, "serve", "--port", "0",
                "--directory", folder.path, "--max-connections", "10000", "--client-share", "100",
                // Connections that are closed while the machine is busy would leave descriptors.
                "--idle-timeout", "600",
            ], of: bash)
        let port = try #require(URL(string: server.address)?.port)
        let connections = try await RunningServer(
            [
                "-c",
                "for i in $(seq \(limit)); do exec {s}<>/dev/tcp/127.0.0.1/\(port); done; echo open; exec tail -f /dev/null",
            ], of: bash)
        connections.kill()
        // Until those connections are closed, another of the same address is beyond its share, and closed at once.
        try await eventually {
            let health = try await Program.run("curl", ["-sS", "--max-time", "300", server.address + "/health"])
            return health.text == "ok"
        }
        #expect(try !server.messages.contains("Could not accept connections"))
        #expect(await server.terminate() == 0)
    }

    @Test
    func `it ends with 0 when it is told to end`() async throws {
        let server = try await serve()
        #expect(await server.terminate() == 0)
    }

    @Test
    func `what cannot be served is said by the exit status`() async throws {
        let server = try await serve()
        let port = try #require(URL(string: server.address)?.port)
        let sameDirectory = try await Program.run(["serve", "--port", "0", "--directory", folder.path])
        #expect(sameDirectory.status == 73)
        let other = try TemporaryFolder()
        let samePort = try await Program.run(["serve", "--port", "\(port)", "--directory", other.path])
        #expect(samePort.status == 69)
        let wrong = [
            ["--port", "70000"], ["--max-body", "much"], ["--path", "images"], ["--max-uploads", "0"],
            ["--idle-timeout", "-1"], ["--shutdown-timeout", "-1"], ["--max-parts", "0"], ["--max-part-header", "0"],
            ["--max-part-header-fields", "many"], ["--token", "with blank"], ["--certificate", "a.pem"],
            ["--log-level", "loud"], ["--max-connections", "0"], ["--client-share", "0"], ["--max-screenings", "0"],
            ["--client-share", "101"], ["--keep-alive-timeout", "0"], ["--trust-proxy", "10.0.0.0/33"],
            ["--trust-proxy", "localhost"], ["--proxy-protocol", "--host", "0.0.0.0", "--open"],
            ["--store", "s3://uploads", "--directory", folder.path], ["--s3-endpoint", "http://127.0.0.1:1"],
            ["--s3-region", "us-east-1"], ["--store", "s3://uploads", "--keep-free", "0"], ["--store", "uploads"],
            ["--allow-origin", "app.example"], ["--allow-origin", "https://app.example/"], ["--allow-origin", "null"],
            ["--allow-host", "files.example:8080"], ["--allow-host", "https://files.example"],
            ["--allow-host", "[::1]"], ["--store", "s3://uploads", "--s3-endpoint", "http://127.0.0.1:70000"],
            ["--webhook", "http://127.0.0.1:80800/hook", "--webhook-secret", "whsec_MDEyMzQ1Njc4OWFiY2RlZmdoaWprbG1u"],
        ]
        for arguments in wrong {
            #expect(try await Program.run(["serve"] + arguments).status == 64)
        }
        let empty = try other.file("empty", [])
        let unreadable = [
            ["--rules", "/no/such"], ["--rules", empty.path], ["--token-file", empty.path],
            ["--certificate", "/no/such", "--private-key", "/no/such"],
        ]
        for arguments in unreadable {
            let ending = try await Program.run(["serve", "--port", "0", "--directory", other.path] + arguments)
            #expect(ending.status == 66, "\(ending.messages)")
        }
    }

    @Test
    func `killed in the middle of uploads, it has every answered one whole and nothing half`() async throws {
        let content = Data((0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31) })
        let picture = try folder.file(".picture", content)
        // A busy machine may hold senders and the receiver up for longer than either usually waits.
        let server = try await serve("--minimum-rate", "0", "--idle-timeout", "300")
        let (answered, failures) = try await Self.upload(picture, times: 100, to: server) { _ in }
        #expect(answered.count == 100, "\(failures)")
        let (answeredBeforeKill, _) = try await Self.upload(picture, times: 16, to: server) {
            if $0 == 4 { server.kill() }
        }

        let revived = try await serve()
        let stored = try records()
        #expect(Set(answered + answeredBeforeKill).subtracting(stored).isEmpty)
        #expect(try temporaryFiles().isEmpty)
        for id in stored {
            let ending = try await Program.run("curl", ["-sS", "\(revived.address)/uploads/\(id)/files/0"])
            #expect(ending.output == content)
        }
        #expect(try await Program.run(["send", "\(revived.address)/uploads", "-F", "a=b"]).status == 0)
    }

    /// Sends a picture many times, sixteen at a time, and gives the identifiers that were answered, and why others were
    /// not.
    private static func upload(
        _ picture: URL, times: Int, to server: RunningServer, onResponse: @Sendable (Int) -> Void
    ) async throws -> (answered: [String], failures: [String]) {
        let url = try #require(URL(string: "\(server.address)/uploads"))
        var client = UploadClient(transport: AsyncHTTPTransport(), timeouts: UploadTimeouts(idle: .seconds(300)))
        client.timeouts.connect = .seconds(300)
        return await withTaskGroup(of: Result<String?, any Error>.self) { [client] group in
            func add() {
                group.addTask {
                    var form = MultipartForm()
                    form.append("초코", named: "name")
                    form.append(fileAt: picture, named: "picture")
                    do {
                        let response = try await client.upload(form, to: url)
                        return .success(response.headerFields[.location]?.split(separator: "/").last.map(String.init))
                    } catch {
                        return .failure(error)
                    }
                }
            }
            for _ in 0..<min(times, 16) { add() }
            var begun = min(times, 16)
            var (answered, failures): ([String], [String]) = ([], [])
            for await result in group {
                switch result {
                case .success(let id?):
                    answered.append(id)
                    onResponse(answered.count)
                case .success(nil): failures.append("a response without a Location")
                case .failure(let error): failures.append("\(error)")
                }
                if begun < times {
                    begun += 1
                    add()
                }
            }
            return (answered, failures)
        }
    }
}
