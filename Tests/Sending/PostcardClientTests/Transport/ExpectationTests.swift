import Foundation
import HTTPTypes
import PostcardAsyncHTTP
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct ExpectationTests {
    private static func form(in folder: TemporaryFolder, size: Int = 500_000) throws -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: try folder.file("a.bin", size: size), named: "file")
        return form
    }

    private static func client(_ carrier: Carrier, above size: Int64 = 100_000) -> UploadClient {
        client(carrier.transport(), above: size)
    }

    private static func client(_ transport: any UploadTransport, above size: Int64 = 100_000) -> UploadClient {
        var client = UploadClient(transport: transport)
        client.network.expectContinueAbove = size
        return client
    }

    /// One that does not send the body because the machine is busy and the server slow; that of URLSession is its own.
    private static func patientClient(_ carrier: Carrier) -> UploadClient {
        switch carrier {
        case .asyncHTTP, .asyncHTTPOnEventLoops: client(AsyncHTTPTransport(expectationPatience: .seconds(60)))
        case .urlSession: client(carrier)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that wants the body gets it, upload after upload on one connection`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let expected = try await form.layout().bytes()
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                #expect(head["Expect"]?.lowercased() == "100-continue")
                #expect(!head.fields.contains { $0.name.lowercased().hasPrefix("postcard") })
                try await connection.write("HTTP/1.1 100 Continue\r\n\r\n")
                #expect(try await connection.readBody(of: head) == expected)
                try await connection.respond("201 Created")
            }
        } while: { server in
            let client = Self.client(carrier)
            for _ in 0..<3 {
                let response = try await client.upload(form, to: server.url)
                #expect(response.status == .created)
                #expect(response.bytesSent == Int64(expected.count))
            }
            #expect(server.requests.heads.count == 3)
        }
    }

    @Test(
        arguments: Carrier.allCases,
        ["401 Unauthorized", "413 Content Too Large", "307 Temporary Redirect", "503 Busy"])
    func `a refusal by the head alone arrives, and the body is never sent`(
        carrier: Carrier, status: String
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder, size: 8_000_000)
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond(status, body: "no")
            let count = try await connection.readToEnd()
            // URLSession on Linux sends the body after a second without a response, which a busy machine may take.
            if carrier == .asyncHTTP { #expect(count == 0) }
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await Self.patientClient(carrier).upload(form, to: server.url)
            }
            #expect(error.code == .refused)
            #expect(error.response?.status.code == Int(status.prefix(3)))
            // URLSession on Linux keeps the body of a redirect to itself.
            if !status.hasPrefix("3") { #expect(error.response?.text == "no") }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that says nothing gets the body`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            try await Self.client(carrier).upload(form, to: server.url)
            #expect(server.requests.whole.first?.body == (try await form.layout().bytes()))
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that knows no such question is sent the form without it`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            guard let request = try await connection.readHead() else { return }
            if request["Expect"] != nil {
                return try await connection.respond("417 Expectation Failed", ["Connection": "close"])
            }
            #expect(try await connection.readBody(of: request) == (try await form.layout().bytes()))
            try await connection.respond("201 Created", ["Connection": "close"])
        } while: { server in
            let response = try await Self.client(carrier).upload(form, to: server.url)
            #expect(response.status == .created)
            // libcurl may ask again by itself before it returns the 417.
            let isAsked = server.requests.heads.map { $0["Expect"] != nil }
            #expect(isAsked.first == true)
            #expect(isAsked.count { !$0 } == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a small form is sent without a question, and one of unknown length with it`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let small = try Self.form(in: folder)
        let length = try #require(try small.layout().contentLength)
        var unknown = MultipartForm()
        unknown.append(SendingTests.stream(of: 1, length: nil), named: "log", filename: "log.txt")
        let unknownForm = unknown
        try await RawServer.run { connection in
            while let head = try await connection.readHead() {
                if head["Expect"] != nil { try await connection.write("HTTP/1.1 100 Continue\r\n\r\n") }
                _ = try await connection.readBody(of: head)
                try await connection.respond("201 Created")
            }
        } while: { server in
            try await Self.client(carrier, above: length).upload(small, to: server.url)
            try await Self.client(carrier, above: length - 1).upload(small, to: server.url)
            try await Self.client(carrier, above: length).upload(unknownForm, to: server.url)
            #expect(server.requests.heads.map { $0["Expect"] != nil } == [false, true, true])
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an upload that waits to be asked for its body can be cancelled`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        // So large that it does not go out before it is cancelled: libcurl waits for a second and no longer.
        let size: UInt64 = 8 << 30
        var large = MultipartForm()
        large.append(fileAt: try folder.sparseFile("large.bin", size: size), named: "file")
        let form = large
        let (began, begin) = AsyncStream.makeStream(of: Void.self)
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            begin.finish()
            #expect(try await connection.readToEnd() < Int(size))
        } while: { server in
            let upload = Task { try await Self.patientClient(carrier).upload(form, to: server.url) }
            for await _ in began {}
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
        }
    }
}
