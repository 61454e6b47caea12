import Foundation
import PostcardTestSupport
import Synchronization
import Testing

@Suite("postcard explain --listen", .timeLimit(.minutes(10)))
struct ListenTests {
    private static let form = "--XX\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n초코\r\n--XX--\r\n"

    private static func head(_ fields: String...) -> String {
        "POST / HTTP/1.1\r\nHost: localhost\r\nContent-Type: multipart/form-data; boundary=XX\r\n"
            + fields.map { $0 + "\r\n" }.joined() + "\r\n"
    }

    /// What clients send, and what the response is.
    static let requests: [(name: String, wire: String, words: String, status: String)] = [
        ("a whole request", head("Content-Length: \(form.utf8.count)") + form, "✓ The form is valid.", "200 OK"),
        ("chunks", head("Transfer-Encoding: chunked") + chunked(form), "✓ The form is valid.", "200 OK"),
        ("a wrong length", head("Content-Length: 10") + form, "error[content-length-mismatch]", "400 Bad Request"),
        ("a broken form", head("Content-Length: 4") + "--XX", "error[", "400 Bad Request"),
        ("no request", "hello\r\n", "error[malformed-request]", "400 Bad Request"),
        ("a request cut off", head("Content-Length: 1000") + form, "error[content-length-mismatch]", "400 Bad Request"),
        (
            "no form", "POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: 1\r\n\r\na", "error[",
            "415 Unsupported Media Type"
        ),
        ("TLS", "\u{16}\u{03}\u{01}\u{02}", "encrypted", "400 Bad Request"),
    ]

    private static func chunked(_ text: String) -> String {
        "\(String(text.utf8.count, radix: 16))\r\n\(text)\r\n0\r\n\r\n"
    }

    @Test(arguments: requests)
    func `each request is explained to its sender and to the listener, until a form is valid`(
        name: String, wire: String, words: String, status: String
    ) async throws {
        let listener = try await Listener()
        let response = try await listener.exchange(wire)
        #expect(response.hasPrefix("HTTP/1.1 \(status)\r\n"), "\(response)")
        #expect(response.contains(words), "\(response)")
        if status != "200 OK" { #expect(try await listener.exchange(Self.requests[0].wire).contains("✓")) }
        let ending = await listener.end()
        #expect(ending.status == 0)
        #expect(ending.output.contains(words))
    }

    @Test
    func `a client that waits for 100 Continue gets it`() async throws {
        let listener = try await Listener()
        let folder = try TemporaryFolder()
        let body = try folder.file("body", Self.form.utf8)
        let curl = try await Program.run(
            "curl",
            [
                "--silent", "--show-error", "--include", "--data-binary", "@\(body.path)", "--header",
                "Content-Type: multipart/form-data; boundary=XX", "--header", "Expect: 100-continue",
                "--expect100-timeout", "60", listener.address,
            ])
        #expect(curl.text.hasPrefix("HTTP/1.1 100 Continue"))
        #expect(curl.text.contains("✓ The form is valid."))
        #expect(await listener.end().status == 0)
    }

    @Test
    func `who connects and says nothing is not the one that is waited for`() async throws {
        let listener = try await Listener()
        let nothing = try await listener.exchange("")
        #expect(nothing.isEmpty)
        let response = try await listener.exchange(Self.head("Content-Length: \(Self.form.utf8.count)") + Self.form)
        #expect(response.contains("✓ The form is valid."))
        #expect(await listener.end().status == 0)
    }

    @Test
    func `a client that goes silent in the middle of its request is answered after the timeout`() async throws {
        let listener = try await Listener("--timeout", "1")
        let response = try await listener.exchange(Self.head("Content-Length: 1000") + Self.form, thenSilent: true)
        #expect(response.contains("error[content-length-mismatch]"))
        #expect(try await listener.exchange(Self.requests[0].wire).contains("✓"))
        #expect(await listener.end().status == 0)
    }

    @Test
    func `what another connection sends does not get into the fixed file`() async throws {
        let folder = try TemporaryFolder()
        let fixed = folder.url.appending(path: "fixed")
        let listener = try await Listener("--timeout", "600", "--fix", fixed.path)
        let wire = Self.head("Content-Length: \(Self.form.utf8.count)") + Self.form
        let response = try await listener.exchange(
            wire,
            besides: "GET /health HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        #expect(response.contains("✓ The form is valid."), "\(response)")
        #expect(await listener.end().status == 0)
        #expect(try Data(contentsOf: fixed) == Data(wire.utf8))
        withExtendedLifetime(folder) {}
    }

    @Test
    func `a port that is taken ends it with 69`() async throws {
        let listener = try await Listener()
        let port = try #require(listener.address.split(separator: ":").last.map(String.init))
        let ending = try await Program.run(["explain", "--listen", port])
        #expect(ending.status == 69)
        #expect(
            ending.messages == "postcard: Cannot listen on 127.0.0.1:\(port): Address already in use\n",
            "\(ending.messages)")
        _ = try await listener.exchange(Self.requests[0].wire)
        _ = await listener.end()
    }
}

/// The program while it listens for one request.
private final class Listener: Sendable {
    let address: String
    private let process: Mutex<Process>
    private let folder: TemporaryFolder
    private let ended: Task<Int32, Never>

    init(_ options: String...) async throws {
        folder = try TemporaryFolder()
        let process = Process()
        process.executableURL = Program.url
        process.arguments = ["explain", "--listen", "0"] + options
        process.standardInput = FileHandle.nullDevice
        process.standardOutput = try FileHandle(forWritingTo: try folder.file("output", []))
        let messages = Pipe()
        process.standardError = messages
        let (endings, continuation) = AsyncStream.makeStream(of: Int32.self)
        process.terminationHandler = { process in
            continuation.yield(process.terminationStatus)
            continuation.finish()
        }
        ended = Task { await endings.first { _ in true } ?? -1 }
        try process.run()
        let line = try await RunningServer.firstLine(of: messages.fileHandleForReading)
        address = try #require(line.split(separator: " ").last.map(String.init), "nothing listens")
        self.process = Mutex(process)
    }

    deinit {
        process.withLock { if $0.isRunning { $0.terminate() } }
    }

    /// Sends bytes, says that no more will come unless it is to be silent instead, and gives back the response.
    ///
    /// - Parameter other: The head of a request that is sent before, on another connection, and has no end. It must
    ///   expect 100 Continue, which shows that it was received.
    func exchange(_ wire: String, thenSilent: Bool = false, besides other: String = "") async throws -> String {
        let client = """
            import socket, sys
            if sys.argv[4]:
                other = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
                other.sendall(bytes.fromhex(sys.argv[4]))
                other.recv(65536)
            connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])))
            connection.sendall(bytes.fromhex(sys.argv[2]))
            if sys.argv[3] == "end": connection.shutdown(socket.SHUT_WR)
            while data := connection.recv(65536): sys.stdout.buffer.write(data)
            """
        let port = try #require(address.split(separator: ":").last.map(String.init))
        let arguments = [port, Self.digits(wire), thenSilent ? "silent" : "end", Self.digits(other)]
        return try await Program.run("python3", ["-c", client] + arguments).text
    }

    private static func digits(_ text: String) -> String {
        text.utf8.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
    }

    /// Waits until the program ends.
    func end() async -> (status: Int32, output: String) {
        let status = await ended.value
        let output = (try? String(contentsOf: folder.url.appending(path: "output"), encoding: .utf8)) ?? ""
        return (status, output)
    }
}
