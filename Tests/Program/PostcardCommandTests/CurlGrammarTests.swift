import Foundation
import PostcardTestSupport
import Testing

@testable import postcard

/// The grammar of `-F` and `--form-string`, compared with curl.
@Suite(.timeLimit(.minutes(10)))
struct CurlGrammarTests {
    private let folder: TemporaryFolder

    init() throws {
        folder = try TemporaryFolder()
        _ = try folder.file("a.txt", "text of a\r\n".utf8)
        _ = try folder.file("b.html", "<p>b</p>\n".utf8)
        _ = try folder.file("c.jpg", [0xFF, 0xD8, 0xFF] + (0...255).map { UInt8($0) })
        for name in ["d,e.txt", "f;g.txt", "h i.txt", "제주.txt"] { _ = try folder.file(name, name.utf8) }
        _ = try folder.file("latin.txt", [0x63, 0x61, 0x66, 0xE9, 0x0A])
        _ = try folder.file("nul.txt", [0x61, 0, 0x62])
        _ = try folder.file("my; fields", "X-Three: 3\n".utf8)
        _ = try folder.file("fields", "X-One: 1\n# no field\nX-Two: 2\n".utf8)
        _ = try folder.file("long.txt", (String(repeating: "é = \tlong ", count: 40) + "\r\nend \r\n\u{1}").utf8)
    }

    /// Arguments as a shell reads them.
    private static let rows = [
        #"-F a=b"#, #"-F a="#, #"-F a=b=c"#, #"-F a=초코"#, #"-F 'a="quoted"'"#, #"-F 'a="with;type=a/b"'"#,
        #"-F 'a="esc\"aped\\"'"#, #"-F 'a=b;type=text/html'"#, #"-F 'a={"x":1};type=application/json'"#,
        #"-F 'a=b;type=text/plain; charset=utf-8'"#, #"-F 'a=b;filename=c.txt'"#,
        #"-F 'a=b;type=text/html;filename="c.html"'"#, #"-F f=@a.txt"#, #"-F f=@b.html"#, #"-F f=@c.jpg"#,
        #"-F 'f=@a.txt;type=text/x-own'"#, #"-F 'f=@a.txt;filename=other.txt'"#,
        #"-F 'f=@a.txt;filename="o;t\"h.txt"'"#, #"-F 'f=@"h i.txt"'"#, #"-F 'f=@h i.txt'"#, #"-F 'f=@"d,e.txt"'"#,
        #"-F 'f=@"f;g.txt"'"#, #"-F f=@제주.txt"#, #"-F f=@a.txt,b.html"#,
        #"-F 'f=@a.txt;type=text/x-a,b.html;filename=z.html'"#, #"-F 'f=@a.txt, c.jpg ,b.html'"#, #"-F 't=<a.txt'"#,
        #"-F 't=<latin.txt'"#, #"-F 't=<nul.txt'"#,
        #"-F 't=<a.txt;type=text/html'"#, #"-F =@a.txt"#, #"-F =hello"#, #"-F 'f=@-;type=text/plain'"#, #"-F 't=<-'"#,
        #"-F -=v"#,
        #"--form-string a=@a.txt"#, #"--form-string 'a=b;type=text/html'"#, #"--form-string 'a="x" <y'"#,
        #"-F a=1 --form-string 'b=<2' -F c=3 --form-string d=4"#, #"-F 'f=@a.txt;encoder=base64'"#,
        #"-F 'f=@c.jpg;encoder=base64'"#, #"-F 'f=@long.txt;encoder=quoted-printable'"#,
        #"-F 't=a = b ;encoder=quoted-printable'"#, #"-F 't=hi;encoder=8bit'"#, #"-F 'f=@c.jpg;encoder=binary'"#,
        #"-F 't=hi;encoder=7bit'"#, #"-F 'a=b;headers="X-Order: 5"'"#, #"-F 'f=@a.txt;headers=@fields'"#,
        #"-F 'f=@a.txt;headers=@"my; fields"'"#,
        #"-F '=(;type=multipart/alternative' -F '=plain' -F '=text;type=text/html' -F =@a.txt -F '=)' -F a=b"#,
        #"-F 'g=(' -F x=1 -F 'f=@b.html;encoder=base64' -F 'h=(;type=multipart/form-data' -F y=2 -F '=)' -F '=)' -F z=3"#,
        #"-F 'g=(' -F x=1"#, #"-F "$(printf 'a=\377\376')""#, #"-F "$(printf '\351=b')""#,
        #"-F 'f=@a.txt;'"#, #"-F 'f=@a.txt;,b.html;'"#, #"-F 't=<-;'"#,
        #"-F 'f=@-;type=text/plain'"#,
        #"-F f=@/dev/stdin"#, #"-F f=@/dev/null"#, #"-sSF a=b"#, #"-gsFa=b -H 'X-Empty;' -H 'Accept:' -H @fields"#,
        #"-F "$(printf 'f=@a.txt;filename=\351.txt')""#, #"-F "f=@$(printf 'caf\351').txt""#,
    ]

