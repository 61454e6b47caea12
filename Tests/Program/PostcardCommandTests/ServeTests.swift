import Crypto
import Foundation
import PostcardForm
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite("postcard serve", .timeLimit(.minutes(10)))
struct ServeTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func serve(_ options: String...) async throws -> RunningServer {
        try await RunningServer(["serve", "--port", "0", "--directory", folder.path] + options)
    }

    /// What is in the receiver's directory, except its own bookkeeping.
    func records() throws -> [String] {
        try FileManager.default.contentsOfDirectory(atPath: folder.path).filter { !$0.hasPrefix(".") }
    }

    func temporaryFiles() throws -> [String] {
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
}
