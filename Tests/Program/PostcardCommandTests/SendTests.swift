import Foundation
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite("postcard send", .timeLimit(.minutes(10)))
struct SendTests {
    let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    func send(_ arguments: String..., input: Data = Data()) async throws -> Program.Ending {
        try await Program.run(["send"] + arguments, input: input)
    }

    /// Command lines that fail before anything is sent, with their exit status and a word of the message.
    static let failures: [(arguments: [String], status: Int32, word: String)] = [
        (["http://127.0.0.1:1/"], 64, "-F"),
        (["http://127.0.0.1:1/", "-F", "nothing"], 64, "name=value"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-H", "no field"], 64, "Name: value"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-X", "GET"], 64, "POST"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--timeout", "0"], 64, "timeout"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--answer-timeout", "0"], 64, "timeout"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-m", "0"], 64, "timeout"),
        (["http://127.0.0.1:1/", "-d", "a=b"], 64, "write each field as -F name=value"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--data-raw=x"], 64, "--data-raw is not an option of postcard"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-v"], 64, "--dry-run"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-o", "response"], 64, "> FILE"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-A", "me"], 64, "-H 'User-Agent: "),
        (["http://127.0.0.1:1/", "-F", "a=b", "--dry-run", "--json"], 64, "no response for --json"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--dry-run", "--as-curl"], 64, "choose one of them"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--retries", "-1"], 64, "retries"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--limit-rate", "0"], 64, "byte a second"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--limit-rate", "fast"], 64, "rate"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--retries", "9223372036854775807"], 64, "retries"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--timeout", "1e30"], 64, "timeout"),
        (["http://127.0.0.1:1/", "-F", "a=b;headers=\"Content-Disposition: x\""], 64, "Content-Disposition"),
        (["http://127.0.0.1:1/", "-F", "a=@~/no-such-file"], 66, "~/no-such-file"),
        (["http://127.0.0.1:1/", "-F", "a=@/etc/passwd/"], 66, "/etc/passwd/"),
        (["http://127.0.0.1:1/", "-F", "a=@-", "-F", "b=@-"], 64, "once"),
        (["nowhere", "-F", "a=b"], 64, "http://"),
        (["ftp://127.0.0.1/", "-F", "a=b"], 64, "http://"),
        (["http://", "-F", "a=b"], 64, "host"),
        (["http://127.0.0.1:99999/", "-F", "a=b"], 64, "99999"),
        (["http://127.0.0.1:1/", "-F", "a=@/no/such/file.jpg"], 66, "/no/such/file.jpg"),
        (["http://127.0.0.1:1/", "-F", "a=</no/such/file.txt"], 66, "/no/such/file.txt"),
        (["http://127.0.0.1:1/", "-F", "a=@/usr"], 66, "/usr is a directory"),
        (["http://127.0.0.1:1/", "-F", "a=@/etc/passwd", "--metadata", "none"], 66, "/etc/passwd cannot be removed"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--metadata", "some"], 64, "without-location"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--fit", "small"], 64, "size"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--fit", "0"], 64, "one byte"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--max-edge", "0"], 64, "one pixel"),
        (["http://127.0.0.1:1/", "-F", "a=b"], 69, "127.0.0.1:1"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--transport", "urlsession"], 69, "127.0.0.1:1"),
    ]

    @Test(arguments: failures)
    func `it says what went wrong, in words and by its exit status`(arguments: [String], status: Int32, word: String)
        async throws
    {
        let ending = try await Program.run(["send"] + arguments)
        #expect(ending.status == status)
        #expect(ending.messages.contains(word), "\(ending.messages)")
        #expect(ending.output.isEmpty)
    }

    @Test
    func `flags that commands of curl have are accepted, and -s says nothing of attempts that failed`() async throws {
        let arguments = ["http://127.0.0.1:1/", "-F", "a=b", "--retry", "1"]
        let loud = try await Program.run(["send", "-SfL"] + arguments)
        #expect(loud.status == 69 && loud.messages.contains("attempt 2 of 2"), "\(loud.messages)")
        let silent = try await Program.run(["send", "-sSfL"] + arguments)
        #expect(silent.status == 69 && !silent.messages.contains("attempt 2"), "\(silent.messages)")
        #expect(silent.messages.contains("127.0.0.1:1"))
        let late = try await Program.run(["send", "-m0.3"] + arguments.dropLast() + ["100"])
        #expect(late.status == 75 && late.messages.contains("0.3 seconds"), "\(late.messages)")
    }

    @Test(arguments: [
        (["http://127.0.0.1:1/", "-F", "a=b"], "connection-failed"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--retries", "1"], "connection-failed"),
        (["http://127.0.0.1:1/", "-F", "a=@/no/such/file.jpg"], "file-missing"),
        (["ftp://127.0.0.1/", "-F", "a=b"], "invalid-url"),
    ])
    func `with --json there is an object also if there is no response`(arguments: [String], code: String) async throws {
        let ending = try await Program.run(["send"] + arguments + ["--json"])
        #expect(ending.status != 0)
        let object = try ending.json()
        let error = try #require(object["error"] as? [String: Any])
        #expect(error["code"] as? String == code)
        #expect(error["delivery"] as? String == "never-arrived")
        #expect(error["message"] as? String != nil && object["seconds"] as? Double != nil)
        if arguments.contains("--retries") {
            #expect(object["attempts"] as? Int == 2)
            #expect(ending.messages.contains("postcard: attempt 2 of 2 in "), "\(ending.messages)")
        }
    }

    @Test
    func `a refusal has its error beside the response in JSON, and a body that is not text in base64`() async throws {
        let script = Self.responding("413 Content Too Large", "application/octet-stream", #"b"\xff\x00""#)
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let ending = try await send(server.address, "-F", "a=b", "--json")
        #expect(ending.status == 1)
        let object = try ending.json()
        #expect(object["status"] as? Int == 413)
        #expect(object["body"] as? String == "/wA=" && object["bodyIsBase64"] as? Bool == true)
        let error = try #require(object["error"] as? [String: Any])
        #expect(error["code"] as? String == "refused" && error["delivery"] as? String == "refused")
    }

    @Test(arguments: [true, false])
    func `a refusal without a limit, as a proxy sends it, leads to a size to try`(fitsServer: Bool) async throws {
        let script = Self.responding("413 Content Too Large", "text/html", #"b"<h1>413</h1>""#)
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let ending = try await Program.run(
            ["send", server.address, "-F", "a=b"] + (fitsServer ? ["--fit", "server"] : []))
        #expect(ending.status == 1)
        #expect(ending.messages.contains("try --fit 900KB") == fitsServer, "\(ending.messages)")
    }

    /// A server that gives one response to all requests.
    ///
    /// - Parameter body: The body, as bytes of Python.
    static func responding(_ status: String, _ type: String, _ body: String) -> String {
        """
        import http.server
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                body = \(body)
                self.wfile.write(b"HTTP/1.1 \(status)\\r\\nContent-Type: \(type)\\r\\nContent-Length: %d\\r\\n\\r\\n%s" % (len(body), body))
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print("http://127.0.0.1:%d" % server.server_address[1], flush=True)
        server.serve_forever()
        """
    }

    @Test(arguments: ["async-http", "urlsession"])
    func `a server that says nothing ends it with 75`(transport: String) async throws {
        let script = """
            import socket, time
            listener = socket.create_server(("127.0.0.1", 0))
            print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
            connection = listener.accept()[0]
            while connection.recv(65536): pass
            """
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let ending = try await send(server.address, "-F", "a=b", "--timeout", "0.3", "--transport", transport)
        #expect(ending.status == 75, "\(ending.messages)")
    }

    /// Answers when it has a form's head, and reads on.
    private static let hasty = """
        import socket
        listener = socket.create_server(("127.0.0.1", 0))
        print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
        while True:
            connection = listener.accept()[0]
            connection.recv(1)
            connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            try:
                while connection.recv(65536): pass
            except OSError: pass
        """

    @Test(arguments: ["async-http", "urlsession"])
    func `a success that comes before the form was sent ends it with 1, unless it is to be accepted`(transport: String)
        async throws
    {
        let server = try await RunningServer(["python3", "-c", Self.hasty], of: URL(filePath: "/usr/bin/env"))
        let file = try folder.sparseFile("large.bin", size: 64 << 20)
        let arguments = ["send", server.address, "-F", "a=@\(file.path)", "--transport", transport, "--json"]
        let strict = try await Program.run(arguments + ["--retries", "2"])
        #expect(strict.status == 1, "\(strict.messages)")
        #expect(strict.messages.contains("before it had the whole form"), "\(strict.messages)")
        #expect(try strict.json()["status"] as? Int == 200)
        #expect(try strict.json()["attempts"] as? Int == 1)
        let lenient = try await Program.run(arguments + ["--accept-early-answer"])
        #expect(lenient.status == 0, "\(lenient.messages)")
        #expect(try lenient.json()["body"] as? String == "ok")
    }

    @Test(arguments: ["async-http", "urlsession"])
    func `a response that comes drop by drop ends it with 75 when its time is over`(transport: String) async throws {
        let script = """
            import socket, threading, time
            def respond(connection):
                try:
                    connection.recv(65536)
                    connection.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 100000\\r\\n\\r\\n")
                    while True:
                        connection.sendall(b"a")
                        time.sleep(0.05)
                except OSError:
                    pass
            listener = socket.create_server(("127.0.0.1", 0))
            print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
            while True:
                threading.Thread(target=respond, args=(listener.accept()[0],), daemon=True).start()
            """
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        func end(after seconds: Int) async throws -> Program.Ending {
            try await send(server.address, "-F", "a=b", "--answer-timeout", "\(seconds)", "--transport", transport)
        }
        var ending = try await end(after: 1)
        // On a busy machine the head itself may be late.
        if ending.messages.contains("did not respond") { ending = try await end(after: 60) }
        #expect(ending.status == 75, "\(ending.messages)")
        #expect(ending.messages.contains("did not finish within"), "\(ending.messages)")
    }

    @Test
    func `names with backslashes are stored as they were given`() async throws {
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        let file = try folder.file("a.bin", [1])
        let ending = try await send(
            "\(server.address)/uploads", "-F", #"a\b\=text"#, "-F", #"file=@\#(file.path);filename="c\\d\\""#)
        #expect(ending.status == 0, "\(ending.messages)")
        let fields = try #require(try ending.json()["fields"] as? [[String: String]])
        #expect(fields == [["name": #"a\b\"#, "value": "text"]])
        let files = try #require(try ending.json()["files"] as? [[String: Any]])
        #expect(files.map { $0["filename"] as? String } == [#"c\d\"#])
    }

    @Test
    func `a refusal ends it with 1, and the server's own reason is shown`() async throws {
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path, "--max-field", "3"])
        let ending = try await send("\(server.address)/uploads", "-F", "a=four")
        #expect(ending.status == 1)
        #expect(ending.messages.contains("A text field has more than 3 bytes"), "\(ending.messages)")
        #expect(try ending.json()["code"] as? String == "field-too-large")
    }

    @Test(arguments: ["async-http", "urlsession"])
    func `fields, files and standard input arrive, and the response is printed`(transport: String) async throws {
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        let text = try folder.file("text.txt", "여러\n줄".utf8)
        let pictures = try SamplePictures.all()
        var arguments = ["send", "\(server.address)/uploads", "--json", "--transport", transport, "-F", "name=초코"]
        arguments += ["-F", "text=<\(text.path)", "-F", "log=@-;filename=build.log"]
        for picture in pictures { arguments += ["-F", "picture=@\(picture.path)"] }
        let ending = try await Program.run(arguments, input: Data("piped".utf8))
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.messages.isEmpty)
        let response = try ending.json()
        #expect(response["status"] as? Int == 201)
        #expect(response["attempts"] as? Int == 1)
        let sizes = try pictures.map { try Data(contentsOf: $0).count }
        #expect(response["bytesSent"] as? Int ?? 0 > sizes.reduce(0, +))
        let headers = try #require(response["headers"] as? [String: String])
        let record = try #require(response["body"] as? [String: Any])
        #expect(headers["location"] == "/uploads/\(record["id"] as? String ?? "")")
        let fields = try #require(record["fields"] as? [[String: String]])
        #expect(fields == [["name": "name", "value": "초코"], ["name": "text", "value": "여러\n줄"]])
        let files = try #require(record["files"] as? [[String: Any]])
        #expect(files.map { $0["filename"] as? String } == ["build.log"] + pictures.map(\.lastPathComponent))
        #expect(files.map { $0["size"] as? Int } == [5] + sizes)
        #expect(
            files.map { $0["contentType"] as? String } == ["text/plain", "image/jpeg", "image/png", "image/jpeg"])
    }

    @Test
    func `joined short options are understood, as curl's are`() async throws {
        let ending = try await send("http://example.com/", "--dry-run", "-Fa=b", "-XPUT", "-HX-Trace: 1")
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.text.hasPrefix("PUT / HTTP/1.1\r\nHost: example.com\r\nX-Trace: 1\r\n"))
        let clustered = try await send("http://example.com/", "--dry-run", "-sSkLXPUT", "-fgF", "a=b")
        #expect(clustered.status == 0 && clustered.text.hasPrefix("PUT / HTTP/1.1"), "\(clustered.messages)")
    }

    @Test
    func `a full disk behind standard output is not taken for a refusal`() async throws {
        let command = "'\(Program.url.path)' send http://example.com/ --dry-run -F a=b > /dev/full"
        #expect(try await Program.run("sh", ["-c", command]).status == 73)
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        for option in ["", "--json"] {
            let sending = "'\(Program.url.path)' send \(server.address)/uploads -F a=b \(option) > /dev/full"
            let ending = try await Program.run("sh", ["-c", sending])
            #expect(ending.status == 73 && !ending.messages.contains("arrived"), "\(ending.messages)")
        }
    }

    @Test
    func `a dry run writes the exact body and its head, which explain understands`() async throws {
        let picture = try #require(try SamplePictures.all().first)
        let ending = try await send(
            "http://example.com/a?b=c", "--dry-run", "-X", "put", "-H", "X-Trace: 1", "-F", "name=초코", "-F",
            "picture=@\(picture.path)")
        #expect(ending.status == 0)
        #expect(ending.text.hasPrefix("PUT /a?b=c HTTP/1.1\r\nHost: example.com\r\nX-Trace: 1\r\n"))
        let headEnd = try #require(ending.output.range(of: Data("\r\n\r\n".utf8))?.upperBound)
        #expect(ending.text.contains("\r\nContent-Length: \(ending.output.count - headEnd)\r\n"))
        #expect(ending.output.range(of: try Data(contentsOf: picture)) != nil)
        #expect(try await Program.run(["explain"], input: ending.output).status == 0)
        #expect(!ending.messages.contains("HTTP/1.1"))
        // A body without a length is in chunks.
        let command =
            "cat '\(picture.path)' | '\(Program.url.path)' send http://a/ -F f=@- --dry-run -H 'Host: b' -H Accept:"
        let piped = try await Program.run("sh", ["-c", "\(command) | '\(Program.url.path)' explain --json"])
        #expect(piped.status == 0, "\(piped.text)")
        let parts = try #require(try piped.json()["parts"] as? [[String: Any]])
        #expect(parts.map { $0["size"] as? Int } == [try Data(contentsOf: picture).count])
        #expect(piped.text.contains("http://b/") || !piped.text.contains("http://a/"))
    }
}
