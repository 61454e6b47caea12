import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import SystemPackage
import Testing

@Suite(.timeLimit(.minutes(10)))
struct ConnectionTests {
    @Test
    func `a client that waits for 100 Continue receives it, and then its response`() async throws {
        try await withReceiver { receiver in
            let port = receiver.port
            let response = try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send(Form.head(contentLength: Form.small.utf8.count, fields: ["Expect: 100-continue"]))
                let asked = try socket.receive(until: "\r\n\r\n")
                try socket.send(Form.small)
                return asked + (try socket.receive(until: "}]"))
            }
            #expect(response.hasPrefix("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 201"))
        }
    }

    @Test(arguments: [
        (Form.head(contentLength: 5000, fields: ["Expect: 100-continue"]), 413),
        (Form.request(body: "", contentType: "", fields: ["Expect: 100-continue"]), 415),
    ])
    func `a client that waits for 100 Continue receives a refusal instead if the head alone is invalid`(
        request: String, status: Int
    ) async throws {
        try await withReceiver {
            $0.uploads.limits.maximumBodyBytes = 1000
        } _: { receiver in
            let response = try await receiver.exchange(request)
            #expect(response.status == status)
            #expect(!response.text.contains("100 Continue"))
            #expect(response.headers["connection"] == "close")
        }
    }

    @Test(arguments: [[], ["-H", "Expect:"], ["-H", "Expect:", "-H", "Transfer-Encoding: chunked"]])
    func `curl prints the problem when it sends 100 MB and the limit is 1 MB`(arguments: [String]) async throws {
        try await withReceiver {
            $0.uploads.limits.maximumBodyBytes = 1_000_000
            $0.connections.drainTimeout = .seconds(120)
        } _: { receiver in
            let file = receiver.directory.appending("..").appending("large.bin").string
            #expect(FileManager.default.createFile(atPath: file, contents: nil))
            try FileHandle(forWritingTo: URL(filePath: file)).truncate(atOffset: 100_000_000)
            let result = try await Program.run(
                "curl",
                ["-sS", "--max-time", "\(RunningReceiver.patience)"] + arguments
                    + ["-F", "f=@\(file)", "\(receiver.url)/uploads"])
            #expect(result.status == 0, "\(result.messages)")
            let problem = try JSONDecoder().decode(Problem.self, from: result.output)
            #expect(problem.status == 413)
            #expect(problem.code == "body-too-large")
            #expect(problem.limit?.value == 1_000_000)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test
    func `a client that sends everything before it reads still receives the refusal`() async throws {
        try await withReceiver {
            $0.uploads.limits.maximumFileBytes = 1000
            $0.connections.drainTimeout = .seconds(120)
        } _: { receiver in
            let port = receiver.port
            // As much as a proxy on the same machine sends at once.
            let block = [UInt8](repeating: 0x78, count: 1 << 20)
            let response = try await onThread {
                let socket = try RawSocket(port: port)
                let length = Form.fileHeader.utf8.count + 200 * block.count
                try socket.send(Form.head(contentLength: length) + Form.fileHeader)
                for _ in 0..<200 { try socket.send(block) }
                return try RawResponse(socket.receiveAll())
            }
            #expect(response.problem?.code == "file-too-large")
        }
    }

    @Test
    func `a client that keeps sending after its refusal is disconnected after some time, however fast it sends`()
        async throws
    {
        try await withReceiver {
            $0.uploads.limits.maximumFileBytes = 1000
            $0.connections.drainTimeout = .milliseconds(100)
        } _: { receiver in
            let port = receiver.port
            await #expect(throws: (any Error).self) {
                try await onThread {
                    let socket = try RawSocket(port: port)
                    try socket.send(Form.head(contentLength: 1 << 40) + Form.fileHeader)
                    let block = [UInt8](repeating: 0, count: 1 << 16)
                    while true { try socket.send(block) }
                }
            }
        }
    }

    @Test
    func `a client that neither sends nor closes after its refusal is disconnected after the drain timeout`()
        async throws
    {
        try await withReceiver {
            $0.uploads.limits.maximumFileBytes = 10
            $0.connections.drainTimeout = .milliseconds(100)
        } _: { receiver in
            let port = receiver.port
            let file = Form.fileHeader + String(repeating: "x", count: 1000)
            try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send(Form.head(contentLength: 1 << 40) + file)
                _ = try socket.receiveAll()
                // The server has closed its output. Once it has closed the whole connection, sending fails.
                #expect(throws: (any Error).self) { while true { try socket.send("x") } }
            }
        }
    }

    @Test
    func `a client that stops in the middle of a body is refused with 408, and nothing of its form is kept`()
        async throws
    {
        try await withReceiver {
            $0.connections.idleTimeout = .milliseconds(200)
        } _: { receiver in
            var response: RawResponse?
            // On a busy machine the connection may be closed before anything is sent.
            repeat {
                try Task.checkCancellation()
                let request = Form.head(contentLength: 1000) + Form.fileHeader + "content"
                response = try? await receiver.exchange(request)
            } while response?.text.isEmpty ?? true
            #expect(response?.status == 408)
            #expect(response?.problem?.code == "too-slow")
            #expect(response?.problem?.limit?.value == 200)
            #expect(try receiver.incoming.isEmpty)
        }
    }

    @Test func `a connection is closed if no request follows a response within the keep-alive timeout`() async throws {
        try await withReceiver {
            $0.connections.keepAliveTimeout = .milliseconds(200)
        } _: { receiver in
            let response = try await receiver.exchange("GET /health HTTP/1.1\r\nHost: a\r\n\r\n")
            #expect(response.body == "ok")
        }
    }

    @Test(arguments: ["", "POST /uploads HTT"])
    func `a connection without a request is closed after the idle timeout`(beginning: String) async throws {
        try await withReceiver {
            $0.connections.idleTimeout = .milliseconds(200)
        } _: { receiver in
            // It may be closed before all is sent.
            let response = try? await receiver.exchange(beginning)
            #expect(response?.text ?? "" == "")
        }
    }

    @Test(arguments: [
        ("GET /health HTTP/1.1\r\nHost: a\r\nX: ", "a"), ("GET /health HTTP/1.1\r\nHost: a\r\n", "X: a\r\n"),
        ("POST /uploads?", "a"), ("", "\r\n"),
        ("GET /health HTTP/1.1\r\nHost: a\r\n\r\nGET /health HTTP/1.1\r\nX: ", "a"),
    ])
    func `a head that arrives byte by byte has to be complete within the idle timeout`(beginning: String, piece: String)
        async throws
    {
        try await withReceiver {
            $0.connections.idleTimeout = .milliseconds(300)
        } _: { receiver in
            let port = receiver.port
            try await onThread {
                let socket = try RawSocket(port: port)
                try socket.send(beginning)
                // Sending fails once the connection is closed. The loop also ends if the server never closes it: after
                // minutes, since a busy machine may hold up the response to an earlier request.
                #expect(throws: (any Error).self) {
                    for _ in 0..<4_000 {
                        try socket.send(piece)
                        if socket.hasReceived(within: 50), try socket.receive().isEmpty { throw Errno.connectionReset }
                    }
                }
            }
        }
    }

    @Test
    func `pipelined requests are answered in order on one connection`() async throws {
        try await withReceiver { receiver in
            let first = Form.request(body: Form.small).replacing("Connection: close\r\n", with: "")
            let response = try await receiver.exchange(
                first + "GET /health HTTP/1.1\r\nHost: a\r\n\r\n" + Form.request(body: Form.small))
            let statuses = response.text.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
            #expect(statuses == ["201", "200", "201"])
            #expect(try receiver.records.count == 2)
        }
    }

    @Test
    func `garbage after a request is refused after the response to the request`() async throws {
        try await withReceiver { receiver in
            let response = try await receiver.exchange(
                "GET /health HTTP/1.1\r\nHost: a\r\n\r\n\u{1}\u{2}garbage\r\n\r\n")
            let statuses = response.text.split(separator: "HTTP/1.1 ").map { $0.prefix(3) }
            #expect(statuses == ["200", "400"])
            #expect(response.text.contains("malformed-request"))
        }
    }

    @Test
    func `a shutdown lets an upload in progress finish, and accepts no new connection`() async throws {
        try await withReceiver { receiver in
            let port = receiver.port
            let socket = try RawSocket(port: port)
            let content = String(repeating: "x", count: 1_000_000)
            let body = Form.fileHeader + content + Form.end
            try await socket.send(Form.head(contentLength: body.utf8.count) + String(body.dropLast(500_000)))
            try await eventually { try !receiver.incoming.isEmpty }
            async let ended: Void = receiver.shutDown()
            try await eventually { (try? RawSocket(port: port)) == nil }
            try await socket.send(String(body.suffix(500_000)))
            let response = try await RawResponse(socket.receiveAll())
            #expect(response.status == 201)
            #expect(try UploadRecord(json: Data(response.body.utf8)).files.map(\.size) == [1_000_000])
            await ended
        }
    }
}
