import Foundation
import PostcardPictures
import PostcardSamples
import PostcardTestSupport
import Testing

@testable import postcard

/// What a demanding user stumbled over, as commands with what they show on terminals that are narrow, usual and wide, with
/// colors and without.
@Suite(.timeLimit(.minutes(10)))
struct OnTerminalTests {
    /// A command, how it ends, and what it shows. In it, `URL` is the receiver's, `ROOT` that of its page, `NGINX`, `PHP`,
    /// `AIOHTTP` and `SCRIPTED` are other servers, `CLOSED` is one that does not exist, and `FOLDER` a folder with files.
    private struct Row {
        /// What it is about, from 1 to 20.
        let topic: Int
        let command: String
        let status: Int32
        let shown: [String]
        var once: String?
        /// What must not be shown.
        var hidden: String?
        var needsPictures = false
    }

    private static let rows = sendingRows + requestRows + contentRows + queueRows + explainingRows

    /// 1: phases. 2: retries. 3: refusals.
    private static let sendingRows = [
        Row(
            topic: 1, command: "send URL -F a=b", status: 0,
            shown: ["waiting for the response", "100 %", "\"name\" : \"a\""]),
        Row(
            topic: 1, command: "send URL -F f=@FOLDER/large --limit-rate 20M", status: 0,
            shown: ["large", " 0 %", "100 %", "waiting for the response"]),
        Row(topic: 1, command: "send PHP -F f=@FOLDER/large", status: 0, shown: ["100 %", "waiting for the response"]),
        Row(
            topic: 1, command: "send SCRIPTED/cut -F f=@FOLDER/large --resumable", status: 0,
            shown: ["attempt 2 in ", "resumed ", "100 %", "all of it"]),
        Row(
            topic: 1, command: "send URL -F p=@PICTURE --fit 20kB", status: 0, shown: ["preparing the form"],
            needsPictures: true),
        Row(
            topic: 2, command: "send CLOSED -F a=b --retries 1", status: 69,
            shown: ["attempt 2 of 2 in", "onnection refused"]),
        Row(
            topic: 2, command: "send SCRIPTED/busy -F a=b --retries 3", status: 0,
            shown: ["attempt 2 of 4 in ", "503"]),
        Row(topic: 2, command: "send CLOSED -F a=b --retries -1", status: 64, shown: ["from 0 to 10,000"]),
        Row(
            topic: 3, command: "send ROOTnowhere -F a=b", status: 1,
            shown: ["\"code\" : \"not-found\"", "responded with 404"], once: "\"detail\""),
        Row(
            topic: 3, command: "send NGINX/capped -F f=@FOLDER/large", status: 1,
            shown: ["413 Request Entity Too Large", "responded with 413 Content Too Large."],
            once: "Request Entity Too Large", hidden: "<h"),
        Row(
            topic: 3, command: "send AIOHTTP -F f=@FOLDER/large", status: 1,
            shown: ["Maximum request body size 1048576 exceeded", "responded with 413"],
            once: "Maximum request body size"),
        Row(
            topic: 3, command: "send SCRIPTED/page -F a=b", status: 1, shown: ["Ask me."], once: "Ask me.",
            hidden: "a{}"),
    ]

    /// 4: certificates and proxies. 5: curl's grammar. 6: JSON.
    private static let requestRows = [
        Row(topic: 4, command: "send URL -F a=b --cacert FOLDER/none", status: 66, shown: ["none cannot be read"]),
        Row(
            topic: 4, command: "send URL -F a=b --proxy ftp://a", status: 64,
            shown: ["A proxy is http or socks5, not 'ftp'"]),
        Row(topic: 4, command: "send URL -F a=b --key FOLDER/a", status: 64, shown: ["add --cert FILE"]),
        Row(
            topic: 4, command: "send URL -F a=b -k --transport urlsession", status: 64, shown: ["has no --insecure"]),
        Row(topic: 5, command: "send URL -F -=v", status: 0, shown: ["\"name\" : \"-\""]),
        Row(
            topic: 5, command: "send PHP --form-string t=@a;b -F f=@FOLDER/a;type=text/x-own", status: 0,
            shown: ["\"value\" : \"@a;b\"", "\"contentType\" : \"text/x-own\""]),
        Row(topic: 5, command: "send AIOHTTP -F f=@FOLDER/a,FOLDER/b", status: 0, shown: ["\"order\" : \"f f\""]),
        Row(topic: 5, command: "send URL -F a", status: 64, shown: ["'a' is not written as name=value"]),
        Row(
            topic: 6, command: "send CLOSED -F a=b --json", status: 69,
            shown: ["{\"attempts\":1,\"error\":{", "\"delivery\""]),
        Row(
            topic: 6, command: "send SCRIPTED/binary -F a=b --json", status: 1,
            shown: ["\"body\":\"/wA=\"", "\"bodyIsBase64\":true"]),
        Row(
            topic: 6, command: "send PHP -F a=b --json", status: 0,
            shown: ["\"body\":{\"fields\":[{", "\"status\":200"]),
    ]

