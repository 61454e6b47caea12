import Foundation
import PostcardTestSupport
import Testing

@Suite("postcard explain", .timeLimit(.minutes(10)))
struct ExplainTests {
    private static let form = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n초코\r\n--XX--\r\n"

    /// The command for a body, as a shell reads it.
    private static let explain = "'\(Program.url.path)' explain --content-type 'multipart/form-data; boundary=XX'"

    @Test
    func `a valid form ends it with 0, and its parts are mapped`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("body", Self.form.utf8)
        let ending = try await Program.run(["explain", "--content-type", "multipart/form-data; boundary=XX", file.path])
        #expect(ending.status == 0)
        #expect(
            ending.text == """
                ✓ The form is valid.

                multipart/form-data; boundary=XX
                  part  offset  name  filename  type  bytes  sha256
                     0      50  a                         6  7f50e13e5194…

                """)
    }

    @Test func `the page's path is printed where there is no display, and a page that is not installed is reported`()
        async throws
    {
        let folder = try TemporaryFolder()
        let installed = URL(filePath: folder.path).resolvingSymlinksInPath()
        for name in ["bin", "share/postcard"] {
            try FileManager.default.createDirectory(
                at: installed.appending(path: name), withIntermediateDirectories: true)
        }
        // The same file under another path, as the program looks for itself.
        let program = installed.appending(path: "bin/postcard").path(percentEncoded: false)
        try FileManager.default.copyItem(atPath: Program.url.path, toPath: program)
        let command = ["-u", "DISPLAY", "-u", "WAYLAND_DISPLAY", program, "explain", "--page"]
        let missing = try await Program.run("env", command)
        #expect(missing.status == 66)
        #expect(missing.messages.contains("'make page' makes it"), "\(missing.messages)")
        let page = installed.appending(path: "share/postcard/explain.html")
        try Data("<!doctype html>".utf8).write(to: page)
        let printed = try await Program.run("env", command)
        #expect(printed.status == 0)
        #expect(printed.text == page.path(percentEncoded: false) + "\n")
        let mixed = try await Program.run(["explain", "--page", "request.txt"])
        #expect(mixed.status == 64)
    }

    @Test
    func `a broken form ends it with 1, and the byte, the reason and the fix are printed`() async throws {
        let request =
            "POST / HTTP/1.1\r\nContent-Type: multipart/form-data; boundary=XX\r\nContent-Length: 65\r\n\r\n"
            + Self.form.replacing("\r\n\r\n", with: "\n\r\n")
        let ending = try await Program.run(["explain", "-"], input: Data(request.utf8))
        #expect(ending.status == 1)
        let lines = ending.text.split(separator: "\n").map(String.init)
        #expect(lines.first == "✗ The form is not valid: 1 error.")
        #expect(lines.contains { $0.hasPrefix("error[bare-line-break]: ") })
        #expect(lines.contains { $0.hasPrefix("  at byte 46 of the body, part 0") })
        #expect(lines.contains { $0.hasPrefix("  why: ") } && lines.contains { $0.hasPrefix("  fix: ") })
        #expect(lines.allSatisfy { $0.count <= 80 })
    }

    @Test
    func `a form that a receiver takes and loses something of is not valid, and what loses it is said first`()
        async throws
    {
        let field = "\r\n--XX\r\nContent-Disposition: form-data; name="
        let picture =
            Array("\(field)\"p\"; filename=\"p.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n".utf8)
            + [0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x02, 0xFF, 0xD9, 0x0D, 0x0A]
        let rows: [(body: [UInt8], code: String)] = [
            (
                Array("\(field)\"a\"\r\n\r\n1\r\n--XX--\r\n\(field)\"b\"\r\n\r\n2\r\n--XX--\r\n".utf8),
                "parts-after-close-delimiter"
            ),
            (picture + picture + Array("\r\n--XX--\r\n".utf8), "extra-line-break-before-delimiter"),
        ]
        for row in rows {
            let command = ["explain", "--json", "--content-type", "multipart/form-data; boundary=XX"]
            let ending = try await Program.run(command, input: Data(row.body))
            #expect(ending.status == 1)
            let explanation = try ending.json()
            #expect(explanation["valid"] as? Bool == false)
            let problems = try #require(explanation["problems"] as? [[String: Any]])
            #expect(problems.first?["code"] as? String == row.code)
            #expect(problems.first?["severity"] as? String == "error")
            let leading = problems.first { $0["code"] as? String == "leading-line-break" }
            #expect(leading?["cause"] as? Int == 0)
        }
    }

    @Test
    func `as JSON it has the keys that scripts rely on`() async throws {
        let ending = try await Program.run(
            ["explain", "--json", "--content-type", "multipart/form-data; boundary=XX"],
            input: Data(Self.form.utf8.dropLast(9)))
        #expect(ending.status == 1)
        let explanation = try ending.json()
        #expect(explanation["valid"] as? Bool == false)
        #expect(explanation["boundary"] as? String == "XX")
        let part = try #require((explanation["parts"] as? [[String: Any]])?.first)
        #expect(Set(part.keys) == ["name", "filename", "contentType", "offset", "size", "sha256", "headers"])
        #expect(part["filename"] is NSNull)
        #expect(part["headers"] as? [[String]] == [["Content-Disposition", "form-data; name=\"a\""]])
        let problem = try #require((explanation["problems"] as? [[String: Any]])?.first)
        #expect(problem["code"] as? String == "truncated")
        #expect(problem["severity"] as? String == "error")
        #expect(problem["offset"] as? Int == 57)
        #expect(explanation["format"] as? String == "body")
        #expect(explanation["remarks"] as? [String] == [])
    }

    /// Inputs that are not requests, and the words that describe them.
    static let strangers: [(bytes: [UInt8], words: String)] = [
        ([], "empty"), ([0xFF, 0xD8, 0xFF, 0xE0], "image/jpeg"), ([0x7F, 0x45, 0x4C, 0x46], "a program"),
        (Array("Dear reader,\n".utf8), "text"), ([0x00, 0x9B, 0x31, 0x6D], "not text"),
    ]

    @Test(arguments: strangers)
    func `an input other than a request is described, and cannot control the terminal`(bytes: [UInt8], words: String)
        async throws
    {
        let ending = try await Program.run(["explain"], input: Data(bytes))
        #expect(ending.status == 1)
        let lines = ending.text.split(separator: "\n")
        #expect(lines.first?.hasPrefix("✗ The input is ") == true && lines.first?.contains(words) == true)
        #expect(lines.contains("error[malformed-request]"))
        #expect(!ending.text.unicodeScalars.contains { $0.properties.generalCategory == .control && $0 != "\n" })
    }

    @Test
    func `a trace of curl's is taken apart, and what its notation hides is said`() async throws {
        let trace = """
            == Info: Connected
            => Send header, 69 bytes (0x45)
            0000: POST / HTTP/1.1
            0011: Content-Type: multipart/form-data; boundary=XX
            0043:
            => Send data, 6 bytes (0x6)
            0000: --XX--
            <= Recv header, 2 bytes (0x2)
            """
        let ending = try await Program.run(["explain", "--json"], input: Data(trace.utf8))
        let explanation = try ending.json()
        #expect(explanation["format"] as? String == "curl-trace-ascii")
        #expect((explanation["remarks"] as? [String])?.isEmpty == false)
    }

    @Test
    func `of a HAR file with several uploads one is chosen by its number`() async throws {
        let body = Self.form.replacing("\"", with: "\\\"").replacing("\r\n", with: "\\r\\n")
        let entry = #"""
            {"request": {"method": "POST", "url": "http://localhost/PATH", "headers":
            [{"name": "Content-Type", "value": "multipart/form-data; boundary=XX"}], "postData": {"text": "BODY"}}}
            """#
            .replacing("BODY", with: body)
        let har = #"{"log": {"entries": [\#(entry.replacing("PATH", with: "a")),\#(entry)]}}"#
        let several = try await Program.run(["explain"], input: Data(har.utf8))
        #expect(several.status == 64)
        #expect(several.messages.contains("1  POST http://localhost/a") && several.messages.contains("--entry N"))
        let chosen = try await Program.run(["explain", "--entry", "2"], input: Data(har.utf8))
        #expect(chosen.status == 0, "\(chosen.text)")
        #expect(try await Program.run(["explain", "--entry", "3"], input: Data(har.utf8)).status == 64)
        #expect(try await Program.run(["explain"], input: Data("{}".utf8)).status == 66)
    }

    @Test
    func `what is certain is fixed in another file, from a file and from a pipe`() async throws {
        let folder = try TemporaryFolder()
        let broken = Data(Self.form.replacing("\r\n", with: "\n").utf8)
        let file = try folder.file("body", broken)
        let type = ["--content-type", "multipart/form-data; boundary=XX"]
        for (index, input) in [[file.path], []].enumerated() {
            let output = folder.url.appending(path: "fixed-\(index)")
            let ending = try await Program.run(["explain", "--fix", output.path] + type + input, input: broken)
            #expect(ending.status == 1)
            #expect(ending.text.contains("Fixed in "))
            #expect(try Data(contentsOf: output) == Data(Self.form.utf8))
            #expect(try await Program.run(["explain", output.path] + type).status == 0)
        }
    }

    @Test
    func `standard input is fixed from where its reading began, whatever was read of it before`() async throws {
        let folder = try TemporaryFolder()
        let output = folder.url.appending(path: "fixed")
        let input = try folder.file("input", ("0123456789" + Self.form.replacing("\r\n", with: "\n")).utf8)
        let commands = "dd bs=10 count=1 of=/dev/null 2> /dev/null; \(Self.explain) --fix '\(output.path)'"
        let ending = try await Program.run("sh", ["-c", "(\(commands)) < '\(input.path)'"])
        #expect(ending.status == 1, "\(ending.messages)")
        #expect(try Data(contentsOf: output) == Data(Self.form.utf8))
    }

    @Test
    func `a replaced file keeps its permissions, a link stays a link, and a new file is as private as the input`()
        async throws
    {
        let folder = try TemporaryFolder()
        let files = FileManager.default
        let body = Self.form.replacing("\r\n", with: "\n")
        for (name, permissions) in [("input", 0o640), ("private", 0o600), ("shared", 0o664)] {
            let file = try folder.file(name, body.utf8)
            try files.setAttributes([.posixPermissions: permissions], ofItemAtPath: file.path)
        }
        try files.createDirectory(atPath: "\(folder.path)/links", withIntermediateDirectories: false)
        for name in ["private", "new"] {
            try files.createSymbolicLink(
                atPath: "\(folder.path)/links/\(name)", withDestinationPath: "../\(name)")
        }
        let rows: [(command: String, file: String, permissions: Int)] = [
            ("cat input | EXPLAIN shared", "shared", 0o664), ("cat input | EXPLAIN links/private", "private", 0o600),
            ("cat input | EXPLAIN links/new", "new", 0o600), ("EXPLAIN copied input", "copied", 0o640),
            ("EXPLAIN directed < input", "directed", 0o640),
        ]
        for row in rows {
            let command = row.command.replacing("EXPLAIN", with: "\(Self.explain) --fix")
            let ending = try await Program.run("sh", ["-c", "cd '\(folder.path)'; umask 0; \(command)"])
            #expect(ending.status == 1, "\(row): \(ending.messages)")
            let path = "\(folder.path)/\(row.file)"
            #expect(files.contents(atPath: path) == Data(Self.form.utf8), "\(row)")
            let attributes = try files.attributesOfItem(atPath: path)
            #expect(attributes[.posixPermissions] as? Int == row.permissions, "\(row)")
            #expect(attributes[.type] as? FileAttributeType == .typeRegular, "\(row)")
        }
        for name in ["private", "new"] {
            #expect(try files.destinationOfSymbolicLink(atPath: "\(folder.path)/links/\(name)") == "../\(name)")
        }
    }

    @Test
    func `what is not a regular file is not replaced, and standard output is no file to fix`() async throws {
        let folder = try TemporaryFolder()
        let type = ["--content-type", "multipart/form-data; boundary=XX"]
        let pipe = folder.url.appending(path: "pipe")
        #expect(mkfifo(pipe.path, 0o600) == 0)
        for (path, words) in [(pipe.path, "it is a pipe"), (folder.path, "it is a directory")] {
            let ending = try await Program.run(["explain", "--fix", path] + type, input: Data(Self.form.utf8))
            #expect(ending.status == 73, "\(path)")
            #expect(ending.messages.contains(words), "\(ending.messages)")
        }
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["pipe"])
        let ending = try await Program.run(["explain", "--fix", "-"] + type, input: Data(Self.form.utf8))
        #expect(ending.status == 64)
        #expect(ending.messages.contains("./-"), "\(ending.messages)")
    }

    @Test
    func `a form to edit that finds no room leaves nothing`() async throws {
        let folder = try TemporaryFolder()
        let small = "--XX\r\nContent-Disposition: form-data; name=\"s\"; filename=\"s.txt\"\r\n\r\nsmall\r\n"
        let large = small.replacing("small", with: String(repeating: "x", count: 200_000))
        let input = try folder.file("input", (small + large + "--XX--\r\n").utf8)
        try FileManager.default.createDirectory(atPath: "\(folder.path)/empty", withIntermediateDirectories: false)
        for path in ["outer/inner", "empty"] {
            let command = "\(Self.explain) --edit '\(folder.path)/\(path)' '\(input.path)'"
            // Files of more than some blocks cannot be written, as on a disk that is full.
            let ending = try await Program.run("sh", ["-c", "trap '' XFSZ; ulimit -f 16; \(command)"])
            #expect(ending.status == 73, "\(ending.messages)")
            #expect(ending.messages.contains("\(path) cannot be written"), "\(ending.messages)")
        }
        #expect(try Set(FileManager.default.contentsOfDirectory(atPath: folder.path)) == ["input", "empty"])
        #expect(try FileManager.default.contentsOfDirectory(atPath: "\(folder.path)/empty").isEmpty)
    }

    @Test
    func `the JSON has what was fixed and what was not`() async throws {
        let folder = try TemporaryFolder()
        let type = ["--content-type", "multipart/form-data; boundary=XX"]
        let form = Self.form.replacing("초코", with: "Optional(1)")
        let rows: [(body: String, fixed: [String], left: [String])] = [
            (form.replacing("\r\n", with: "\n"), ["bare-line-break"], ["optional-description"]),
            (form, [], ["optional-description"]), ("hello", [], ["delimiter-not-found"]),
        ]
        for row in rows {
            let output = folder.url.appending(path: "fixed")
            let ending = try await Program.run(
                ["explain", "--json", "--fix", output.path] + type, input: Data(row.body.utf8))
            let report = try ending.json()
            #expect(report["fixed"] as? [String] == row.fixed)
            #expect(report["unfixed"] as? [String] == row.left)
        }
    }

    @Test
    func `a warning that stays is no question to the sender`() async throws {
        let folder = try TemporaryFolder()
        let output = folder.url.appending(path: "fixed")
        let type = ["--content-type", "multipart/form-data; boundary=XX"]
        let form = Self.form.replacing("초코", with: "nil").replacing("\r\n", with: "\n")
        let ending = try await Program.run(["explain", "--fix", output.path] + type, input: Data(form.utf8))
        #expect(ending.text.contains("Left, because it may be meant\n  null-text: "), "\(ending.text)")
    }

    @Test
    func `an input that comes only once and finds no room is explained or refused, never fixed in part`() async throws {
        let folder = try TemporaryFolder()
        let output = folder.url.appending(path: "fixed")
        let body = Self.form.replacing("초코", with: String(repeating: "x", count: 200_000)).dropLast(2)
        let command = [
            Program.url.path, "explain", "--content-type", "multipart/form-data; boundary=XX", "--fix", output.path,
        ]
        let words = command.map { "'\($0)'" }.joined(separator: " ")
        // Files of more than some blocks cannot be written, as on a disk that is full.
        let input = try folder.file("body", body.utf8)
        let ending = try await Program.run(
            "sh", ["-c", "trap '' XFSZ; ulimit -f 16; cat '\(input.path)' | \(words)"])
        #expect(ending.status == 73, "\(ending.text)")
        #expect(ending.messages.contains("cannot be kept"))
        #expect(!FileManager.default.fileExists(atPath: output.path))
    }

    @Test
    func `what cannot be fixed leaves no file`() async throws {
        let folder = try TemporaryFolder()
        let output = folder.url.appending(path: "fixed")
        let ending = try await Program.run(["explain", "--fix", output.path], input: Data([0xFF, 0xD8, 0xFF, 0xE0]))
        #expect(ending.status == 1)
        #expect(ending.text.contains("Nothing is fixed"))
        #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path).isEmpty)
    }

    @Test
    func `servers that are named judge by their settings, and one that is not known is a usage error`() async throws {
        let type = ["--content-type", "multipart/form-data; boundary=XX"]
        let field = "--XX\r\nContent-Disposition: form-data; name=\"a\"; filename=\"a\"\r\n\r\n"
        let large = Data((field + String(repeating: "x", count: 3 << 20) + "\r\n--XX--\r\n").utf8)
        let php = try await Program.run(["explain", "--against", "php"] + type, input: large)
        #expect(php.status == 1)
        #expect(php.text.contains("error[refused-by-server]") && php.text.contains("upload_max_filesize"))
        let three = try await Program.run(["explain", "--against", "php,nginx,vapor"] + type, input: large).text
        for setting in ["upload_max_filesize", "client_max_body_size", "routes.defaultMaxBodySize"] {
            #expect(three.contains(setting), "\(setting)")
        }
        let go = try await Program.run(["explain", "--against", "go"] + type, input: large)
        #expect(go.status == 0, "\(go.text)")
        #expect(try await Program.run(["explain", "--against", "geocities"]).status == 64)
    }

    @Test
    func `what cannot be read ends it with 66, and what cannot be understood with 64`() async throws {
        #expect(try await Program.run(["explain", "/no/such/file"]).status == 66)
        #expect(try await Program.run(["explain", "/usr"]).status == 66)
        #expect(try await Program.run(["explain", "a", "b"]).status == 64)
        #expect(try await Program.run(["explain", "--listen", "0", "a"]).status == 64)
        #expect(try await Program.run(["explain", "--entry", "0"]).status == 64)
        for (options, words) in [
            (["--host", "::1"], "--listen PORT"), (["--timeout", "5"], "--listen PORT"),
            (["--listen", "0", "--timeout", "0"], "from 1 to a day"), (["--against", ""], "The known servers are"),
            (["--against", ","], "The known servers are"),
        ] {
            let ending = try await Program.run(["explain"] + options)
            #expect(ending.status == 64, "\(options)")
            #expect(ending.messages.contains(words), "\(ending.messages)")
        }
    }
}

@Suite("postcard demo")
struct DemoTests {
    @Test
    func `it ends with 0 after three digests that are the same`() async throws {
        let folder = try TemporaryFolder()
        let ending = try await Program.run(["demo", "--directory", folder.path])
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.text.split(separator: "\n").count { $0.contains("  same  ") } == 3)
    }
}
