import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct ConnectionTests {
    private static func largeForm(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: 64 << 20), named: "file")
        return form
    }

    @Test(arguments: ["ftp://example.org/", "uploads", "http:///uploads", "file:///etc/hosts", "http://a:70000/"])
    func `a form goes to no other than a web address`(text: String) async throws {
        let url = try #require(URL(string: text))
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient().upload(MultipartForm(), to: url)
        }
        #expect(error.code == .invalidURL)
        #expect(error.message.contains(text))
    }

    @Test(arguments: Carrier.allCases)
    func `the error of a refused connection names the address`(carrier: Carrier) async throws {
        // Port 1 is reserved for a service that no machine runs.
        let url = try #require(URL(string: "http://127.0.0.1:1/uploads"))
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: url)
        }
        #expect(error.code == .connectionFailed)
        #expect(error.message.hasPrefix("No connection to 127.0.0.1:1: "))
    }

    @Test(arguments: Carrier.allCases)
    func `a host that does not exist is named`(carrier: Carrier) async throws {
        let url = try #require(URL(string: "http://no-such-host.invalid/uploads"))
        let error = try await #require(throws: UploadError.self) {
            try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: url)
        }
        #expect(error.code == .connectionFailed)
        #expect(error.message == "No connection to no-such-host.invalid:80: there is no such host")
    }

    @Test(arguments: Carrier.allCases)
    func `a server without TLS is not the same error as no server`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            try await connection.write("HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")
            _ = try await connection.readToEnd()
        } while: { server in
            let url = try #require(URL(string: "https://127.0.0.1:\(server.url.port ?? 0)/uploads"))
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: url)
            }
            #expect(error.code == .tls)
            #expect(error.message.hasPrefix("No secure connection to 127.0.0.1:\(server.url.port ?? 0): "))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a connection that breaks before it is secure is lost, and tried again`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            // The first bytes of the client's greeting.
            try await connection.readThrough("\u{16}")
        } while: { server in
            let url = try #require(URL(string: "https://127.0.0.1:\(server.url.port ?? 0)/uploads"))
            let client = UploadClient(
                transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
            let error = try await #require(throws: UploadError.self) {
                try await client.upload(MultipartForm(), to: url)
            }
            #expect(error.code == .connectionLost, "\(String(describing: error.underlyingError))")
            #expect(error.attempts == 3 && error.delivery == .neverArrived)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that closes in the middle of the body loses the connection`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.largeForm(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readHead()
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(form, to: server.url)
            }
            #expect(error.code == .connectionLost)
            #expect(error.message.contains("127.0.0.1:\(server.url.port ?? 0)"))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that closes without a response loses the connection`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .connectionLost)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a response that is cut off loses the connection`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.write("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf")
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .connectionLost)
        }
    }

    @Test(
        arguments: Carrier.allCases,
        [
            "Content-Length: 3\r\nContent-Length: 5", "Content-Length: 5\r\nContent-Length: 3", "Content-Length: 5, 6",
            "Content-Length: -5", "Content-Length: +5", "Content-Length: 99999999999999999999",
            "Content-Length: 5\r\nTransfer-Encoding: chunked",
        ])
    func `a response with a length that is none, or with two, loses the connection`(
        carrier: Carrier, fields: String
    ) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            let isChunked = fields.contains("chunked")
            try await connection.write(
                "HTTP/1.1 201 Created\r\n\(fields)\r\n\r\n" + (isChunked ? "3\r\nabc\r\n0\r\n\r\n" : "abcde"))
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .connectionLost)
        }
    }

    @Test(arguments: Carrier.allCases, ["000", "001", "099"])
    func `a status that is none loses the connection`(carrier: Carrier, status: String) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("\(status) x")
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .connectionLost)
            if carrier == .asyncHTTP { #expect(error.message.contains("the response is not valid HTTP")) }
        }
    }

    @Test(arguments: Carrier.allCases, [UploadError.Phase.sending, .waiting, .receiving])
    func `the timeout of a server that hangs says at which step`(
        carrier: Carrier, phase: UploadError.Phase
    ) async throws {
        let folder = try TemporaryFolder()
        let form = phase == .sending ? try Self.largeForm(in: folder) : MultipartForm()
        try await RawServer.run { connection in
            switch phase {
            case .sending, .connecting:
                await connection.waitForEndOfServer()
            case .waiting:
                _ = try await connection.readToEnd()
            case .receiving:
                _ = try await connection.readRequest()
                try await connection.write("HTTP/1.1 201 Created\r\nContent-Length: 100\r\n\r\nhalf")
                _ = try await connection.readToEnd()
            }
        } while: { server in
            var client = UploadClient(
                transport: carrier.transport(), timeouts: UploadTimeouts(idle: .milliseconds(100)))
            var error: UploadError?
            // A busy machine may need longer than that to come as far as the step in question.
            repeat {
                let patient = client
                error = try await #require(throws: UploadError.self) {
                    try await patient.upload(form, to: server.url)
                }
                client.timeouts.idle = client.timeouts.idle.map { $0 * 2 }
            } while error?.phase != phase && client.timeouts.idle ?? .zero < .seconds(30)
            #expect(error?.code == .timedOut)
            #expect(error?.phase == phase)
            #expect(error?.message.contains("127.0.0.1:\(server.url.port ?? 0)") == true)
        }
    }

    @Test(arguments: Carrier.allCases, ["while sending", "while waiting"])
    func `cancelling the task closes the connection`(carrier: Carrier, moment: String) async throws {
        let folder = try TemporaryFolder()
        let form = moment == "while sending" ? try Self.largeForm(in: folder) : MultipartForm()
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        let (closed, close) = AsyncStream.makeStream(of: Bool.self)
        try await RawServer.run { connection in
            guard let head = try await connection.readHead() else { return }
            begin.finish()
            if moment == "while sending" {
                // Cancelled before it could send everything: only what was in flight still arrives.
                let count = try? await connection.readToEnd()
                close.yield((count ?? 0) < 64 << 20)
            } else {
                _ = try await connection.readBody(of: head)
                close.yield((try? await connection.readToEnd()) != nil)
            }
            close.finish()
        } while: { server in
            let upload = Task {
                try await UploadClient(transport: carrier.transport()).upload(form, to: server.url)
            }
            for await _ in begun {}
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            #expect(await closed.first { _ in true } == true)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a task that is cancelled beforehand sends nothing`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            let (begun, begin) = AsyncStream.makeStream(of: Void.self)
            let upload = Task {
                for await _ in begun {}
                try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
            }
            upload.cancel()
            begin.finish()
            await #expect(throws: CancellationError.self) { try await upload.value }
            #expect(server.requests.whole.isEmpty)
        }
    }

    // Connecting would often take longer than the cancellation.
    @Test func `a transport is not asked to send in a task that is cancelled beforehand`() async throws {
        let url = try #require(URL(string: "http://127.0.0.1:1/"))
        let (begun, begin) = AsyncStream.makeStream(of: Void.self)
        await confirmation(expectedCount: 0) { sends in
            let transport = Scripted {
                sends()
                return 100
            }
            let upload = Task {
                for await _ in begun {}
                try await UploadClient(transport: transport).upload(MultipartForm(), to: url)
            }
            upload.cancel()
            begin.finish()
            await #expect(throws: CancellationError.self) { try await upload.value }
        }
    }
}