    /// 7: limits of servers. 8: positions. 9: temporary files. 10: `--verify` and `--dry-run`. 11: types. 12: fields first.
    /// 15: wrong values of the receiver. 16: the order of a form and the types of its files.
    private static let contentRows = [
        Row(topic: 7, command: "send URL -F a=b --fit 12q", status: 64, shown: ["'12q'", "such as 1MB"]),
        Row(
            topic: 7, command: "send NGINX/capped -F f=@FOLDER/large --fit server", status: 1,
            shown: ["It reported no limit", "try --fit 900KB"]),
        Row(
            topic: 8, command: "send PHP -F f=@FOLDER/place.png", status: 0,
            shown: ["place.png is sent without its position", "--metadata as-is"]),
        Row(
            topic: 8, command: "send PHP -F f=@FOLDER/place.png --metadata as-is", status: 0, shown: ["place.png"],
            hidden: "without its position"),
        Row(
            topic: 9, command: "send CLOSED -F p=@PICTURE --fit 20kB", status: 69, shown: ["onnection refused"],
            needsPictures: true),
        Row(topic: 10, command: "send URL -F a=@FOLDER/none", status: 66, shown: ["No such file", "check the path"]),
        Row(
            topic: 10, command: "send NGINX -F a=b --verify", status: 1,
            shown: ["has no digests of the fields and files"]),
        Row(
            topic: 10, command: "send URL -F a=b --dry-run", status: 0, shown: ["POST /uploads HTTP/1.1", "name=\"a\""]),
        Row(
            topic: 10, command: "send URL -F f=@FOLDER/large --dry-run", status: 0,
            shown: ["is not for a terminal", "> request"]),
        Row(
            topic: 11, command: "send AIOHTTP -F f=@FOLDER/photo.jpg", status: 0,
            shown: ["photo.jpg is not image/jpeg but image/heic", "\"contentType\" : \"image/heic\""]),
        Row(
            topic: 12, command: "send AIOHTTP --fields-first -F f=@FOLDER/a -F b=c", status: 0,
            shown: ["\"order\" : \"b f\""]),
        Row(topic: 15, command: "serve --contradicted-types maybe", status: 64, shown: ["maybe", "refuse"]),
        Row(topic: 15, command: "serve --max-body much", status: 64, shown: ["'much'", "such as 100MB"]),
        Row(topic: 15, command: "serve --rules FOLDER/a", status: 66, shown: ["has no valid rules"]),
        Row(
            topic: 16, command: "send URL -F a=1 -F f=@FOLDER/photo.jpg;type=image/png", status: 0,
            shown: ["\"parts\" : [", "\"field\" : 0", "\"file\" : 0", "\"detectedType\" : \"image/heic\""]),
    ]

