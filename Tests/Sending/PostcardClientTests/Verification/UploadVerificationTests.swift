import Crypto
import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Testing

@Suite(.timeLimit(.minutes(10))) struct UploadVerificationTests {
    /// A receiver's record, as far as it says which bytes came.
    struct Record: Encodable, Sendable {
        struct Field: Encodable {
            var name: String
            var value: String
            /// The bytes that were sent, if the value is another text.
            var base64: Data?
        }

        struct File: Encodable {
            var filename: String
            var size: Int
            var sha256: String

            init(_ filename: String, _ content: Data) {
                self.filename = filename
                size = content.count
                sha256 = SHA256.hash(data: content).map { byte in
                    String(byte >> 4, radix: 16) + String(byte & 15, radix: 16)
                }.joined()
            }
        }

        var id = "7"
        var fields: [Field]
        var files: [File]

        var json: String {
            get throws { String(decoding: try JSONEncoder().encode(self), as: UTF8.self) }
        }
    }

    /// A form and the record that a receiver answers which has all of it.
    private static func form(in folder: TemporaryFolder) throws -> (MultipartForm, Record) {
        var form = MultipartForm()
        let picture = try folder.file("초코 사진.jpg", size: 300_000)
        let large = try folder.file("large.bin", size: 700_000)
        form.append("초코\n두 살", named: "소개")
        form.append(fileAt: picture, named: "petImage")
        form.append("", named: "empty")
        form.append(SendingTests.stream(of: 3, length: nil), named: "log", filename: "log.txt")
        form.append(fileAt: large, named: "petImage")
        let log = Data((0..<3).flatMap { Array(repeating: UInt8($0), count: 10_000) })
        let record = Record(
            fields: [.init(name: "소개", value: "초코\n두 살"), .init(name: "empty", value: "")],
            files: [
                .init("초코 사진.jpg", try Data(contentsOf: picture)), .init("log.txt", log),
                .init("large.bin", try Data(contentsOf: large)),
            ])
        return (form, record)
    }

    private static func client(_ carrier: Carrier) -> UploadClient {
        var client = UploadClient(
            transport: carrier.transport(), retryPolicy: .withoutDelays(maximumAttempts: 3))
        client.responses.verification = .record
        return client
    }

    @Test(arguments: Carrier.allCases)
    func `a record that has all of the form agrees, at the second attempt too`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, record) = try Self.form(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("503 Service Unavailable")
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", body: try record.json)
        } while: { server in
            let response = try await Self.client(carrier).upload(form, to: server.url)
            #expect(response.attempts == 2)
        }
    }

    /// What a receiver has otherwise, and the parts that are named for it.
    struct Alteration: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let named: [String]
        let parts: [Int]
        let change: @Sendable (inout Record) -> Void
    }

    static let alterations = [
        Alteration(
            testDescription: "another content", named: ["the file \"large.bin\" (field \"petImage\", part 5)"],
            parts: [4]
        ) {
            $0.files[2].sha256 = String($0.files[2].sha256.reversed())
        },
        Alteration(testDescription: "a file cut short", named: ["\"초코 사진.jpg\""], parts: [1]) {
            $0.files[0].size -= 1
        },
        Alteration(testDescription: "a file less", named: ["\"large.bin\""], parts: [4]) { $0.files.removeLast() },
        Alteration(
            testDescription: "files in another order", named: ["\"초코 사진.jpg\"", "\"log.txt\""], parts: [1, 3]
        ) {
            $0.files.swapAt(0, 1)
        },
        Alteration(testDescription: "another text", named: ["the field \"소개\", part 1"], parts: [0]) {
            $0.fields[0].value = "초코\r\n두 살"
        },
        Alteration(testDescription: "a text that came broken", named: ["the field \"소개\", part 1"], parts: [0]) {
            $0.fields[0].value = "초\u{FFFD}\n두 살"
        },
    ]

    /// What a record may have of a text that was not sent in UTF-8, and whether that is what was sent.
    static let latin1Fields: [(value: String, base64: [UInt8]?, isSame: Bool)] = [
        ("café", [0x63, 0x61, 0x66, 0xE9], true), ("caf\u{FFFD}", [0x63, 0x61, 0x66, 0xE9], true),
        ("caf\u{FFFD}", nil, false), ("café", nil, false), ("café", Array("café".utf8), false),
    ]

    @Test(arguments: Carrier.allCases, latin1Fields)
    func `a text that was not sent in UTF-8 is compared by the bytes that the record keeps`(
        carrier: Carrier, field: (value: String, base64: [UInt8]?, isSame: Bool)
    ) async throws {
        var form = MultipartForm()
        let latin1: MediaType = "text/plain; charset=iso-8859-1"
        form.append(FormPart(name: "name", contentType: latin1, content: .bytes(Data([0x63, 0x61, 0x66, 0xE9]))))
        let sent = form
        let record = Record(
            fields: [.init(name: "name", value: field.value, base64: field.base64.map { Data($0) })], files: [])
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", body: try record.json)
        } while: { server in
            let response = try? await Self.client(carrier).upload(sent, to: server.url)
            #expect(response?.status == (field.isSame ? .created : nil))
        }
    }

    /// Requests a retry after every outcome.
    private struct Stubborn: UploadInterceptor {
        func decide(after error: UploadError, of attempt: UploadAttempt) -> UploadDecision { .retry(after: .zero) }
    }

    @Test(arguments: Carrier.allCases, alterations)
    func `what the receiver has otherwise is named, and nothing is sent again`(
        carrier: Carrier, alteration: Alteration
    ) async throws {
        let folder = try TemporaryFolder()
        var (form, record) = try Self.form(in: folder)
        alteration.change(&record)
        let response = try record.json
        let sent = form
        form = MultipartForm()
        try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                try await connection.respond("201 Created", body: response)
            }
        } while: { server in
            var client = Self.client(carrier)
            client.interceptors = [Stubborn()]
            let stubborn = client
            let error = try await #require(throws: UploadError.self) {
                try await stubborn.upload(sent, to: server.url)
            }
            #expect(error.code == .altered)
            for name in alteration.named { #expect(error.message.contains(name), "\(error.message)") }
            #expect((error.underlyingError as? UploadVerification.Mismatch)?.parts.map(\.index) == alteration.parts)
            #expect(error.response?.status == .created)
            #expect(error.response?.text == response)
            #expect(error.attempts == 1)
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a response that is no record says so`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder)
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("200 OK", body: "thanks")
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await Self.client(carrier).upload(form, to: server.url)
            }
            #expect(error.code == .decoding)
            #expect(error.response?.text == "thanks")
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a comparison that fails leaves no doubt that the server has the form`(carrier: Carrier) async throws {
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", body: "thanks")
        } while: { server in
            var client = Self.client(carrier)
            client.responses.verification = UploadVerification { _, _ in throw CocoaError(.fileReadCorruptFile) }
            let verifying = client
            let error = try await #require(throws: UploadError.self) {
                try await verifying.upload(MultipartForm(), to: server.url)
            }
            #expect(error.code == .decoding)
            #expect(error.delivery == .accepted)
            #expect((error.underlyingError as? CocoaError)?.code == .fileReadCorruptFile)
        }
    }

    /// A form with one large file, and the record of a receiver that has all of it.
    private static func largeForm(in folder: TemporaryFolder, size: Int) throws -> (MultipartForm, Record) {
        var form = MultipartForm()
        form.append(fileAt: try folder.sparseFile("large.bin", size: UInt64(size)), named: "file")
        return (form, Record(fields: [], files: [.init("large.bin", Data(count: size))]))
    }

    @Test func `a response that comes before the form has gone out cannot be about all of it`() async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.largeForm(in: folder, size: 64 << 20)
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond("201 Created", ["Connection": "close"], body: "{}")
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await Self.client(.asyncHTTP).upload(form, to: server.url)
            }
            #expect(error.code == .earlyResponse)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a form whose early response the client accepts is compared as a whole`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, record) = try Self.largeForm(in: folder, size: 64 << 20)
        var altered = record
        altered.files[0].size -= 1
        let outcomes: [(String, UploadError.Code?)] = [
            (try record.json, nil), (try altered.json, .altered), ("{}", .decoding),
        ]
        for (body, code) in outcomes {
            let ended = Gate()
            try await RawServer.run { connection in
                _ = try await connection.readHead()
                try await connection.respond("201 Created", ["Connection": "close"], body: body)
                await ended.wait()
                _ = try await connection.readToEnd()
            } while: { server in
                defer { ended.open() }
                var client = Self.client(carrier)
                client.responses.acceptsEarly = true
                do {
                    let response = try await client.upload(form, to: server.url)
                    #expect(code == nil && response.isEarly)
                } catch let error as UploadError {
                    #expect(error.code == code && error.delivery == .accepted)
                }
                #expect(server.requests.heads.count == 1)
            }
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a form that the server knows from an earlier attempt is compared as a whole`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, record) = try Self.largeForm(in: folder, size: 8 << 20)
        try await RawServer.run { connection in
            if connection.number == 0 {
                // The response is lost.
                _ = try await connection.readRequest()
                return
            }
            _ = try await connection.readHead()
            try await connection.respond("201 Created", body: try record.json)
            _ = try await connection.readToEnd()
        } while: { server in
            let response = try await Self.client(carrier).upload(form, to: server.url)
            #expect(response.attempts == 2)
        }
    }

    @Test func `a stream that can be read only once cannot be compared after an early response`() async throws {
        var form = MultipartForm()
        let chunks = AsyncStream<Data> { continuation in
            for _ in 0..<64 { continuation.yield(Data(count: 1 << 20)) }
            continuation.finish()
        }
        form.append(FormStream(chunks), named: "log", filename: "log.txt")
        let sent = form
        let ended = Gate()
        try await RawServer.run { connection in
            _ = try await connection.readHead()
            try await connection.respond("201 Created", ["Connection": "close"], body: "{}")
            await ended.wait()
            _ = try await connection.readToEnd()
        } while: { server in
            defer { ended.open() }
            var client = Self.client(.asyncHTTP)
            client.responses.acceptsEarly = true
            let verifying = client
            let error = try await #require(throws: UploadError.self) {
                try await verifying.upload(sent, to: server.url)
            }
            #expect(error.code == .earlyResponse)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a program can read other servers' responses in its own way`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, record) = try Self.form(in: folder)
        let digests = record.files.map(\.sha256).dropFirst().joined(separator: " ")
        try await RawServer.run { connection in
            _ = try await connection.readRequest()
            try await connection.respond("201 Created", ["X-Checksums": digests])
        } while: { server in
            var client = Self.client(carrier)
            client.responses.verification = UploadVerification { parts, response in
                let checksums = response.headerFields.first { $0.name.rawName == "X-Checksums" }?.value ?? ""
                return parts.filter { $0.isFile && !checksums.contains($0.sha256) }
            }
            let verifying = client
            let error = try await #require(throws: UploadError.self) {
                try await verifying.upload(form, to: server.url)
            }
            #expect(error.code == .altered)
            #expect((error.underlyingError as? UploadVerification.Mismatch)?.parts.map(\.filename) == ["초코 사진.jpg"])
        }
    }
}
