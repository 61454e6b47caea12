import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct SendingTests {
    /// A form by a name that says what is odd about it.
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let make: @Sendable (TemporaryFolder) throws -> MultipartForm

        init(_ description: String, _ make: @escaping @Sendable (TemporaryFolder) throws -> MultipartForm) {
            testDescription = description
            self.make = make
        }
    }

    static let cases = [
        Case("no parts") { _ in MultipartForm() },
        Case("one text") { _ in
            var form = MultipartForm()
            form.append("value", named: "name")
            return form
        },
        Case("Korean names and texts") { folder in
            var form = MultipartForm()
            form.append("초코는 세 살입니다 🐶", named: "소개")
            form.append(fileAt: try folder.file("초코 사진.jpg", size: 5_000), named: "petImage")
            return form
        },
        Case("five files under one name") { folder in
            var form = MultipartForm()
            let files = try (0..<5).map { try folder.file("\($0).png", size: $0 * 70_000) }
            form.append(filesAt: files, named: "images")
            return form
        },
        Case("a file of several blocks") { folder in
            var form = MultipartForm()
            form.append(fileAt: try folder.file("large.bin", size: 3_000_000), named: "file")
            return form
        },
        Case("a stream of unknown length") { _ in
            var form = MultipartForm()
            form.append("before", named: "before")
            form.append(stream(of: 40, length: nil), named: "log", filename: "log.txt")
            form.append("after", named: "after")
            return form
        },
        Case("a stream of known length") { _ in
            var form = MultipartForm()
            form.append(stream(of: 40, length: 40 * 10_000), named: "log", filename: "log.txt")
            return form
        },
    ]

    /// A stream that can be read again and again.
    static func stream(of chunks: Int, length: Int64?) -> FormStream {
        FormStream(length: length) {
            AsyncStream { continuation in
                for number in 0..<chunks { continuation.yield(Data(repeating: UInt8(number), count: 10_000)) }
                continuation.finish()
            }
        }
    }

    @Test(arguments: Carrier.allReaders, cases)
    func `the body arrives byte for byte, with its own boundary in the header`(
        carrier: Carrier, form: Case
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try form.make(folder)
        let request = try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created")
        } while: { server in
            let response = try await UploadClient(transport: carrier.transport()).upload(form, to: server.url)
            #expect(response.status == .created)
            return try #require(server.requests.whole.first)
        }
        let layout = try form.layout()
        #expect(request.body == (try await layout.bytes()))
        #expect(request.head.line == "POST /uploads HTTP/1.1")
        #expect(request.head["Content-Type"] == form.contentType)
        if let length = layout.contentLength, carrier.names(length: length) {
            #expect(request.head["Content-Length"] == "\(length)")
            #expect(request.head["Transfer-Encoding"] == nil)
        } else {
            #expect(request.head["Content-Length"] == nil)
            #expect(request.head["Transfer-Encoding"] == "chunked")
        }
    }

    /// A form whose body has this number of bytes.
    private static func form(ofLength length: Int64) throws -> MultipartForm {
        let boundary = Boundary()
        func form(_ count: Int64) -> MultipartForm {
            var form = MultipartForm(boundary: boundary)
            form.append(Data(repeating: 7, count: Int(count)), named: "file", filename: "a", contentType: .octetStream)
            return form
        }
        return form(length - (try form(0).layout().contentLength ?? 0))
    }

    @Test(arguments: [(1 << 20, nil), ((1 << 20) + 1, nil), (5_000, 5_000), (5_001, 5_000)] as [(Int64, Int?)])
    func `URLSession sends the length of a form up to the limit, and reports progress on either side of it`(
        length: Int64, limit: Int?
    ) async throws {
        let form = try Self.form(ofLength: length)
        let journal = ProgressTests.Journal()
        let transport = limit.map { URLSessionTransport(maximumBytesInMemory: $0) } ?? URLSessionTransport()
        try await Responses.run([("201 Created", [:])]) { server in
            try await UploadClient(transport: transport).upload(form, to: server.url, progress: journal.note)
            let request = try #require(server.requests.whole.first)
            #expect(request.body == (try await form.layout().bytes()))
            #if os(Linux)
            let isNamed = length <= limit.map(Int64.init) ?? 1 << 20
            #else
            let isNamed = true
            #endif
            #expect(request.head["Content-Length"] == (isNamed ? "\(length)" : nil))
            #expect(request.head["Transfer-Encoding"] == (isNamed ? nil : "chunked"))
        }
        let steps = journal.all
        #expect(steps.map(\.bytesSent) == steps.map(\.bytesSent).sorted())
        #expect(steps.last?.bytesSent == length && steps.last?.fraction == 1)
    }

    @Test func `a server that wants a length says so, and the error names a transport that sends it`() async throws {
        let form = try Self.form(ofLength: 2 << 20)
        try await Responses.run([("411 Length Required", ["Connection": "close"])]) { server in
            let error = try await #require(throws: UploadError.self) {
                try await UploadClient(transport: URLSessionTransport()).upload(form, to: server.url)
            }
            #expect(error.response?.status.code == 411)
            #expect(error.advice?.contains("AsyncHTTPTransport") == true)
        }
    }

    @Test(arguments: Carrier.allReaders)
    func `the method and the header fields are the caller's, but those that the form decides`(
        carrier: Carrier
    ) async throws {
        var form = MultipartForm()
        form.append("value", named: "name")
        let sent = form
        let head = try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("204 No Content")
        } while: { server in
            try await UploadClient(transport: carrier.transport()).upload(
                sent, to: server.url, method: .put,
                headerFields: [
                    .authorization: "Bearer abc", .contentType: "application/json", .contentLength: "3",
                    .transferEncoding: "gzip", .userAgent: "Postcard",
                ])
            return try #require(server.requests.heads.first)
        }
        #expect(head.line == "PUT /uploads HTTP/1.1")
        #expect(head["Authorization"] == "Bearer abc")
        #expect(head["User-Agent"] == "Postcard")
        #expect(head["Idempotency-Key"] == nil)
        #expect(head.fields.filter { $0.name.lowercased() == "content-type" }.map(\.value) == [sent.contentType])
        #expect(head["Content-Length"] != "3")
        #expect(head["Transfer-Encoding"] != "gzip")
        #expect(head["Expect"] == nil)
    }

    @Test(arguments: Carrier.allReaders)
    func `one client sends many forms at a time`(carrier: Carrier) async throws {
        let bodies = try await RawServer.run { connection in
            while try await connection.readRequest() != nil { try await connection.respond("201 Created") }
        } while: { server in
            let client = UploadClient(transport: carrier.transport())
            try await withThrowingTaskGroup { group in
                for number in 0..<20 {
                    group.addTask {
                        var form = MultipartForm()
                        form.append("\(number)", named: "number")
                        try await client.upload(form, to: server.url)
                    }
                }
                try await group.waitForAll()
            }
            return server.requests.whole.map { String(decoding: $0.body, as: UTF8.self) }
        }
        let numbers = bodies.compactMap { $0.components(separatedBy: "\r\n").dropFirst(3).first }.compactMap(Int.init)
        #expect(numbers.sorted() == Array(0..<20))
    }

    @Test(arguments: Carrier.allReaders)
    func `the response holds status, header fields and body`(carrier: Carrier) async throws {
        struct Record: Decodable, Equatable {
            let id: String
        }
        let response = try await RawServer.run { connection in
            _ = try await connection.readRequest()
            let body = #"{"id":"초코"}"#
            try await connection.respond(
                "201 Created", ["Location": "/uploads/7", "Content-Type": "application/json"], body: body)
        } while: { server in
            try await UploadClient(transport: carrier.transport()).upload(MultipartForm(), to: server.url)
        }
        #expect(response.status == .created)
        #expect(response.headerFields[.location] == "/uploads/7")
        #expect(response.text == #"{"id":"초코"}"#)
        #expect(try response.decode(Record.self) == Record(id: "초코"))
        #expect(response.attempts == 1)
        #expect(response.bytesSent == (try MultipartForm().layout().contentLength))
    }
}
