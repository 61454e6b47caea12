import Foundation
import HTTPTypes
import PostcardClient
import PostcardTestSupport
import Testing

@testable import postcard

@Suite(.timeLimit(.minutes(10)))
struct TerminalTests {
    /// What clears the screen, sets the title, rings, and turns the reading direction round.
    private static let steering = "\u{1B}[2J\u{1B}]0;title\u{7}\u{9B}31m\u{202E}\u{8}"

    private static func onTerminal(_ arguments: [String]) async throws -> Program.Ending {
        let script = Repository.url("Tests/Senders/on-terminal")
        return try await Program.run("python3", [script.path, Program.url.path] + arguments)
    }

    @Test(arguments: [[], ["--json"], ["--dry-run"]])
    func `what a server or a name sends to a terminal is shown, and not executed`(options: [String]) async throws {
        let server = try await ReceivingServer()
        let folder = try TemporaryFolder()
        let file = try folder.file("a\u{9B}31m\u{202E}\u{7}", "content".utf8)
        let ending = try await Self.onTerminal(
            ["send", server.uploads.absoluteString, "-F", "\(Self.steering)=\(Self.steering)", "-F", "f=@\(file.path)"]
                + options)
        #expect(ending.status == 0, "\(ending.text)")
        Self.checkIsShown(ending)
    }

    @Test(arguments: [["send", "http://127.0.0.1:1", "--timeout="], ["serve", "--port="], [""]])
    func `an argument that is wrong is shown, and not executed`(arguments: [String]) async throws {
        let ending = try await Self.onTerminal(arguments.dropLast() + [(arguments.last ?? "") + Self.steering])
        #expect(ending.status == 64, "\(ending.text)")
        Self.checkIsShown(ending)
    }

    private static func checkIsShown(_ ending: Program.Ending) {
        #expect(ending.text.contains("31m"))
        for sequence in ["\u{1B}[2J", "\u{1B}]", "\u{7}", "\u{9B}", "\u{202E}", "\u{8}"] {
            #expect(!ending.text.unicodeScalars.contains(sequence.unicodeScalars), "\(ending.text.debugDescription)")
        }
    }

    @Test func `the body of a picture is not written to a terminal`() async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("a.bin", [0, 1, 0xFF])
        let ending = try await Self.onTerminal(
            ["send", "http://127.0.0.1:1/", "-F", "f=@\(file.path)", "--dry-run"])
        #expect(ending.status == 0)
        #expect(ending.text.contains("is not for a terminal. To write the request to a file, add: > request"))
        #expect(!ending.output.contains(0))
    }

    /// Bodies of refusals, and how they are shown with what the program adds.
    private static let refusals: [(type: String, body: String, shown: [String], addition: String)] = [
        (
            "application/problem+json", #"b'{"title": "No room", "detail": "The album is full.", "status": 413}'"#,
            [#""detail" : "The album is full.""#], "responded with 413 Content Too Large"
        ),
        (
            "text/html",
            #"b"<html><head><title>413 Too &lt;big&gt;</title><style>a{}</style></head><h1>413 Too &lt;big&gt;</h1><p>Ask <b>me</b>.</html>""#,
            ["413 Too <big>", "Ask me."], "413"
        ),
        ("text/plain", #"b"Too large for me""#, ["Too large for me"], "responded with 413 Content Too Large"),
    ]

    @Test(arguments: refusals)
    func `a refusal is shown once and in a readable form`(
        row: (type: String, body: String, shown: [String], addition: String)
    ) async throws {
        let script = SendTests.responding("413 Content Too Large", row.type, row.body)
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let ending = try await Self.onTerminal(["send", server.address, "-F", "a=b"])
        #expect(ending.status == 1)
        let lines = ending.text.split(whereSeparator: \.isNewline)
        for text in row.shown {
            #expect(lines.count { $0.contains(text) } == 1, "\(ending.text)")
        }
        #expect(lines.last?.hasPrefix("postcard: ") == true && lines.last?.contains(row.addition) == true)
    }

    @Test(arguments: [
        ("<h1>Busy</h1><p>Wait.</p><hr><h1>Busy</h1><p>Wait.</p>", "Busy\nWait.\nBusy\nWait."),
        ("<title>No</title><h1>No</h1>", "No"),
    ])
    func `of a page only lines that follow each other are shown once`(page: String, text: String) {
        #expect(ShownResponse.text(ofPage: page) == text)
    }

    @Test func `only what the response says is left out of the message`() throws {
        let url = try #require(URL(string: "http://413.example/"))
        let response = UploadResponse(status: .contentTooLarge, headerFields: [:], body: Data("413".utf8))
        let error = UploadError.refused(response, by: url).adding("It was the last attempt.")
        #expect(
            error.message == "413.example:80 responded with 413 Content Too Large: 413. It was the last attempt.")
        #expect(
            CommandFailure(besidesResponse: error).description
                == "413.example:80 responded with 413 Content Too Large. It was the last attempt.")
    }

    @Test func `what is not shown is not left out of the message`() async throws {
        let script = SendTests.responding("413 Content Too Large", "text/plain", #"b"reason\0""#)
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let ending = try await Self.onTerminal(["send", server.address, "-F", "a=b"])
        #expect(ending.text.contains("is not for a terminal") && ending.text.contains(": reason"), "\(ending.text)")
    }

    @Test func `the phases of an upload and its retries are shown`() async throws {
        let script = """
            import socket, time
            listener = socket.create_server(("127.0.0.1", 0))
            print("http://127.0.0.1:%d" % listener.getsockname()[1], flush=True)
            for response in (b"HTTP/1.1 503 Busy\\r\\nContent-Length: 0\\r\\n\\r\\n", b"HTTP/1.1 200 OK\\r\\nContent-Length: 0\\r\\n\\r\\n"):
                connection = listener.accept()[0]
                while not connection.recv(65536).endswith(b"--\\r\\n"): pass
                time.sleep(0.3)
                connection.sendall(response)
                connection.close()
            """
        let server = try await RunningServer(["python3", "-c", script], of: URL(filePath: "/usr/bin/env"))
        let ending = try await Self.onTerminal(["send", server.address, "-F", "a=b", "--retries", "3"])
        #expect(ending.status == 0, "\(ending.text)")
        #expect(ending.text.contains("waiting for the response"), "\(ending.text)")
        #expect(ending.text.contains("postcard: attempt 2 of 4 in "), "\(ending.text)")
        #expect(ending.text.contains("503"), "\(ending.text)")
    }

    @Test func `what is written to a pipe stays as it is, in JSON apart from how characters are escaped`() async throws
    {
        let server = try await ReceivingServer()
        let value = "\u{9B}31m\u{202E}\t안녕 👩‍👩‍👧"
        let plain = try await Program.run(["send", server.uploads.absoluteString, "-F", "a=\(value)"])
        #expect(plain.text.contains("\u{202E}"))
        let report = try await Program.run(["send", server.uploads.absoluteString, "-F", "a=\(value)", "--json"])
        #expect(report.text.contains("\\u202e") && report.text.contains("\\u009b31m") && report.text.contains("안녕"))
        let object = try #require(try JSONSerialization.jsonObject(with: report.output) as? [String: Any])
        let fields = (object["body"] as? [String: Any])?["fields"] as? [[String: String]]
        #expect(fields?.first?["value"] == value)
    }
}
