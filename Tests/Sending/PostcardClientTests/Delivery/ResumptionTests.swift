import Crypto
import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

@Suite(.timeLimit(.minutes(10))) struct ResumptionTests {
    static let size = 3_000_000

    static func client(
        _ carrier: Carrier, _ versions: [ResumptionVersion] = [.interop8, .interop6], deletes: Bool = false
    ) -> UploadClient {
        // The requests are counted, and a busy machine must not add some.
        var client = UploadClient(transport: carrier.transport(), timeouts: UploadTimeouts(idle: nil))
        var policy = ResumptionPolicy(
            retryPolicy: RetryPolicy(maximumAttempts: 5), minimumBytes: 0, deletesCancelledUploads: deletes)
        policy.retryPolicy.firstDelay = .milliseconds(1)
        policy.versions = versions
        client.resumption = policy
        client.reporting.progressInterval = .zero
        return client
    }

    static func form(in folder: TemporaryFolder, size: Int = size) throws -> (MultipartForm, file: URL) {
        let file = try folder.file("초코.jpg", size: size)
        var form = MultipartForm()
        form.append("초코", named: "name")
        form.append(fileAt: file, named: "image")
        form.append("after", named: "after")
        return (form, file)
    }

    // MARK: - With another project's server

    @Test(arguments: Carrier.allCases, [ResumptionVersion.interop3, .interop5, .interop6])
    func `a form that is cut again and again arrives whole, once, at another's server`(
        carrier: Carrier, version: ResumptionVersion
    ) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder)
        let body = try await form.layout().bytes()
        let cuts = Cuts(6, in: body.count)
        try await ReferenceServer.run { server in
            try await FaultProxy.run(before: server.url) {
                cuts.fault(of: $0)
            } while: { proxy in
                let witness = ProgressWitness()
                let resumed = Mutex<Set<Bool>>([])
                let response = try await Self.client(carrier, [version]).upload(form, to: proxy.uploads) { progress in
                    witness.note(progress.bytesSent)
                    _ = resumed.withLock { $0.insert(progress.isResumed == (progress.attempt > 1)) }
                }
                #expect(response.status == .created)
                #expect(response.attempts == 7)
                #expect(resumed.withLock { $0 } == [true])
                #expect(response.text == "{\"count\":\(body.count)}")
                #expect(response.bytesSent == Int64(body.count))
                #expect(!witness.hasFallen && witness.last == Int64(body.count))
                #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
                #expect(cuts.left == 0)
            }
            let whole = ReferenceServer.Form(
                method: "POST", contentType: form.contentType, count: body.count,
                sha256: Array(SHA256.hash(data: body)))
            #expect(server.received == [whole])
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a server is asked once which version it speaks, and each file's digest spans the cuts`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let (form, file) = try Self.form(in: folder)
        let digest = SHA256.hash(data: try Data(contentsOf: file)).map { String(format: "%02x", $0) }.joined()
        try await ReferenceServer.run { server in
            let cuts = Cuts(at: [1_000_000, 1_000_001, 2_900_000])
            try await FaultProxy.run(before: server.url) {
                cuts.fault(of: $0)
            } while: { proxy in
                var client = Self.client(carrier)
                client.responses.verification = UploadVerification { parts, _ in
                    parts.filter { $0.name == "image" && $0.sha256 != digest }
                }
                for _ in 0..<2 { try await client.upload(form, to: proxy.uploads) }
                #expect(proxy.seen.count { $0.method == "OPTIONS" } == 2)
                // One for each cut, and one that ends each upload; a busy server may refuse one that comes before it has
                // noticed the cut.
                #expect(cuts.left == 0 && proxy.seen.count { $0.method == "PATCH" } >= 5)
                #expect(proxy.seen.allSatisfy { $0.method == "PATCH" || $0["Expect"] == nil })
            }
            #expect(server.received.count == 2)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `a file that has changed ends the upload before another byte is sent`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, file) = try Self.form(in: folder)
        try await ReferenceServer.run { server in
            try await FaultProxy.run(before: server.url) { request in
                switch request.method {
                case "PATCH": return .reset(atByte: 1_000_000)
                case "HEAD": try? Data(repeating: 7, count: Self.size).write(to: file)
                default: break
                }
                return .none
            } while: { proxy in
                let error = await #expect(throws: UploadError.self) {
                    try await Self.client(carrier, [.interop6]).upload(form, to: proxy.uploads)
                }
                #expect(error?.code == .form && error?.delivery == .neverArrived)
                #expect(error?.message.contains(file.lastPathComponent) == true)
                #expect(proxy.seen.map(\.method) == ["OPTIONS", "POST", "PATCH", "HEAD"])
            }
            #expect(server.received.isEmpty)
        }
    }

    @Test(arguments: Carrier.allCases, [false, true])
    func `a cancelled upload leaves nothing open, and is deleted only where that is asked for`(
        carrier: Carrier, deletes: Bool
    ) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder)
        try await ReferenceServer.run { server in
            let proxy = try await FaultProxy.run(before: server.url) { request in
                request.method == "PATCH" ? .stall(atByte: 100_000) : .none
            } while: { proxy in
                let client = Self.client(carrier, [.interop6], deletes: deletes)
                let upload = Task { try await client.upload(form, to: proxy.uploads) }
                await proxy.waitForBody(of: 100_000)
                upload.cancel()
                await #expect(throws: CancellationError.self) { try await upload.value }
                return proxy
            }
            let methods = ["OPTIONS", "POST", "PATCH"] + (deletes ? ["DELETE"] : [])
            #expect(proxy.seen.map(\.method) == methods)
            try proxy.expectNothingOpen(in: folder)
        }
    }

    /// What a process leaves behind for the next.
    private final class Kept: Sendable {
        let resources = Mutex<[URL?]>([])
    }

    /// Uploads as a process does that may have had one before it.
    private static func upload(
        _ form: MultipartForm, through proxy: FaultProxy, _ carrier: Carrier, _ digest: String, _ kept: Kept
    ) async throws -> UploadResponse {
        var client = client(carrier, [.interop6])
        client.responses.verification = UploadVerification { parts, _ in
            parts.filter { $0.name == "image" && $0.sha256 != digest }
        }
        return try await client.upload(
            try form.layout(), to: proxy.uploads, method: .post, headerFields: HTTPFields(),
            resuming: kept.resources.withLock { $0.last ?? nil },
            savingResource: { resource in kept.resources.withLock { $0.append(resource) } }, progress: { _ in })
    }

    @Test(arguments: Carrier.allCases)
    func `a later process goes on, and holds all of the form to what the server says`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, file) = try Self.form(in: folder)
        let digest = SHA256.hash(data: try Data(contentsOf: file)).map { String(format: "%02x", $0) }.joined()
        try await ReferenceServer.run { server in
            let hasStalled = Mutex(false)
            try await FaultProxy.run(before: server.url) { request in
                guard request.method == "PATCH" else { return .none }
                return hasStalled.withLock { hasStalled in
                    defer { hasStalled = true }
                    return hasStalled ? .none : .stall(atByte: 2_000_000)
                }
            } while: { proxy in
                let kept = Kept()
                let first = Task { try await Self.upload(form, through: proxy, carrier, digest, kept) }
                await proxy.waitForBody(of: 2_000_000)
                first.cancel()
                await #expect(throws: CancellationError.self) { try await first.value }
                let response = try await Self.upload(form, through: proxy, carrier, digest, kept)
                #expect(response.status == .created)
                #expect(
                    proxy.seen.map(\.method) == ["OPTIONS", "POST", "PATCH", "OPTIONS", "HEAD", "PATCH"])
                #expect(proxy.seen.last?["Upload-Offset"] != "0")
                let notes = kept.resources.withLock { $0 }
                #expect(notes.count == 1)
            }
            #expect(server.received.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an upload that a server has lost starts over under the same key, and progress does not fall`(
        carrier: Carrier
    ) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder)
        try await ReferenceServer.run { server in
            let lost = Fault.response(Fault.Response(404))
            try await FaultProxy.run(
                [.none, .none, .reset(atByte: 2_000_000), lost], before: server.url
            ) { proxy in
                let witness = ProgressWitness()
                try await Self.client(carrier, [.interop6]).upload(form, to: proxy.uploads) {
                    witness.note($0.bytesSent)
                }
                #expect(!witness.hasFallen)
                #expect(proxy.seen.map(\.method) == ["OPTIONS", "POST", "PATCH", "HEAD", "POST", "PATCH"])
                #expect(Set(proxy.seen.map { $0["Idempotency-Key"] }).count == 1)
                #expect(proxy.seen.last?["Upload-Offset"] == "0")
            }
            #expect(server.received.count == 1)
        }
    }

    @Test(arguments: Carrier.allCases)
    func `an upload that comes no further ends with its last error`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder)
        try await ReferenceServer.run { server in
            try await FaultProxy.run(before: server.url) {
                $0.method == "PATCH" ? .reset(atByte: 0) : .none
            } while: {
                proxy in
                let error = await #expect(throws: UploadError.self) {
                    try await Self.client(carrier, [.interop6]).upload(form, to: proxy.uploads)
                }
                #expect(error?.code == .connectionLost && error?.attempts == 5)
            }
        }
    }

    // MARK: - With servers that a script makes

    /// How a server answers a client that missed the response to its form.
    struct LostResponse: Sendable, CustomTestStringConvertible {
        /// The status of the response to an empty append, and of those to GET, of which the last repeats; `nil` for a
        /// connection that closes.
        let statuses: (patch: Int, gets: [Int?])
        /// What follows from it.
        let end: End

        enum End: Sendable {
            case kept, refused, lost
        }

        var testDescription: String {
            let gets = statuses.gets.map { $0.map(String.init) ?? "closed" }
            return "PATCH \(statuses.patch), GET \(gets.joined(separator: ", "))"
        }

        static let all: [Self] = [
            Self(statuses: (200, []), end: .kept), Self(statuses: (400, [201]), end: .kept),
            Self(statuses: (409, [200]), end: .kept), Self(statuses: (400, [422]), end: .refused),
            Self(statuses: (400, [204]), end: .lost), Self(statuses: (400, [404]), end: .lost),
            Self(statuses: (400, [405]), end: .lost), Self(statuses: (400, [nil]), end: .lost),
            Self(statuses: (400, [503]), end: .lost), Self(statuses: (400, [nil, 201]), end: .kept),
            Self(statuses: (400, [503, nil, 201]), end: .kept), Self(statuses: (400, [502, 404]), end: .lost),
        ]
    }

    @Test(arguments: Carrier.allCases, LostResponse.all)
    func `a response that was lost is asked for once more`(carrier: Carrier, row: LostResponse) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder, size: 10_000)
        let length = try #require(try form.layout().contentLength)
        let heads = Mutex(0)
        let gets = Mutex(0)
        let requests = try await RawServer.run { connection in
            while let request = try await connection.readRequest() {
                switch request.head.line.prefix(while: { $0 != " " }) {
                case "OPTIONS": try await connection.respond("200 OK", ["Accept-Patch": "application/partial-upload"])
                case "POST": try await connection.respond("201 Created", ["Location": "/uploads/a"])
                case "HEAD":
                    heads.withLock { $0 += 1 }
                    try await connection.respond(
                        "204 No Content", ["Upload-Offset": "\(length)", "Upload-Complete": "?1"])
                case "GET":
                    let count = gets.withLock { gets in
                        gets += 1
                        return gets
                    }
                    guard let status = row.statuses.gets.prefix(count).last ?? nil else { return }
                    let isKnown = status < 300 || status == 422
                    try await connection.respond(
                        "\(status) X", isKnown ? ["Upload-Complete": "?1"] : [:], body: status == 204 ? "" : "kept")
                default:
                    // The first response is lost.
                    if heads.withLock({ $0 }) == 0 { return }
                    let problem = #"{"type":"https://iana.org/assignments/http-problem-types#completed-upload"}"#
                    try await connection.respond(
                        "\(row.statuses.patch) X", ["Content-Type": "application/problem+json"],
                        body: row.statuses.patch == 200 ? "kept" : problem)
                }
            }
        } while: { server in
            do {
                let response = try await Self.client(carrier).upload(form, to: server.url)
                #expect(row.end == .kept && response.text == "kept")
                #expect(response.bytesSent == length)
            } catch let error as UploadError {
                switch row.end {
                case .kept: Issue.record(error)
                case .refused: #expect(error.response?.status.code == row.statuses.gets.last)
                case .lost: #expect(error.delivery == .responseLost && error.message.contains("whole form"))
                }
            }
            return server.requests.whole
        }
        let append = try #require(requests.last { $0.head.line.hasPrefix("PATCH") })
        #expect(append.body.isEmpty)
        #expect(append.head["Upload-Offset"] == "\(length)" && append.head["Upload-Complete"] == "?1")
        #expect(requests.contains { $0.head.line.hasPrefix("GET") } == (row.statuses.patch != 200))
    }

    @Test(arguments: Carrier.allCases)
    func `a token that ends in the middle is renewed, and the upload goes on`(carrier: Carrier) async throws {
        let folder = try TemporaryFolder()
        let (form, _) = try Self.form(in: folder)
        let cuts = Cuts(at: [1_000_000])
        try await ReferenceServer.run { server in
            try await FaultProxy.run(before: server.url) { request in
                let isExpired = request.method == "HEAD" && request["Authorization"] == "Bearer 1"
                return isExpired ? .response(Fault.Response(401)) : cuts.fault(of: request)
            } while: { proxy in
                var client = Self.client(carrier, [.interop6])
                client.interceptors = [BearerTokenInterceptor(token: "1") { _ in "2" }]
                try await client.upload(form, to: proxy.uploads)
                #expect(proxy.seen.map(\.method) == ["OPTIONS", "POST", "PATCH", "HEAD", "HEAD", "PATCH"])
                #expect(proxy.seen.last?["Authorization"] == "Bearer 2")
            }
            #expect(server.received.count == 1)
        }
    }
}
