import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Servers that do not resume uploads, have no room for them, or take little at a time.
extension ResumptionTests {
    @Test(arguments: Carrier.allCases, ["204 No Content", "404 Not Found", "405 Method Not Allowed", "500 Oh"])
    func `a server that does not resume uploads gets ordinary ones`(carrier: Carrier, status: String) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder, size: 10_000)
        let body = try await form.layout().bytes()
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                let isForm = request.head.line.hasPrefix("POST")
                try await connection.respond(isForm ? "201 Created" : status)
            }
        } while: { server in
            let client = Self.client(carrier)
            for _ in 0..<2 { try await client.upload(form, to: server.url) }
            return server.requests.whole
        }
        let methods = requests.map { $0.head.line.prefix { $0 != " " } }
        // A failure may pass: it is asked again.
        let again = status.hasPrefix("500") ? ["OPTIONS", "OPTIONS"] : []
        #expect(methods.map(String.init) == ["OPTIONS", "OPTIONS", "POST"] + again + ["POST"])
        let forms = requests.filter { $0.method == "POST" }
        #expect(forms.allSatisfy { $0.body == body })
        // Each invites the server in another version, unless it failed when it was asked.
        let versions = status.hasPrefix("500") ? [nil, nil] : ["8", "6"]
        #expect(forms.map { $0.head["Upload-Draft-Interop-Version"] } == versions)
        #expect(forms.map { $0.head["Upload-Complete"] } == versions.map { $0 == nil ? nil : "?1" })
    }

    @Test(arguments: Carrier.allCases, ["503 Service Unavailable", "404 Not Found", "201 Created"])
    func `a server without room for an upload resource is asked for one again, and one that makes none is not`(
        carrier: Carrier, status: String
    ) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder, size: 10_000)
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                if request.method == "OPTIONS" {
                    try await connection.respond("204 No Content", ["Upload-Limit": "min-size=0"])
                } else if request.body.isEmpty {
                    try await connection.respond(
                        status, ["Content-Type": "application/problem+json"], body: #"{"code":"store-full"}"#)
                } else {
                    try await connection.respond("201 Created")
                }
            }
        } while: { server in
            let client = Self.client(carrier)
            for _ in 0..<2 { try await client.upload(form, to: server.url) }
            return server.requests.whole
        }
        let second = status.hasPrefix("503") ? ["POST", "POST"] : ["POST"]
        #expect(requests.map(\.method) == ["OPTIONS", "POST", "POST"] + second)
    }

    @Test(arguments: Carrier.allCases)
    func `a large form goes in pieces where the server takes no more at a time`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder, size: 10_000)
        let body = try await form.layout().bytes()
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.head.line.prefix(while: { $0 != " " }) {
                case "OPTIONS":
                    try await connection.respond("204 No Content", ["Upload-Limit": "max-append-size=4000"])
                case "POST":
                    try await connection.respond("201 Created", ["Location": "/uploads/a", "Upload-Complete": "?0"])
                default:
                    let isLast = request.head["Upload-Complete"] == "?1"
                    try await connection.respond(isLast ? "200 OK" : "204 No Content")
                }
            }
        } while: { server in
            let response = try await Self.client(carrier).upload(form, to: server.url)
            #expect(response.status == .ok && response.bytesSent == Int64(body.count))
            return server.requests.whole
        }
        let appends = requests.filter { $0.head.line.hasPrefix("PATCH /uploads/a ") }
        #expect(appends.flatMap(\.body) == body)
        #expect(appends.map { $0.head["Upload-Offset"] } == ["0", "4000", "8000"])
        #expect(appends.map { $0.head["Upload-Complete"] } == ["?0", "?0", "?1"])
        #expect(appends.allSatisfy { $0.head["Content-Type"] == "application/partial-upload" })
        let creation = try #require(requests.first { $0.head.line.hasPrefix("POST") })
        #expect(creation.head["Content-Type"] == form.contentType)
        #expect(creation.head["Upload-Length"] == "\(body.count)" && creation.body.isEmpty)
    }

    @Test(arguments: Carrier.allCases)
    func `a server that takes a few bytes at a time gets the form in one request`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder, size: 10_000)
        let body = try await form.layout().bytes()
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                let isQuestion = request.head.line.hasPrefix("OPTIONS")
                try await connection.respond(
                    isQuestion ? "204 No Content" : "200 OK", isQuestion ? ["Upload-Limit": "max-append-size=1"] : [:])
            }
        } while: { server in
            try await Self.client(carrier).upload(form, to: server.url)
            return server.requests.whole
        }
        #expect(requests.map(\.method) == ["OPTIONS", "POST"])
        #expect(requests.last?.body == body)
    }

    @Test(arguments: Carrier.allCases)
    func `a server whose offset grows by a byte with each attempt is given up`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder, size: 10_000)
        let offset = Mutex(0)
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.method {
                case "OPTIONS": try await connection.respond("204 No Content", ["Upload-Limit": "max-size=1000000"])
                case "POST":
                    try await connection.respond("201 Created", ["Location": "/uploads/a", "Upload-Complete": "?0"])
                case "HEAD":
                    let now = offset.withLock { offset in
                        offset += 1
                        return offset
                    }
                    try await connection.respond(
                        "204 No Content", ["Upload-Offset": "\(now)", "Upload-Complete": "?0"])
                default:
                    // The connection is closed: the server may have any of it.
                    return
                }
            }
        } while: { server in
            let error = await #expect(throws: UploadError.self) {
                try await Self.client(carrier).upload(form, to: server.url)
            }
            #expect(error?.code == .connectionLost)
            return server.requests.whole
        }
        #expect(requests.count { $0.method == "PATCH" } == 5)
    }
}
