import Foundation
import PostcardDoctor
import Testing

struct CurlCommandTests {
    /// The arguments that a shell hands over.
    private func arguments(of line: String, shell: String = "bash") throws -> [String] {
        let process = Process()
        let pipe = Pipe()
        process.executableURL = URL(filePath: "/usr/bin/env")
        // Each argument ends in a NUL, because it may hold line breaks.
        process.arguments = [shell, "-c", "curl() { printf '%s\\0' \"$@\"; }; " + line]
        process.environment = ["AUTHORIZATION": "given", "PATH": ProcessInfo.processInfo.environment["PATH"] ?? ""]
        process.standardOutput = pipe
        try process.run()
        let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
        process.waitUntilExit()
        return output.split(separator: 0, omittingEmptySubsequences: false).dropLast().map {
            String(decoding: $0, as: UTF8.self)
        }
    }

    @Test(arguments: [
        "plain", "", "two words", "it's", "\"double\"", "$HOME `id` $(id) !!", "back\\slash", "한글 🍊", "a\nb\r\n\tc",
        "\u{1B}[31mred\u{1B}[0m", "\u{202E}txt.exe", "~", "-o/etc/passwd", "*", "a;b|c&d>e", "'\n'", "\u{7}123",
        "\u{85}", "=ls", "a=b", "👩‍🚀", "a'\u{300}; id '\u{301}", "'\u{200D}", "\\\u{300}", "\"\u{300}",
    ])
    func `a text reaches curl as it is, on one line, whatever stands in it`(text: String) throws {
        var command = CurlCommand(url: "http://a/", method: "POST")
        command.content = .parts([.text(name: "n", value: text, contentType: nil)])
        #expect(!command.line.contains { $0.isNewline })
        #expect(!command.line.unicodeScalars.contains { $0.properties.generalCategory == .control })
        #expect(try arguments(of: command.line) == ["http://a/", "--form-string", "n=\(text)"])
    }

    @Test(arguments: ["sh", "bash"])
    func `bytes reach curl as they are, in every shell`(shell: String) throws {
        let bodies: [[UInt8]] = [
            [], Array("--b\r\n%s %% \\n 'x' \"y\" $z\0\u{202E}한글".utf8), Array(0...255), Array("\u{1}1".utf8),
        ]
        for body in bodies {
            var command = CurlCommand(url: "http://a/", method: "POST")
            command.content = .bytes(body)
            #expect(command.isExact)
            let process = Process()
            let pipe = Pipe()
            process.executableURL = URL(filePath: "/usr/bin/env")
            process.arguments = [shell, "-c", "curl() { cat; }; " + command.line]
            process.standardOutput = pipe
            try process.run()
            let output = try pipe.fileHandleForReading.readToEnd() ?? Data()
            process.waitUntilExit()
            #expect(Array(output) == body)
        }
    }

    @Test
    func `a command says what curl does not say by itself, and no more`() throws {
        var command = CurlCommand(url: "http://a/b[1]/../c?d=e", method: "PUT")
        command.fields = [
            ("Host", "a"), ("Content-Length", "3"), ("Content-Type", "text/plain"), ("X-Empty", ""), ("Bad Name", "x"),
        ]
        command.secretFields = ["Authorization"]
        command.content = .bytes(Array("abc".utf8))
        let expected = [
            "--globoff", "--path-as-is", "-X", "PUT", "http://a/b[1]/../c?d=e", "-H", "Content-Type: text/plain", "-H",
            "X-Empty;", "-H", "Authorization: given", "--data-binary", "@-",
        ]
        #expect(try arguments(of: command.line) == expected)
        command.fields = []
        command.secretFields = ["A$(id)", "1-2"]
        command.content = .unknown
        #expect(!command.isExact)
        #expect(command.line.hasSuffix(#"-H "1-2: $_1_2" -H Content-Type: --data-binary @body"#))
        #expect(CurlCommand(url: "http://a/", method: "GET").line == "curl http://a/")
    }

    @Test(arguments: [
        "image/png,/path/secret", "text/plain;headers=@/etc/passwd", "a/b; filename=@x", "a/b\",/c",
        "a/b;HEADERS=<c",
    ])
    func `nothing that a stranger wrote makes curl read another file`(type: String) throws {
        var command = CurlCommand(url: "http://a/", method: "POST")
        command.content = .parts([
            .file(name: "x=@/home/key;filename=", filename: "a.png", contentType: type),
            .text(name: "t", value: "v", contentType: type),
        ])
        let expected = ["http://a/", "-F", "x%3D@/home/key;filename%3D=@\"a.png\"", "-F", "t=\"v\""]
        #expect(try arguments(of: command.line) == expected)
        for target in ["-K/tmp/x", "*", "a b"] {
            let request = Array(
                ("POST \(target) HTTP/1.1\r\nHost: a\r\nContent-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
                    + "Content-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n").utf8)
            let line = Explanation(request: request).curl?.line
            #expect(line?.hasPrefix("curl http://a/ ") ?? true, "\(line ?? "")")
        }
    }

