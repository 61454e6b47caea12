import Foundation
import PostcardPictures
import PostcardSamples
import PostcardTestSupport
import Testing

@Suite("postcard send", .timeLimit(.minutes(10)))
struct SendTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
    }

    private func send(_ arguments: String..., input: Data = Data()) async throws -> Program.Ending {
        try await Program.run(["send"] + arguments, input: input)
    }

    /// Command lines that fail before anything is sent, with their exit status and a word of the message.
    static let failures: [(arguments: [String], status: Int32, word: String)] = [
        (["http://127.0.0.1:1/"], 64, "-F"),
        (["http://127.0.0.1:1/", "-F", "nothing"], 64, "name=value"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-H", "no field"], 64, "Name: value"),
        (["http://127.0.0.1:1/", "-F", "a=b", "-X", "GET"], 64, "POST"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--timeout", "0"], 64, "timeout"),
        (["http://127.0.0.1:1/", "-F", "a=b", "--response-timeout", "0"], 64, "timeout"),
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
        let lenient = try await Program.run(arguments + ["--accept-early-response"])
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
            try await send(server.address, "-F", "a=b", "--response-timeout", "\(seconds)", "--transport", transport)
        }
        var ending = try await end(after: 1)
        // On a busy machine the head itself may be late.
        if ending.messages.contains("did not respond") { ending = try await end(after: 60) }
        #expect(ending.status == 75, "\(ending.messages)")
        #expect(ending.messages.contains("did not finish within"), "\(ending.messages)")
    }

    @Test(arguments: [nil, "as-is", "without-location", "none"] as [String?])
    func `what is to be removed of a picture's metadata is not sent`(choice: String?) async throws {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        for chunk in ["tEXtexif:GPSPosition\0SECRET", "tEXtTitle\0KEPT", "IEND"] {
            bytes += [0, 0, 0, UInt8(chunk.utf8.count - 4)] + Array(chunk.utf8) + [0, 0, 0, 0]
        }
        let picture = try folder.file("a.png", bytes)
        let server = try await RunningServer(["serve", "--port", "0", "--directory", folder.path])
        let options = choice.map { ["--metadata", $0] } ?? []
        let ending = try await Program.run(
            ["send", "\(server.address)/uploads", "-F", "text=b", "-F", "a=@\(picture.path)", "--verify"] + options)
        #expect(ending.status == 0, "\(ending.messages)")
        #expect(ending.messages.contains("a.png is sent without its position") == (choice == nil), "\(ending.messages)")
        let dry = try await Program.run(["send", server.address, "-F", "a=@\(picture.path)", "--dry-run"] + options)
        #expect((dry.output.range(of: Data("SECRET".utf8)) != nil) == (choice == "as-is"))
        #expect((dry.output.range(of: Data("KEPT".utf8)) != nil) == (choice != "none"))
    }

    private static func png(_ text: String) -> [UInt8] {
        var bytes: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        for chunk in ["tEXtexif:GPSPosition\0\(text)", "IEND"] {
            bytes += [0, 0, 0, UInt8(chunk.utf8.count - 4)] + Array(chunk.utf8) + [0, 0, 0, 0]
        }
        return bytes
    }

    @Test(
        arguments: [nil, "as-is", "without-location", "none"] as [String?],
        ["a=@-;filename=a.png", "a=@-;encoder=quoted-printable", "a=<-", "a=<FILE", "a=<FILE;encoder=quoted-printable"])
    func `a picture from standard input or through < is treated as --metadata says`(choice: String?, part: String)
        async throws
    {
        let picture = Self.png("\nSECRET")
        let file = try folder.file("a.png", picture)
        let options = choice.map { ["--metadata", $0] } ?? []
        let dry = try await Program.run(
            ["send", "http://127.0.0.1:1/", "-F", part.replacing("FILE", with: file.path), "--dry-run", "--crlf"]
                + options,
            input: Data(picture))
        #expect(dry.status == 0, "\(dry.messages)")
        #expect((dry.output.range(of: Data("SECRET".utf8)) != nil) == (choice == "as-is"))
        #expect(dry.messages.contains("is sent without its position. To") == (choice == nil), "\(dry.messages)")
        if choice == "as-is", !part.contains("encoder") { #expect(dry.output.range(of: Data(picture)) != nil) }
    }

    @Test
    func `what is no picture passes through standard input and <, and is refused if its metadata has to go`()
        async throws
    {
        let document = Data("%PDF-1.7\u{FF}".unicodeScalars.map { UInt8($0.value) })
        for part in ["a=@-", "a=<-"] {
            let dry = try await Program.run(["send", "http://127.0.0.1:1/", "-F", part, "--dry-run"], input: document)
            #expect(dry.status == 0 && dry.output.range(of: document) != nil, "\(dry.messages)")
            #expect(!dry.messages.contains("is sent"), "\(dry.messages)")
            for choice in ["without-location", "none"] {
                let ending = try await Program.run(
                    ["send", "http://127.0.0.1:1/", "-F", part, "--dry-run", "--metadata", choice], input: document)
                #expect(ending.status == 66, "\(ending.messages)")
                #expect(ending.messages.contains("Standard input") && ending.messages.contains("application/pdf"))
            }
        }
        let text = try await Program.run(
            ["send", "http://127.0.0.1:1/", "-F", "a=<-", "--dry-run", "--metadata", "none"], input: Data("a text".utf8)
        )
        #expect(text.status == 0, "\(text.messages)")
    }

    @Test
    func `what is removed is named only if there was any, and a file that is not understood too`() async throws {
        func messages(_ name: String, _ bytes: [UInt8], _ options: String...) async throws -> String {
            let file = try folder.file(name, bytes)
            let dry = try await Program.run(
                ["send", "http://127.0.0.1:1/", "-F", "a=@\(file.path)", "--dry-run"] + options)
            #expect(dry.status == 0, "\(dry.messages)")
            return dry.messages
        }
        let picture = Array(try Data(contentsOf: #require(SamplePictures.all().first { $0.pathExtension == "jpg" })))
        let zeros = try await messages("zeros.jpg", picture + [UInt8](repeating: 0, count: 500))
        #expect(!zeros.contains("is sent"), "\(zeros)")
        let position = try await messages("two.jpg", Self.png("SECRET") + Array("SECRET".utf8))
        #expect(position.contains("two.jpg is sent without its position and the data after its end."), "\(position)")
        let cut = try await messages("cut.png", Array(Self.png("SECRET").dropLast(20)))
        let line = "cut.png is sent as it is with all its metadata. The metadata cannot be removed"
        #expect(cut.contains(line), "\(cut)")
        let asked = try await messages("asked.png", Self.png("SECRET") + [1], "--metadata", "none")
        #expect(asked.contains("asked.png is sent without the data after its end."), "\(asked)")
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `a motion photo that becomes a still picture is named`() async throws {
        let picture = try #require(try SamplePictures.all().first { $0.pathExtension == "jpg" })
        let video: [UInt8] =
            [0, 0, 0, 16] + Array("ftypisom\0\0\0\0".utf8) + [0, 0, 0, 12] + Array("mdatABCD".utf8) + [0, 0, 0, 8]
            + Array("moov".utf8)
        let file = try folder.file("motion.jpg", Array(try Data(contentsOf: picture)) + video)
        for (fit, isStill) in [("50kB", true), ("50MB", false)] {
            for arguments in [["-F", "a=@\(file.path)"], ["-F", "a=@-;filename=motion.jpg"]] {
                let dry = try await Program.run(
                    ["send", "http://127.0.0.1:1/", "--dry-run", "--fit", fit] + arguments,
                    input: try Data(contentsOf: file))
                #expect(dry.status == 0, "\(dry.messages)")
                let line = "motion.jpg is sent as a still picture, without its video"
                #expect(dry.messages.contains(line) == isStill, "\(dry.messages)")
                #expect((dry.output.range(of: Data("mdatABCD".utf8)) == nil) == isStill)
            }
        }
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `a picture that fits already loses its position too`() async throws {
        let picture = try #require(try SamplePictures.all().first { $0.pathExtension == "jpg" })
        // EXIF with a directory for a position (Exif 3.0 §4.6.6).
        let directory: [UInt8] = [0, 1, 0, 1, 0, 2, 0, 0, 0, 2, 0x4E, 0, 0, 0, 0, 0, 0, 0]
        let exif =
            Array("Exif\0\0MM".utf8)
            + [0, 42, 0, 0, 0, 8, 0, 1, 0x88, 0x25, 0, 4, 0, 0, 0, 1, 0, 0, 0, 26, 0, 0, 0, 0] + directory
        var bytes = Array(try Data(contentsOf: picture))
        bytes.insert(contentsOf: [0xFF, 0xE1, 0, UInt8(exif.count + 2)] + exif, at: 2)
        let file = try folder.file("place.jpg", bytes)
        for (options, isKept) in [(["--fit", "50MB"], false), ([], false), (["--metadata", "as-is"], true)] {
            let dry = try await Program.run(
                ["send", "http://127.0.0.1:1/", "-F", "a=@\(file.path)", "--dry-run"] + options)
            #expect(dry.messages.contains("place.jpg is sent without its position") == !isKept, "\(dry.messages)")
            #expect((dry.output.range(of: Data(exif)) != nil) == isKept, "\(options)")
            #expect(dry.output.count > bytes.count)
        }
    }

    @Test
    func `pictures are made to fit, by their content, and other files are not`() async throws {
        // A JPEG of 64 by 48 pixels without its pixels: it fits, or it cannot be decoded.
        let frame: [UInt8] = [0xFF, 0xC0, 0, 17, 8, 0, 48, 0, 64, 3, 1, 0x22, 0, 2, 0x11, 1, 3, 0x11, 1]
        let head: [UInt8] = [0xFF, 0xD8] + frame + [0xFF, 0xDA, 0, 2]
        let picture = try folder.file("photo.dat", head + [UInt8](repeating: 0, count: 2000))
        let other = try folder.file("list.jpg", Array("no picture".utf8) + [UInt8](repeating: 32, count: 5000))
        let arguments = ["http://127.0.0.1:1/", "-F", "a=@\(picture.path)", "-F", "b=@\(other.path)"]
        for fit in [
            ["--fit", "5kB"], ["--fit", "server"], ["--max-edge", "64"], ["--fit", "5kB", "--max-edge", "64"],
        ] {
            let dry = try await Program.run(["send"] + arguments + ["--dry-run"] + fit)
            #expect(dry.status == 0 && dry.output.count > 7000, "\(dry.messages)")
        }
        for fit in [["--fit", "1kB"], ["--max-edge", "32"], ["--fit", "server", "--max-edge", "32"]] {
            let ending = try await Program.run(["send"] + arguments + fit)
            // 70 if the program was built without the libraries for pictures.
            #expect(ending.status == (PictureFitter.isAvailable ? 66 : 70), "\(ending.messages)")
            #expect(ending.messages.contains("photo.dat: ") && ending.messages.contains("picture"))
            #expect(PictureFitter.isAvailable || ending.messages.contains("Scripts/set-up pictures"))
        }
    }

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `pictures that the server refuses as too large are sent once more within its limit`() async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--max-body", "300kB",
        ])
        var arguments = ["send", "\(server.address)/uploads", "--json", "-F", "name=초코"]
        for picture in try SamplePictures.all() { arguments += ["-F", "picture=@\(picture.path)"] }
        #expect(try await Program.run(arguments).status == 1)
        // The server has reported its limit before anything was sent.
        for (fit, attempts) in [("server", 1), ("90kB", 1)] {
            let ending = try await Program.run(arguments + ["--fit", fit])
            #expect(ending.status == 0, "\(ending.messages)")
            let response = try ending.json()
            #expect(response["attempts"] as? Int == attempts && response["bytesSent"] as? Int ?? .max <= 300_000)
            let record = try #require(response["body"] as? [String: Any])
            let files = try #require(record["files"] as? [[String: Any]])
            #expect(files.map { $0["filename"] as? String } == ["hills.jpg", "stamp.jpg", "제주 바다.jpg"])
            #expect(files.allSatisfy { $0["contentType"] as? String == "image/jpeg" })
        }
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

    @Test(.enabled(if: PictureFitter.isAvailable))
    func `pictures are made to fit one limit after the other`() async throws {
        let server = try await RunningServer([
            "serve", "--port", "0", "--directory", folder.path, "--max-body", "300kB", "--max-file", "60kB",
        ])
        var arguments = ["send", "\(server.address)/uploads", "--json", "--fit", "server"]
        for picture in try SamplePictures.all() { arguments += ["-F", "picture=@\(picture.path)"] }
        let ending = try await Program.run(arguments)
        #expect(ending.status == 0, "\(ending.messages)")
        let record = try #require(try ending.json()["body"] as? [String: Any])
        let files = try #require(record["files"] as? [[String: Any]])
        #expect(files.count == 3 && files.allSatisfy { $0["size"] as? Int ?? .max <= 60_000 })
    }

    @Test(.enabled(if: PictureFitter.isAvailable), arguments: [SIGINT, SIGTERM, SIGKILL])
    func `files that were made for the form are gone after a signal, and after a crash at the next start`(number: Int32)
        async throws
    {
        // A server that never responds.
        let script = """
            import socket, time
            listener = socket.create_server(("127.0.0.1", 0))
            print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
            connections = []
            while True: connections.append(listener.accept()[0])
            """
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let picture = try #require(try SamplePictures.all().first)
        let arguments = ["send", server.address, "-F", "a=@\(picture.path)", "--fit", "20kB"]
        let prepared = folder.url.appending(component: "Postcard-\(geteuid())")
        let process = Process()
        process.executableURL = Program.url
        process.arguments = arguments
        process.environment = ProcessInfo.processInfo.environment.merging(["TMPDIR": folder.path]) { $1 }
        try process.run()
        func files() -> [String] {
            ((try? FileManager.default.subpathsOfDirectory(atPath: prepared.path)) ?? []).filter {
                $0.hasSuffix(".jpg")
            }
        }
        try await eventually { !files().isEmpty }
        kill(process.processIdentifier, number)
        process.waitUntilExit()
        #expect(process.terminationReason == .uncaughtSignal && process.terminationStatus == number)
        if number == SIGKILL {
            #expect(!files().isEmpty)
            let next = try await Program.run(
                ["send", "http://127.0.0.1:1/", "-F", "a=@\(picture.path)", "--fit", "20kB"],
                environment: ["TMPDIR": folder.path])
            #expect(next.status == 69, "\(next.messages)")
        }
        #expect(files().isEmpty)
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
