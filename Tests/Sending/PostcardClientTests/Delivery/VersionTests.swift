import Foundation
import PostcardClient
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import PostcardTestSupport
import Testing

/// Servers that know one version of the draft or another, in front of both transports.
@Suite(.timeLimit(.minutes(10))) struct VersionTests {
    private static func form(in folder: TemporaryFolder) throws -> MultipartForm {
        var form = MultipartForm()
        form.append(fileAt: try folder.file("a.jpg", size: 200_000), named: "image")
        return form
    }

    private static func client(_ carrier: Carrier, attempts: Int = 1) -> UploadClient {
        var client = ResumptionTests.client(carrier, [.interop9, .interop8, .interop6])
        client.retryPolicy = .withoutDelays(maximumAttempts: attempts)
        return client
    }

    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let rules: VersionedServer.Rules
        /// The versions of the requests that begin the first form, and of those that begin the second.
        let versions: [[String?]]
        /// How often the second form makes the client send OPTIONS.
        var questions = 0
    }

    private static let cases = [
        Case(
            testDescription: "a server that is strict about 9", rules: VersionedServer.Rules(),
            versions: [["9"], ["9"]]),
        Case(
            testDescription: "a server that knows only 6", rules: VersionedServer.Rules(versions: ["6"]),
            versions: [["9", "8", "6"], ["6"]]),
        Case(
            testDescription: "a server of version 8", rules: VersionedServer.Rules(versions: ["8"]),
            versions: [["9", "8"], ["8"]]),
        Case(
            testDescription: "a server that knows no OPTIONS",
            rules: VersionedServer.Rules(answersOptions: false), versions: [["9"], ["9"]]),
        Case(
            testDescription: "a server that has no version", rules: VersionedServer.Rules(versions: nil),
            versions: [["9"], ["9"]]),
    ]

    @Test(arguments: Carrier.allCases, cases)
    func `a form that breaks twice arrives whole, and the next one is negotiated at once`(
        carrier: Carrier, row: Case
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let body = try await form.layout().bytes()
        let scripted = VersionedServer(row.rules)
        try await RawServer.run { connection in
            try await scripted.serve(connection)
        } while: { server in
            let client = Self.client(carrier)
            var begun: [[String?]] = []
            for _ in 0..<2 {
                let count = server.requests.whole.count
                let response = try await client.upload(form, to: server.url)
                #expect(response.status == .created)
                let requests = server.requests.whole.dropFirst(count)
                begun.append(requests.filter { $0.method == "POST" }.map { $0.head["Upload-Draft-Interop-Version"] })
                if count > 0 { #expect(requests.count { $0.method == "OPTIONS" } == row.questions) }
            }
            #expect(begun == row.versions)
        }
        #expect(scripted.forms == [body, body])
        #expect(scripted.keys.count == 2)
    }

    @Test(arguments: Carrier.allCases)
    func `another address of an origin is asked in the version that the origin has accepted`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let scripted = VersionedServer(VersionedServer.Rules(versions: ["6"], breaks: 0))
        try await RawServer.run { connection in
            try await scripted.serve(connection)
        } while: { server in
            let client = Self.client(carrier)
            try await client.upload(form, to: server.url)
            let count = server.requests.whole.count
            try await client.upload(form, to: server.url.appending(path: "others"))
            let requests = server.requests.whole.dropFirst(count)
            #expect(requests.map(\.method) == ["OPTIONS", "POST", "PATCH"])
            #expect(requests.allSatisfy { $0.head["Upload-Draft-Interop-Version"] == "6" })
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server without OPTIONS and versions is resumed once it was invited without one`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let body = try await form.layout().bytes()
        // Three whole forms break, one for each version that it cannot answer in.
        let scripted = VersionedServer(VersionedServer.Rules(versions: nil, answersOptions: false, breaks: 4))
        try await RawServer.run { connection in
            try await scripted.serve(connection)
        } while: { server in
            let response = try await Self.client(carrier, attempts: 4).upload(form, to: server.url)
            #expect(response.status == .created)
            let last = server.requests.whole.last
            #expect(last?.method == "PATCH" && last?.head["Upload-Draft-Interop-Version"] == nil)
        }
        #expect(scripted.forms == [body] && scripted.keys.count == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `a server that offers 9 and refuses every version ends the upload, which is not sent whole`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let scripted = VersionedServer(VersionedServer.Rules(versions: []))
        let requests = try await RawServer.run { connection in
            try await scripted.serve(connection)
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await Self.client(carrier).upload(form, to: server.url)
            }
            #expect(error.code == .refused && error.response?.status == .badRequest)
            #expect(error.message.contains("refuses interop versions 9, 8, 6"), "\(error)")
            return server.requests.whole
        }
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "POST", "POST"])
        #expect(requests.allSatisfy { $0.body.isEmpty })
    }

    /// A server that creates uploads, and answers HEAD and PATCH in one way.
    private static func error(
        _ carrier: Carrier, _ answer: @escaping @Sendable (RawConnection, RawRequest) async throws -> Bool
    ) async throws -> (error: UploadError, requests: [RawRequest]) {
        let folder = try TemporaryFolder()
        let form = try form(in: folder)
        return try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", ["Upload-Limit": "min-size=0"])
                case "POST": try await connection.respond("201 Created", ["Location": "/uploads/a"])
                case "DELETE": try await connection.respond("204 No Content")
                default: guard try await answer(connection, request) else { return }
                }
            }
        } while: { server in
            let error = try await #require(throws: UploadError.self) {
                try await Self.client(carrier).upload(form, to: server.url)
            }
            return (error, server.requests.whole)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server that changes its version within an upload is left, and its resource deleted`(
        carrier: Carrier
    ) async throws {
        let (error, requests) = try await Self.error(carrier) { connection, request in
            guard request.method == "HEAD" else { return false }
            try await connection.respond(
                "204 No Content", ["Upload-Offset": "0", "Upload-Draft-Interop-Version": "8"])
            return true
        }
        #expect(error.code == .refused && error.message.contains("responded in another version"), "\(error)")
        #expect(requests.last?.method == "DELETE")
    }

    @Test(arguments: Carrier.allCases)
    func `an upload that stays locked ends with its own error`(carrier: Carrier) async throws {
        let (error, requests) = try await Self.error(carrier) { connection, request in
            guard request.method == "HEAD" else { return false }
            try await connection.respond("423 Locked")
            return true
        }
        #expect(error.response?.status.code == 423 && error.attempts == 5)
        #expect(error.message.contains("busy with an earlier request"), "\(error)")
        #expect(requests.count { $0.method == "HEAD" } == 4)
        #expect(Set(requests.compactMap { $0.head["Idempotency-Key"] }).count == 1)
    }

    @Test(arguments: Carrier.allCases)
    func `a 104 that accepts less than the form stops the request, and its upload is deleted`(
        carrier: Carrier
    ) async throws {
        let (error, requests) = try await Self.error(carrier) { connection, _ in
            try await connection.write(
                "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 9\r\n"
                    + "Upload-Limit: max-size=1000\r\n\r\n")
            await connection.waitForEndOfServer()
            return false
        }
        #expect(error.code == .refused && error.message.contains("within its limits: max-size=1000"), "\(error)")
        #expect(requests.last?.method == "DELETE")
    }

    @Test(arguments: Carrier.allCases)
    func `a 104 in another version does not stop the request, whatever its limits`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", ["Upload-Limit": "min-size=0"])
                case "POST": try await connection.respond("201 Created", ["Location": "/uploads/a"])
                default:
                    for number in ["", "Upload-Draft-Interop-Version: 8\r\n"] {
                        try await connection.write(
                            "HTTP/1.1 104 Upload Resumption Supported\r\n\(number)Upload-Limit: max-size=1\r\n\r\n")
                    }
                    try await connection.respond("201 Created", ["Upload-Complete": "?1"])
                }
            }
        } while: { server in
            let response = try await Self.client(carrier).upload(form, to: server.url)
            #expect(response.status == .created && response.attempts == 1)
        }
    }

    @Test(arguments: Carrier.allCases, [false, true])
    func `the response of another upload is found out, and the form is not sent again`(
        carrier: Carrier, isRepeated: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let form = try Self.form(in: folder)
        let count = try await form.layout().bytes().count
        let other = UploadVerificationTests.Record(fields: [], files: [.init("a.jpg", Data("another".utf8))])
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", ["Upload-Limit": "min-size=0"])
                case "POST": try await connection.respond("201 Created", ["Location": "/uploads/a"])
                case "HEAD":
                    try await connection.respond(
                        "204 No Content", ["Upload-Offset": "\(count)", "Upload-Complete": "?1"])
                case "PATCH" where isRepeated && !request.body.isEmpty:
                    // The response is lost. With a 104 libcurl does not repeat the request by itself.
                    try await connection.write(
                        "HTTP/1.1 104 Upload Resumption Supported\r\nUpload-Draft-Interop-Version: 9\r\n"
                            + "Upload-Offset: 0\r\n\r\n")
                    return
                default:
                    try await connection.respond("201 Created", ["Upload-Complete": "?1"], body: try other.json)
                }
            }
        } while: { server in
            var client = Self.client(carrier)
            client.responses.verification = .record
            let sending = client
            let error = try await #require(throws: UploadError.self) {
                try await sending.upload(form, to: server.url)
            }
            #expect(error.code == .altered && error.attempts == (isRepeated ? 2 : 1), "\(error)")
            return server.requests.whole
        }
        let repetition = isRepeated ? ["HEAD", "PATCH"] : []
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "PATCH"] + repetition)
        #expect(Set(requests.compactMap { $0.head["Idempotency-Key"] }).count == 1)
    }
}