    /// Responds with the parts of each form. Files in one part of multipart/mixed are parts of the same name, which is what
    /// such a part means (RFC 7578 §4.3).
    private static let capture = #"""
        import http.server, json, re
        def parsed(body, boundary):
            pieces = (b"\r\n" + body).split(b"\r\n--" + boundary)
            assert pieces[0] == b"" and pieces[-1].startswith(b"--"), body
            return [part(piece[2:]) for piece in pieces[1:-1]]
        def part(piece):
            head, _, content = piece.partition(b"\r\n\r\n") if not piece.startswith(b"\r\n") else (b"", b"", piece[2:])
            fields = [line.split(b": ", 1) for line in head.split(b"\r\n") if line]
            found = {name.decode().lower(): value for name, value in fields}
            kind, disposition = found.pop("content-type", b""), found.pop("content-disposition", b"")
            made = {"type": re.sub(b"; boundary=.*", b"", kind), "disposition": disposition.split(b";")[0], "fields": sorted(found.items())}
            for key in (b"name", b"filename"):
                match = re.search(b"; " + key + b'="([^"]*)"', disposition)
                made[key.decode()] = match and match[1].replace(b"\\\\", b"\\")
            nested = re.search(b"; boundary=(.*)", kind)
            made["content"] = parsed(content, nested[1]) if nested else content
            return made
        def flat(parts):
            for part in parts:
                content = part["content"]
                if part["type"] == b"multipart/mixed" and part["name"] and all(child["filename"] and not child["name"] for child in content):
                    for child in content: yield dict(child, name=part["name"], disposition=part["disposition"])
                else: yield part
        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            def do_POST(self):
                length = self.headers["Content-Length"]
                if length: body = self.rfile.read(int(length))
                else:
                    body = b""
                    while size := int(self.rfile.readline(), 16): body += self.rfile.read(size); self.rfile.readline()
                    self.rfile.readline()
                boundary = re.search("boundary=(.*)", self.headers["Content-Type"])[1].encode()
                answer = repr(list(flat(parsed(body, boundary)))).encode()
                self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
            def log_message(self, *_): pass
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        print("http://127.0.0.1:%d" % server.server_address[1], flush=True)
        server.serve_forever()
        """#

    private func output(_ program: String, _ address: String, _ arguments: String) async throws -> Program.Ending {
        try await Program.run(
            "sh", ["-c", "cd '\(folder.path)' && echo piped | \(program) \(address) \(arguments)"])
    }

    @Test func `each form has the parts that curl sends`() async throws {
        try Tool.require("curl")
        // A name that Foundation cannot write.
        _ = try await Program.run("sh", ["-c", "cd '\(folder.path)' && echo file > \"$(printf 'caf\\351').txt\""])
        let server = try await RunningServer(["python3", "-c", Self.capture], of: URL(filePath: "/usr/bin/env"))
        #expect(Self.rows.count >= 40)
        for row in Self.rows {
            let expected = try await output("curl -s", server.address, row)
            let sent = try await output("'\(Program.url.path)' send", server.address, row)
            #expect(expected.status == 0 && sent.status == 0, "\(row): \(sent.messages)\(expected.messages)")
            #expect(expected.text.hasPrefix("[{") && sent.text == expected.text, "\(row)")
        }
    }

    @Test func `the line of --as-curl sends the same parts, and so does a shell's`() async throws {
        try Tool.require("curl")
        let server = try await RunningServer(["python3", "-c", Self.capture], of: URL(filePath: "/usr/bin/env"))
        let rows =
            Self.rows.filter { !$0.contains("caf") } + [
                #"-F 'a= b;c '"#, #"-F f=@-"#, #"-F 'f=@-;filename=a.log'"#,
                #"--form-string "a='x' $(printf '\033[2J')""#, "-F 'a=two\nlines\n'",
            ]
        for row in rows {
            let sent = try await output("'\(Program.url.path)' send", server.address, row)
            let line = try await output("'\(Program.url.path)' send --as-curl", server.address, row)
            #expect(line.status == 0 && line.text.hasPrefix("curl "), "\(row): \(line.messages)")
            #expect(!line.text.contains("\u{1B}"))
            let script = try folder.file("line.sh", line.output)
            let expected = try await Program.run(
                "sh", ["-c", "cd '\(folder.path)' && echo piped | sh '\(script.path)' 2> errors"])
            #expect(expected.status == 0 && sent.text == expected.text, "\(row): \(line.text)")
        }
    }

    @Test func `a file of --config means what it means to curl`() async throws {
        try Tool.require("curl")
        let server = try await RunningServer(["python3", "-c", Self.capture], of: URL(filePath: "/usr/bin/env"))
        let files = [
            "# two\nform = a=b\n\n  form-string: \"c=@d\"\r\n--form e=f\n-F \"g=h i\"\n",
            #"form = "f=@a.txt;type=text/html""# + "\n" + #"form="t=<a.txt""#,
            #"form-string = "a=\"q\" \\ \t \n \r \v \x""#,
            "form\t=\t\"a=b\"\nform = \"f=@\\\"d,e.txt\\\"\"\n", "header = \"X-A: b\"\nform = a=b\n",
        ]
        for text in files {
            _ = try folder.file("config", text.utf8)
            let expected = try await output("curl -s", server.address, "-F z=0 -K config -F y=1")
            let sent = try await output("'\(Program.url.path)' send", server.address, "-F z=0 --config config -F y=1")
            #expect(expected.status == 0 && sent.status == 0, "\(text): \(sent.messages)\(expected.messages)")
            #expect(expected.text.hasPrefix("[{") && sent.text == expected.text, "\(text)")
        }
    }

    @Test func `the URL may be in a file of --config, and an argument has priority`() async throws {
        let server = try await RunningServer(["python3", "-c", Self.capture], of: URL(filePath: "/usr/bin/env"))
        for (url, arguments) in [(server.address, []), ("http://127.0.0.1:1/", [server.address])] {
            let file = try folder.file("config", "url = \"\(url)\"\nform-string = \"a=b\"\n".utf8)
            let ending = try await Program.run(["send", "-K", file.path] + arguments)
            #expect(ending.status == 0 && ending.text.contains("b'a'"), "\(ending.messages)\(ending.text)")
        }
        let none = try await Program.run(["send", "-F", "a=b"])
        #expect(none.status == 64 && none.messages.contains("Add one, such as http://"), "\(none.messages)")
    }

    @Test(arguments: [
        ("form = \"a=b", "Line 1 of "), ("\nform = a=b c", "Line 2 of "), ("config = other", "another one"),
        ("nonsense = 1", "--nonsense"),
    ])
    func `a mistake in a file of --config is explained`(text: String, word: String) async throws {
        let file = try folder.file("config", text.utf8)
        let ending = try await Program.run(["send", "http://127.0.0.1:1/", "-F", "a=b", "-K", file.path])
        #expect(ending.status == 64)
        #expect(ending.messages.contains(word), "\(ending.messages)")
        let missing = try await Program.run(["send", "http://127.0.0.1:1/", "--config=/no/file"])
        #expect(missing.status == 64 && missing.messages.contains("/no/file"))
    }

    @Test(arguments: [true, false])
    func `what explain --edit writes has the same parts again, for curl too`(isChunked: Bool) async throws {
        try Tool.require("curl")
        let server = try await RunningServer(["python3", "-c", Self.capture], of: URL(filePath: "/usr/bin/env"))
        _ = try folder.file("empty.txt", [])
        let form =
            #"-F 'title=제주 "x"\y' -F 'j={"a":1};type=application/json' -F f=@c.jpg -F 't=<long.txt' -F e=@empty.txt "#
            + #"-F 'h=x;headers="X-A: b, c"' -F 'f=@"d,e.txt"' -F 'q=@c.jpg;type=text/plain; charset=utf-8' "#
            + #"-F z= -F l=@empty.txt -F 'o=<latin.txt' -F 'n=<nul.txt'"#
        let send = "'\(Program.url.path)' send --metadata as-is"
        let expected = try await output(send, server.address, form)
        let body = try await output("\(send) --dry-run", "http://127.0.0.1:9/x", form)
        let headEnd = try #require(body.output.range(of: Data("\r\n\r\n".utf8))?.upperBound)
        let content = Data(body.output[headEnd...])
        let type = try #require(body.text.split(whereSeparator: \.isNewline).first { $0.hasPrefix("Content-Type: ") })
        var request = Data("POST /x HTTP/1.1\r\nHost: a\r\n\(type)\r\n".utf8)
        if isChunked {
            request += "Transfer-Encoding: chunked\r\n\r\n".utf8
            var rest = content
            while !rest.isEmpty {
                let chunk = rest.prefix(100)
                request += Data("\(String(chunk.count, radix: 16))\r\n".utf8) + chunk + Data("\r\n".utf8)
                rest = rest.dropFirst(100)
            }
            request += "0\r\n\r\n".utf8
        } else {
            request += Data("Content-Length: \(content.count)\r\n\r\n".utf8) + content
        }
        let file = try folder.file("request", request)
        let edit = folder.path + "/edited"
        let written = try await Program.run(["explain", file.path, "--edit", edit])
        #expect(written.status == 0 && written.text.contains("edited/form.txt"), "\(written.text)\(written.messages)")
        // The address of the recorded request.
        let config = try String(contentsOfFile: edit + "/form.txt", encoding: .utf8)
        try config.replacing("http://a/x", with: server.address).write(
            toFile: edit + "/form.txt", atomically: true, encoding: .utf8)
        for line in ["\(send) --config form.txt", "curl -s -K form.txt"] {
            let again = try await Program.run("sh", ["-c", "cd '\(edit)' && \(line)"])
            #expect(again.text == expected.text, "\(line): \(again.messages)")
        }
        let full = try await Program.run(["explain", file.path, "--edit", edit])
        #expect(full.status == 73 && full.messages.contains("edited"), "\(full.status) \(full.messages)")
        let text = try folder.file("no form", "hello".utf8).path
        let none = try await Program.run([
            "explain", "--content-type", "multipart/form-data; boundary=b", "--edit", edit + "2", text,
        ])
        #expect(none.status == 66 && none.messages.contains("no part"), "\(none.status) \(none.messages)")
    }

    @Test func `the line of --as-curl has the other options, and says what curl cannot do`() async throws {
        let ending = try await Program.run([
            "send", "http://a.example/[1]", "--as-curl", "-X", "PUT", "-H", "X-Empty;", "-u", "a:b c", "-k",
            "--retries", "2",
            "--limit-rate", "2k", "--resumable", "--fit", "1MB", "-F", "f=@/no/such.jpg",
        ])
        #expect(ending.status == 0)
        #expect(
            ending.text
                == "curl --globoff -X PUT -H 'X-Empty;' -u 'a:b c' -k --retry 2 --limit-rate 2048 'http://a.example/[1]' "
                + "-F 'f=@/no/such.jpg;type=image/jpeg'\n")
        for loss in ["--resumable", "--fit"] { #expect(ending.messages.contains(loss)) }
        #expect(!ending.messages.contains("positions"))
    }

    @Test(arguments: [
        (["-F", "=)"], 64, "-F '=(' did not begin"), (["-F", "a=b;encoder=rot13"], 64, "base64"),
        (["-F", "a=é;encoder=7bit"], 66, "not 7bit"), (["-F", "a=@x,"], 64, "names no file"),
        (["-F", "a=b;headers=@/no/file"], 66, "/no/file"), (["-F", "a=b;headers=@/bin/sh"], 66, "has a NUL"),
        (["-F"], 64, "Missing value"),
        (["-F", "a=(;filename=x"], 64, "only ;type= and ;headers="),
    ])
    func `a mistake is explained`(arguments: [String], status: Int32, word: String) async throws {
        let ending = try await Program.run(["send", "http://127.0.0.1:1/"] + arguments)
        #expect(ending.status == status, "\(ending.messages)")
        #expect(ending.messages.contains(word), "\(ending.messages)")
    }

    @Test func `line breaks of texts and names become CRLF, and nothing else`() async throws {
        let file = try folder.file("lines.txt", "a\nb".utf8)
        let ending = try await Program.run([
            "send", "http://127.0.0.1:1/", "--dry-run", "--crlf", "-F", "a=1\n2\r3\r\n4", "-F", "f=@\(file.path)",
        ])
        #expect(ending.text.contains("\r\n\r\n1\r\n2\r\n3\r\n4\r\n--") && ending.text.contains("\r\n\r\na\nb\r\n--"))
    }

    @Test func `fields go first on request`() async throws {
        let ending = try await Program.run([
            "send", "http://127.0.0.1:1/", "--dry-run", "--fields-first", "-F", "f=@\(folder.path)/a.txt", "-F", "a=b",
            "-F", "g=@\(folder.path)/b.html", "-F", "c=d",
        ])
        let names = ending.text.split(separator: "name=\"").dropFirst().map { $0.prefix { $0 != "\"" } }
        #expect(names.filter { $0.count == 1 } == ["a", "c", "f", "g"])
    }

    @Test func `a HEIC picture called jpg is sent as what it is, and a line says so`() async throws {
        let picture = try folder.file("photo.jpg", "\0\0\0\u{18}ftypheic\0\0\0\0".utf8)
        let arguments = ["send", "http://127.0.0.1:1/", "--dry-run", "-F"]
        let ending = try await Program.run(arguments + ["f=@\(picture.path)"])
        #expect(ending.text.contains("Content-Type: image/heic\r\n"))
        #expect(ending.messages.contains("photo.jpg is not image/jpeg but image/heic"), "\(ending.messages)")
        let typed = try await Program.run(arguments + ["f=@\(picture.path);type=image/jpeg"])
        #expect(typed.text.contains("Content-Type: image/jpeg\r\n") && !typed.messages.contains("is not image"))
    }
}