    @Test(arguments: [
        ("/x", "Host: a\r\n", "http://a/x"), ("/x", "Host: a:443\r\n", "https://a:443/x"),
        ("/x", "Host: a:4430\r\n", "http://a:4430/x"), ("https://b/x", "Host: a\r\n", "https://b/x"),
        ("https://b/x", "", "https://b/x"), ("/x", "", "http://127.0.0.1:8080/uploads"),
        (#"/"\x"#, "Host: a\r\n", "http://a/%22%5Cx"),
        ("/%7E%zz?q=é#f", "Host: a\r\n", "http://a/%7E%25zz?q=%C3%A9%23f"),
        ("http://b:1", "", "http://b:1/"), ("/[1]", "Host: [::1]:8080\r\n", "http://[::1]:8080/[1]"),
        ("/x", "Host: a\"b\r\n", "http://127.0.0.1:8080/uploads"),
        ("/x", "Host: a:99999\r\n", "http://127.0.0.1:8080/uploads"),
        ("/x", "Host: a\tb\r\n", "http://127.0.0.1:8080/uploads"),
        ("/x", "Host: a:b\r\n", "http://127.0.0.1:8080/uploads"),
    ])
    func `a raw request is sent to the host in its head, over https where its port or its target says so`(
        target: String, host: String, url: String
    ) {
        let request =
            "POST \(target) HTTP/1.1\r\n\(host)Content-Type: multipart/form-data; boundary=b\r\n\r\n--b\r\n"
            + "Content-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--b--\r\n"
        #expect(Explanation(request: request.utf8).curl?.url == url)
    }

    /// Forms that a server refuses, the server if it was chosen, and the parts of the line.
    private static let acceptedForms: [(parts: [SampleRequest.Part], servers: [ServerProfile], words: [String])] = [
        (
            [.file("file", "a.png", "image/png", Picture.png), .field("key", "k"), .field("policy", "x")], [],
            ["--form-string", "key=k", "--form-string", "policy=x", "-F", #"file=@"a.png";type=image/png"#]
        ),
        (
            [.field("acl", "public-read"), .file("image", "a.png", "image/png", Picture.png)], [.s3],
            [
                "--form-string", "acl=public-read", "--form-string", "key=${filename}", "-F",
                #"file=@"a.png";type=image/png"#,
            ]
        ),
        (
            [
                .init(
                    header: [#"Content-Disposition: form-data; name="photo""#, "Content-Type: image/png"],
                    content: Picture.png)
            ], [], ["-F", #"photo=@"photo.png";type=image/png"#]
        ),
        (
            [
                .file("petImage", "a.jpg", "image/jpeg", Picture.jpeg),
                .file("petImage", "b.png", "image/png", Picture.png), .field("name", "초코"),
            ], [.php],
            [
                "-F", #"petImage[]=@"a.jpg";type=image/jpeg"#, "-F", #"petImage[]=@"b.png";type=image/png"#,
                "--form-string", "name=초코",
            ]
        ),
        (
            [.init(header: [#"Content-Disposition: form-data; name="a""#], content: [0xFF, 0xFE])], [],
            ["-F", #"a=<"a.txt""#]
        ),
    ]

    @Test(arguments: acceptedForms.indices)
    func `the line sends what the server accepts, and not the mistake again`(index: Int) throws {
        let row = Self.acceptedForms[index]
        let explanation = Explanation(request: SampleRequest(row.parts).bytes).judged(against: row.servers)
        let command = try #require(explanation.curl)
        #expect(try arguments(of: command.line).dropFirst() == row.words[...])
    }

    @Test
    func `a form that was sent with GET is sent with POST`() {
        var request = SampleRequest.texts
        request.requestLine = "GET /uploads HTTP/1.1"
        #expect(Explanation(request: request.bytes).curl?.method == "POST")
    }

    @Test func `a quote or an equals sign that a combining mark follows is escaped all the same`() throws {
        var command = CurlCommand(url: "http://a/", method: "POST")
        command.content = .parts([
            .file(name: "f=\u{300}", filename: "a\"\u{300};x='\u{301}\\\u{302}", contentType: nil),
            .file(name: "g", filename: "a/\u{300}b", contentType: nil),
            .text(name: "t", value: "\"\u{300};type=x", contentType: "text/markdown"),
        ])
        let expected = [
            "http://a/", "-F", "f%3D\u{300}=@\"a\\\"\u{300};x='\u{301}\\\\\u{302}\"", "-F",
            "g=@file;filename=\"a/\u{300}b\"", "-F", "t=\"\\\"\u{300};type=x\";type=text/markdown",
        ]
        #expect(try arguments(of: command.line) == expected)
    }

    @Test
    func `files and texts with a type are told apart from what curl would read in them`() throws {
        var command = CurlCommand(url: "http://a/", method: "POST")
        command.fields = [("Content-Type", "multipart/form-data; boundary=old")]
        command.content = .parts([
            .file(name: "f", filename: "제주 바다;x=\"1\".jpg", contentType: "image/jpeg"),
            .file(name: "g", filename: "", contentType: nil), .file(name: "h", filename: "a/b", contentType: nil),
            .text(name: "t", value: "@x;y", contentType: "text/markdown"),
            .text(name: "u", value: nil, contentType: nil),
        ])
        #expect(!command.isExact)
        let expected = [
            "http://a/", "-F", #"f=@"제주 바다;x=\"1\".jpg";type=image/jpeg"#, "-F", #"g=@file;filename="""#, "-F",
            #"h=@file;filename="a/b""#, "-F", #"t="@x;y";type=text/markdown"#, "-F", #"u=<"u.txt""#,
        ]
        #expect(try arguments(of: command.line) == expected)
    }
}