    /// 13: what the queue has done. 14: dates in it.
    private static let queueRows = [
        Row(topic: 13, command: "queue list --queue FOLDER/queue", status: 0, shown: []),
        Row(topic: 13, command: "queue cancel 7 --queue FOLDER/queue", status: 64, shown: ["7"]),
        Row(topic: 13, command: "queue add URL -F a=b --queue FOLDER/queue", status: 0, shown: ["1"]),
        Row(
            topic: 13, command: "queue run --drain --queue FOLDER/queue", status: 0, shown: ["1  done", "  201"],
            once: "1  done"),
        Row(topic: 13, command: "queue add ROOTnowhere -F a=b --queue FOLDER/queue", status: 0, shown: ["2"]),
        Row(topic: 13, command: "queue pause --queue FOLDER/queue", status: 0, shown: []),
        Row(
            topic: 13, command: "queue run --drain --queue FOLDER/queue", status: 0,
            shown: ["The queue is paused.", "postcard queue resume"]),
        Row(topic: 13, command: "queue resume --queue FOLDER/queue", status: 0, shown: []),
        Row(topic: 13, command: "queue run --drain --queue FOLDER/queue", status: 1, shown: ["2  failed", "404"]),
        Row(topic: 13, command: "queue run --drain --limit-rate 0", status: 64, shown: ["such as 500K"]),
        Row(
            topic: 14, command: "queue add URL -F a=b --not-before soon", status: 64, shown: ["2026-12-24T18:00:00Z"]),
        Row(
            topic: 14, command: "queue add URL -F a=b --not-before 2999-12-24T18:00:00Z --queue FOLDER/queue",
            status: 0,
            shown: ["3"]),
        Row(
            topic: 14, command: "queue run --drain --queue FOLDER/queue", status: 0,
            shown: ["not before 2999-12-24T18:00:00Z"]),
        Row(topic: 14, command: "queue cancel 3 --queue FOLDER/queue", status: 0, shown: []),
    ]

    /// 19: explanations. 20: from curl and back.
    private static let explainingRows = [
        Row(topic: 19, command: "explain FOLDER/none", status: 66, shown: ["none"]),
        Row(
            topic: 19, command: "explain FOLDER/request --against php,nginx,vapor,s3", status: 1,
            shown: [
                "upload_max_filesize in php.ini", "client_max_body_size in nginx.conf", "routes.defaultMaxBodySize",
                "Amazon S3",
            ]),
        Row(
            topic: 19, command: "explain FOLDER/request --against apache2", status: 64, shown: ["The known servers are"]
        ),
        Row(
            topic: 19, command: "explain FOLDER/trace", status: 0, shown: ["The form is valid", "--trace-ascii"],
            hidden: "content-contradicts-type"),
        Row(
            topic: 19, command: "explain FOLDER/request --edit FOLDER/edited", status: 0,
            shown: ["edited/form.txt, to be edited", "--config form.txt"]),
        Row(
            topic: 19, command: "explain FOLDER/request --edit FOLDER/edited", status: 73, shown: ["edited cannot be"]),
        Row(
            topic: 19, command: "send PHP --config FOLDER/config -F more=1", status: 0,
            shown: ["\"value\" : \"two\"", "\"name\" : \"more\""]),
        Row(
            topic: 20, command: "send http://a.example/ -F a=b -F f=@FOLDER/a --as-curl --resumable", status: 0,
            shown: ["curl http://a.example/ --form-string a=b -F ", "curl cannot do this: --resumable"]),
        Row(
            topic: 20, command: "explain FOLDER/broken", status: 1,
            shown: ["With curl, it is: curl http://a/x --form-string a=b"]),
    ]

    private static let script = Repository.url("Tests/Senders/on-terminal").path

    private static func onTerminal(
        _ command: [String], columns: Int, isColored: Bool = false, environment: [String] = []
    ) async throws -> Program.Ending {
        try await Program.run(
            "env",
            ["TERMINAL_COLUMNS=\(columns)", "TERM=xterm", isColored ? "NO_COLOR=" : "NO_COLOR=1"] + environment
                + ["python3", script] + command)
    }

    @Test func `each topic has its commands`() {
        // 17 and 18, the pictures, links and words of the page, are looked at in PageTests.
        #expect(Set(Self.rows.map(\.topic)) == Set(1...20).subtracting([17, 18]))
    }

