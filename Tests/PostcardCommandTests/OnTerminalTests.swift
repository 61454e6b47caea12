import Foundation
import PostcardTestSupport
import Testing

@testable import postcard

/// What is shown on terminals that are narrow, usual and wide, with colors and without.
@Suite(.timeLimit(.minutes(10)))
struct OnTerminalTests {
    /// A command, how it ends, and what it shows. `URL` is the receiver's, `ROOT` that of its page, `CLOSED` one that no
    /// server listens on, and `FOLDER` a folder.
    private struct Row {
        let command: String
        let status: Int32
        let shown: [String]
        var once: String?
    }

    private static let rows = [
        Row(command: "send URL -F a=b", status: 0, shown: ["waiting for the response", "100 %", "\"name\" : \"a\""]),
        Row(
            command: "send URL -F f=@FOLDER/large --limit-rate 20M", status: 0,
            shown: ["large", " 0 %", "100 %", "waiting for the response"]),
        Row(command: "send CLOSED -F a=b --retries 1", status: 69, shown: ["attempt 2 of 2 in", "onnection refused"]),
        Row(
            command: "send ROOTnowhere -F a=b", status: 1, shown: ["\"code\" : \"not-found\"", "responded with 404"],
            once: "\"detail\""),
        Row(command: "send URL -F a=b --cacert FOLDER/none", status: 66, shown: ["none cannot be read"]),
        Row(command: "send URL -F a=b --proxy ftp://a", status: 64, shown: ["A proxy is http or socks5, not 'ftp'"]),
        Row(command: "send URL -F -=v", status: 0, shown: ["\"name\" : \"-\""]),
        Row(command: "send CLOSED -F a=b --json", status: 69, shown: ["{\"attempts\":1,\"error\":{", "\"delivery\""]),
        Row(command: "send URL -F a=b --fit 12q", status: 64, shown: ["'12q'", "such as 1MB"]),
        Row(command: "send URL -F a=@FOLDER/none", status: 66, shown: ["No such file", "Check the path."]),
        Row(command: "send URL -F a=b --dry-run", status: 0, shown: ["POST /uploads HTTP/1.1", "name=\"a\""]),
        Row(command: "send URL -F f=@FOLDER/large --dry-run", status: 0, shown: ["is not for a terminal", "> body"]),
        Row(command: "queue list --queue FOLDER/queue", status: 0, shown: []),
        Row(command: "queue cancel 7 --queue FOLDER/queue", status: 64, shown: ["7"]),
        Row(command: "queue add URL -F a=b --queue FOLDER/queue", status: 0, shown: ["1"]),
        Row(
            command: "queue run --drain --queue FOLDER/queue", status: 0, shown: ["1  done", "  201"], once: "1  done"),
        Row(command: "queue run --drain --limit-rate 0", status: 64, shown: ["such as 500K"]),
        Row(command: "serve --contradicted-types maybe", status: 64, shown: ["maybe", "refuse"]),
        Row(command: "explain FOLDER/none", status: 66, shown: ["none"]),
    ]

    private static func onTerminal(
        _ arguments: [String], columns: Int, isColored: Bool = false
    ) async throws -> Program.Ending {
        let script = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
            .appending(path: "Senders/on-terminal")
        try Tool.require("python3")
        return try await Program.run(
            "env",
            ["TERMINAL_COLUMNS=\(columns)", "TERM=xterm", isColored ? "NO_COLOR=" : "NO_COLOR=1", "python3"]
                + [script.path, Program.url.path] + arguments)
    }

    @Test(arguments: [40, 80, 200], [true, false])
    func `each command shows what happens`(columns: Int, isColored: Bool) async throws {
        let server = try await ReceivingServer()
        let folder = try TemporaryFolder()
        _ = try folder.file("large", size: 5_000_000)
        for row in Self.rows {
            let arguments = row.command.split(separator: " ").map { word in
                String(word).replacing("URL", with: server.uploads.absoluteString)
                    .replacing("ROOT", with: server.url.absoluteString)
                    .replacing("CLOSED", with: "http://127.0.0.1:1/").replacing("FOLDER", with: folder.path)
            }
            let ending = try await Self.onTerminal(arguments, columns: columns, isColored: isColored)
            let text = ending.text.replacing(/\u{1B}\[[0-9;]*[A-Za-z]/, with: "")
            #expect(ending.status == row.status, "\(row.command): \(text)")
            for shown in row.shown { #expect(text.contains(shown), "\(row.command): \(text)") }
            if let once = row.once { #expect(text.ranges(of: once).count == 1, "\(row.command): \(text)") }
            for line in text.split(whereSeparator: { $0.isNewline }) where line.contains(" %") {
                #expect(DisplayWidth.of(line) <= columns, "\(row.command): \(line)")
            }
        }
    }

    @Test(arguments: [true, false])
    func `problems have colors unless NO_COLOR says no`(isColored: Bool) async throws {
        let folder = try TemporaryFolder()
        let file = try folder.file("request", "POST / HTTP/1.1\r\nContent-Type: multipart/form-data\r\n\r\n--a".utf8)
        let ending = try await Self.onTerminal(["explain", file.path], columns: 80, isColored: isColored)
        #expect(ending.status == 1)
        #expect(ending.text.contains("\u{1B}[1;31m") == isColored, "\(ending.text)")
    }
}