    @Test(arguments: [40, 80, 200], [true, false])
    func `each command shows what happens`(columns: Int, isColored: Bool) async throws {
        try Tool.require("python3")
        let folder = try Self.folderWithFiles()
        let server = try await ReceivingServer()
        let (nginx, php) = (try await OtherServer("nginx"), try await OtherServer("php"))
        let (aiohttp, scripted) = (try await OtherServer("aiohttp"), try await OtherServer.scripted())
        let picture = try #require(try SamplePictures.all().first)
        let words = [
            ("ROOT", server.url.absoluteString), ("CLOSED", "http://127.0.0.1:1/"), ("FOLDER", folder.path),
            ("NGINX", nginx.address), ("PHP", php.address), ("AIOHTTP", aiohttp.address),
            ("SCRIPTED", scripted.address), ("PICTURE", picture.path), ("URL", server.uploads.absoluteString),
        ]
        for row in Self.rows where PictureFitter.isAvailable || !row.needsPictures {
            let arguments = row.command.split(separator: " ").map { word in
                words.reduce(String(word)) { $0.replacing($1.0, with: $1.1) }
            }
            let ending = try await Self.onTerminal(
                [Program.url.path] + arguments, columns: columns, isColored: isColored,
                environment: ["TMPDIR=\(folder.path)/temporary"])
            let text = ending.text.replacing(/\u{1B}\[[0-9;]*[A-Za-z]/, with: "")
            #expect(ending.status == row.status, "\(row.command): \(text)")
            // Where a sentence is broken depends on the width.
            let joined = text.split(whereSeparator: \.isWhitespace).joined(separator: " ")
            func isShown(_ words: String) -> Bool { text.contains(words) || joined.contains(words) }
            for shown in row.shown { #expect(isShown(shown), "\(row.command): no \(shown) in \(text)") }
            if let once = row.once { #expect(text.ranges(of: once).count == 1, "\(row.command): \(text)") }
            if let hidden = row.hidden { #expect(!isShown(hidden), "\(row.command): \(text)") }
            for line in text.split(whereSeparator: { $0.isNewline }) where line.contains(" %") {
                #expect(DisplayWidth.of(line) <= columns, "\(row.command): \(line)")
            }
            if !isColored { #expect(!ending.text.contains(/\u{1B}\[[0-9;]+m/), "\(row.command): \(ending.text)") }
        }
        let left = try FileManager.default.subpathsOfDirectory(atPath: folder.path + "/temporary")
        #expect(left.filter { $0.hasSuffix(".jpg") }.isEmpty)
    }

    @Test(arguments: [40, 80, 200])
    func `a receiver on a terminal writes a line for each request`(columns: Int) async throws {
        try Tool.require("python3", "curl")
        let folder = try TemporaryFolder()
        // The address goes to a file, so that the terminal has what is on standard error.
        let script = """
            '\(Program.url.path)' serve --port 0 --directory '\(folder.path)/store' --max-field 3 > '\(folder.path)/out' &
            until [ -s '\(folder.path)/out' ]; do sleep 0.05; done
            address=$(sed 's/.* //' '\(folder.path)/out')
            for value in b four
            do curl -sS -o '\(folder.path)/response' -F a=$value -F f=@/etc/hostname $address/uploads; done
            kill -TERM $!; wait $!
            """
        let ending = try await Self.onTerminal(["sh", "-c", script], columns: columns)
        #expect(ending.status == 0, "\(ending.text)")
        let lines = ending.text.split(whereSeparator: \.isNewline).filter { $0.contains("POST /uploads") }
        try #require(lines.count == 2, "\(ending.text)")
        #expect(lines[0].contains("  127.0.0.1  POST /uploads  201  ") && lines[0].hasSuffix("  1 file"))
        #expect(lines[1].contains("  413  ") && lines[1].hasSuffix("  field-too-large"), "\(lines)")
    }

    @Test(arguments: [true, false])
    func `problems have colors unless NO_COLOR says no`(isColored: Bool) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("request", "POST / HTTP/1.1\r\nContent-Type: multipart/form-data\r\n\r\n--a".utf8)
        try Tool.require("python3")
        let ending = try await Self.onTerminal(
            [Program.url.path, "explain", file.path], columns: 80, isColored: isColored)
        #expect(ending.status == 1)
        #expect(ending.text.contains("\u{1B}[1;31m") == isColored, "\(ending.text)")
    }

    // MARK: - Files

    private static func folderWithFiles() throws -> TemporaryFolder {
        let folder = try TemporaryFolder()
        try FileManager.default.createDirectory(atPath: folder.path + "/temporary", withIntermediateDirectories: true)
        _ = try folder.file("large", size: 5_000_000)
        for name in ["a", "b"] { _ = try folder.file(name, name.utf8) }
        _ = try folder.file("photo.jpg", "\0\0\0\u{18}ftypheic\0\0\0\0".utf8)
        var png: [UInt8] = [0x89, 0x50, 0x4E, 0x47, 0x0D, 0x0A, 0x1A, 0x0A]
        for chunk in ["tEXtexif:GPSPosition\0SECRET", "IEND"] {
            png += [0, 0, 0, UInt8(chunk.utf8.count - 4)] + Array(chunk.utf8) + [0, 0, 0, 0]
        }
        _ = try folder.file("place.png", png)
        _ = try folder.file("config", "# A form.\nform-string = \"one=two\"\nurl = \"http://127.0.0.1:1/\"\n".utf8)
        try addRequests(to: folder)
        return folder
    }

    /// A form for explanations: one that is large for some servers, one in a trace that has lost bytes, and one with a
    /// line that ends in LF.
    private static func addRequests(to folder: TemporaryFolder) throws {
        let type = "Content-Type: multipart/form-data; boundary=XX"
        func head(_ count: Int) -> String {
            "POST /x HTTP/1.1\r\nHost: a\r\n\(type)\r\nContent-Length: \(count)\r\n\r\n"
        }
        let field = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\nb\r\n"
        let file =
            "--XX\r\nContent-Disposition: form-data; name=\"f\"; filename=\"f.jpg\"\r\nContent-Type: image/jpeg\r\n\r\n"
        var picture: [UInt8] = [0xFF, 0xD8, 0xFF, 0xDA, 0, 2]
        picture += [UInt8](repeating: 7, count: 3_000_000) + [0xFF, 0xD9]
        let body = Array((field + file).utf8) + picture + Array("\r\n--XX--\r\n".utf8)
        _ = try folder.file("request", Array(head(body.count).utf8) + body)
        let broken = field.replacing("name=\"a\"\r\n", with: "name=\"a\"\n") + "--XX--\r\n"
        _ = try folder.file("broken", (head(broken.utf8.count) + broken).utf8)

        let dots = String(repeating: ".", count: 64)
        let small = field.utf8.count + file.utf8.count + 64 + 10
        var lines = "=> Send header, \(head(small).utf8.count) bytes (0x\(String(head(small).utf8.count, radix: 16)))\n"
        func add(_ texts: [String]) {
            var offset = 0
            for text in texts {
                let digits = String(offset, radix: 16)
                lines += String(repeating: "0", count: max(4 - digits.count, 0)) + digits + ": \(text)\n"
                offset += text.utf8.count + 2
            }
        }
        add(head(small).split(separator: "\r\n", omittingEmptySubsequences: false).dropLast().map(String.init))
        lines += "=> Send data, \(small) bytes (0x\(String(small, radix: 16)))\n"
        let headers = (field + file).split(separator: "\r\n", omittingEmptySubsequences: false).dropLast()
        add(headers.map(String.init) + [dots, "--XX--"])
        _ = try folder.file("trace", lines.utf8)
    }
}

/// A server that is not Postcard's, with a folder of its own.
struct OtherServer {
    let server: RunningServer
    private let folder: TemporaryFolder

    var address: String { server.address }

    /// Starts a receiver of `Tests/Receivers`.
    init(_ receiver: String) async throws {
        let isPython = ["python", "aiohttp"].contains(receiver)
        try Tool.require(isPython ? Repository.url(".build/receivers/bin/python").path : receiver)
        folder = try TemporaryFolder()
        server = try await RunningServer(
            [receiver, folder.path], of: Repository.url("Tests/Receivers/start"))
    }

    /// Starts the server that does what servers rarely do.
    static func scripted() async throws -> RunningServer {
        try await RunningServer(
            ["python3", Repository.url("Tests/Receivers/scripted.py").path],
            of: URL(filePath: "/usr/bin/env"))
    }
}
