import Foundation
import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardSendingSupport
import PostcardTestSupport
import Synchronization
import Testing

/// Forms whose parts are prepared before they are sent.
@Suite(.timeLimit(.minutes(10))) struct PreparedUploadTests {
    /// Replaces files with new ones of up to 400 bytes, as large as the limits allow.
    private final class Shrinking: FormPreparation {
        let followsServerLimit: Bool
        private let gate: Gate?
        private let seen = Mutex<[URL]>([])

        /// - Parameter gate: What a preparation waits for, once its files are written.
        init(followsServerLimit: Bool = true, waitingFor gate: Gate? = nil) {
            self.followsServerLimit = followsServerLimit
            self.gate = gate
        }

        let hasBegun = Gate()

        /// The folders that it has written files to, in order.
        var folders: [URL] { seen.withLock { $0 } }

        var filesLeft: [URL] { folders.filter { FileManager.default.fileExists(atPath: $0.path) } }

        func prepare(_ parts: [FormPart], in context: FormPreparationContext) async throws -> [FormPart] {
            seen.withLock { $0.append(context.folder) }
            let prepared = try parts.enumerated().map { index, part in
                let most = [
                    400, context.maximumBytes.map { $0 / Int64(parts.count) },
                    context.limits.maximumBytes(ofFileNamed: part.name),
                ]
                var part = part
                let file = context.folder.appending(component: "\(index).jpg")
                try Data(count: Int(most.compactMap(\.self).min() ?? 0)).write(to: file)
                part.content = .file(file)
                return part
            }
            hasBegun.open()
            await gate?.wait()
            try Task.checkCancellation()
            return prepared
        }

        static func == (one: Shrinking, other: Shrinking) -> Bool { one === other }

        func hash(into hasher: inout Hasher) { hasher.combine(ObjectIdentifier(self)) }
    }

    /// A form with two files that are prepared.
    private static func form(_ preparation: Shrinking) -> MultipartForm {
        var form = MultipartForm()
        form.append("초코", named: "name")
        for name in ["a.jpg", "b.jpg"] {
            form.append(
                FormPart(name: "image", filename: name, content: .bytes(Data(count: 900)), preparation: preparation))
        }
        return form
    }

    /// A refusal.
    struct Refusal: Sendable, CustomTestStringConvertible {
        var status = "413 Content Too Large"
        var fields = ["Content-Type": "application/problem+json"]
        var body = ""

        var testDescription: String { "\(status) \(fields["Upload-Limit"] ?? "") \(body)" }

        init(limit name: String, _ value: String) {
            body = #"{"type":"about:blank","status":413,"limit":{"name":"\#(name)","value":\#(value)}}"#
        }

        init(_ status: String, _ fields: [String: String], body: String = "") {
            (self.status, self.fields, self.body) = (status, fields, body)
        }
    }

    /// Runs a server that refuses the first forms, as many as there are refusals.
    @discardableResult
    private static func run<Result: Sendable>(
        refusing refusals: [Refusal], while work: @escaping @Sendable (RawServer) async throws -> Result
    ) async throws -> Result {
        let count = Mutex(0)
        return try await RawServer.run { connection in
            while try await connection.readRequest() != nil {
                let number = count.withLock { count in
                    defer { count += 1 }
                    return count
                }
                if number < refusals.count {
                    let refusal = refusals[number]
                    try await connection.respond(refusal.status, refusal.fields, body: refusal.body)
                } else {
                    try await connection.respond("201 Created")
                }
            }
        } while: {
            try await work($0)
        }
    }

    static let believed = [
        Refusal(limit: "maximumBodyBytes", "900"), Refusal(limit: "maximumFileBytes", "100"),
        Refusal(limit: "files.image.maximumBytes", "100.0"), Refusal(limit: "maximumBytesOfAllFiles", "250"),
        Refusal("400 Bad Request", ["Upload-Limit": "max-size=900, max-age=60"]),
        Refusal(
            "413 Content Too Large", ["Upload-Limit": "max-size=900", "Content-Type": "application/problem+json"],
            body: #"{"limit":{"name":"maximumBodyBytes","value":1000000}}"#),
    ]

    @Test(arguments: Carrier.allCases, believed)
    func `a form that is too large is prepared for the server's limit and sent once more under the same key`(
        carrier: Carrier, refusal: Refusal
    ) async throws {
        let preparation = Shrinking()
        let form = Self.form(preparation)
        try await Self.run(refusing: [refusal]) { server in
            var response: UploadResponse?
            var preparing = 0
            var attempts: [Int] = []
            for try await event in UploadClient(transport: carrier.transport()).events(of: form, to: server.url) {
                switch event {
                case .preparing: preparing += 1
                case .sending(let progress): attempts.append(progress.attempt)
                case .done(let done): response = done
                default: break
                }
            }
            #expect(response?.attempts == 2 && preparing == 2)
            #expect(attempts == attempts.sorted() && Set(attempts) == [1, 2])
            let requests = server.requests.whole
            #expect(requests.count == 2)
            let sizes = requests.map(\.body.count)
            #expect(sizes.first ?? 0 > 900 && sizes.last ?? 0 <= 900)
            let keys = requests.map { $0.head["Idempotency-Key"] }
            #expect(keys.first != .some(nil) && Set(keys).count == 1)
            #expect(Set(preparation.folders).count == 2 && preparation.filesLeft.isEmpty)
        }
    }

    static let notBelieved = [
        Refusal(limit: "maximumBodyBytes", "10000000"), Refusal(limit: "maximumBodyBytes", "-1"),
        Refusal(limit: "maximumBodyBytes", "1e300"), Refusal(limit: "maximumBodyBytes", "\"900\""),
        Refusal(limit: "maximumParts", "2"), Refusal(limit: "files.other.maximumBytes", "2"),
        Refusal("413 Content Too Large", ["Content-Type": "text/html"], body: "<title>too large</title>"),
        Refusal("413 Content Too Large", ["Upload-Limit": "max-size=10000000"]),
        Refusal(
            "400 Bad Request", ["Content-Type": "application/problem+json"],
            body: #"{"limit":{"name":"maximumBodyBytes","value":900}}"#),
    ]

    @Test(arguments: Carrier.allCases, notBelieved)
    func `a refusal without a limit that the form exceeds is final`(carrier: Carrier, refusal: Refusal) async throws {
        let preparation = Shrinking()
        let form = Self.form(preparation)
        try await Self.run(refusing: [refusal]) { server in
            let error = await #expect(throws: UploadError.self) {
                try await UploadClient(transport: carrier.transport()).upload(form, to: server.url)
            }
            #expect(error?.code == .refused && error?.attempts == 1)
            #expect(server.requests.heads.count == 1 && preparation.filesLeft.isEmpty)
        }
    }

    @Test func `what does not follow the server's limit is sent once, without a key`() async throws {
        let preparation = Shrinking(followsServerLimit: false)
        let form = Self.form(preparation)
        try await Self.run(refusing: [Refusal(limit: "maximumBodyBytes", "900")]) { server in
            await #expect(throws: UploadError.self) {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(form, to: server.url)
            }
            #expect(server.requests.heads.map { $0["Idempotency-Key"] } == [nil])
        }
    }

    @Test func `a second refusal is final, whatever limit it reports`() async throws {
        let preparation = Shrinking()
        let form = Self.form(preparation)
        let refusals = [Refusal(limit: "maximumBodyBytes", "900"), Refusal(limit: "maximumBodyBytes", "700")]
        try await Self.run(refusing: refusals) { server in
            let error = await #expect(throws: UploadError.self) {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(form, to: server.url)
            }
            #expect(error?.response?.status.code == 413 && error?.attempts == 2)
            #expect(server.requests.heads.count == 2 && preparation.filesLeft.isEmpty)
        }
    }

    @Test func `a form that cannot be prepared for the server's limit fails with the refusal`() async throws {
        struct TooSmall: Error {}
        struct Limited: FormPreparation {
            let followsServerLimit = true
            func prepare(_ parts: [FormPart], in context: FormPreparationContext) throws -> [FormPart] {
                if context.limits.maximumBodyBytes != nil { throw TooSmall() }
                return parts
            }
        }
        var form = MultipartForm()
        form.append(
            FormPart(name: "image", filename: "a.jpg", content: .bytes(Data(count: 900)), preparation: Limited()))
        let sent = form
        try await Self.run(refusing: [Refusal(limit: "maximumBodyBytes", "900")]) { server in
            let error = await #expect(throws: UploadError.self) {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(sent, to: server.url)
            }
            #expect(error?.code == .refused && error?.response?.status.code == 413 && error?.attempts == 1)
            #expect(error?.underlyingError is TooSmall && error?.message.contains("TooSmall") == true)
            #expect(server.requests.heads.count == 1)
        }
    }

    @Test func `a form with a stream that can be read once is not sent again`() async throws {
        let (chunks, chunk) = AsyncStream.makeStream(of: Data.self)
        chunk.yield(Data("log".utf8))
        chunk.finish()
        var form = Self.form(Shrinking())
        form.append(FormStream(chunks, length: 3), named: "log", filename: "log.txt")
        let sent = form
        try await Self.run(refusing: [Refusal(limit: "maximumBodyBytes", "900")]) { server in
            let error = await #expect(throws: UploadError.self) {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(sent, to: server.url)
            }
            #expect(error?.code == .refused && server.requests.heads.count == 1)
        }
    }

    @Test func `the client's rules are limits that are known beforehand`() async throws {
        let preparation = Shrinking()
        let form = Self.form(preparation)
        let rules = try FormRules(
            files: ["image": FormRules.File(atMost: 2, maximumBytes: 50)], otherParts: .allowed)
        try await Self.run(refusing: []) { server in
            var client = UploadClient(transport: Carrier.asyncHTTP.transport())
            client.rules = rules
            let response = try await client.upload(form, to: server.url)
            #expect(response.attempts == 1 && server.requests.whole.allSatisfy { $0.body.count < 700 })
            #expect(preparation.filesLeft.isEmpty)
        }
    }

    @Test func `a cancelled upload removes the prepared files`() async throws {
        let preparation = Shrinking()
        let form = Self.form(preparation)
        try await RawServer.runLeavingFirstWithoutResponse { server, firstArrived in
            let upload = Task {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(form, to: server.url)
            }
            await firstArrived.wait()
            #expect(preparation.filesLeft.count == 1)
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            #expect(preparation.filesLeft.isEmpty)
        }
    }

    @Test func `an upload can be cancelled while it is prepared`() async throws {
        let preparation = Shrinking(waitingFor: Gate())
        let form = Self.form(preparation)
        try await Self.run(refusing: []) { server in
            let upload = Task {
                try await UploadClient(transport: Carrier.asyncHTTP.transport()).upload(form, to: server.url)
            }
            await preparation.hasBegun.wait()
            upload.cancel()
            await #expect(throws: CancellationError.self) { try await upload.value }
            #expect(preparation.folders.count == 1 && preparation.filesLeft.isEmpty)
            #expect(server.requests.heads.isEmpty)
        }
    }

    @Test func `preparing counts toward the time for the whole upload`() async throws {
        let preparation = Shrinking(waitingFor: Gate())
        let form = Self.form(preparation)
        try await Self.run(refusing: []) { server in
            var client = UploadClient(transport: Carrier.asyncHTTP.transport())
            client.timeouts.total = .milliseconds(50)
            let uploading = client
            let error = await #expect(throws: UploadError.self) { try await uploading.upload(form, to: server.url) }
            #expect(error?.code == .deadlinePassed && preparation.filesLeft.isEmpty)
        }
    }

    @Test(arguments: ["adapting", "deciding"])
    func `an interceptor that takes too long after a refusal does not hide the attempts before`(
        moment: String
    ) async throws {
        struct Slow: UploadInterceptor {
            let moment: String
            func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
                if moment == "adapting", attempt == 2 { try await Task.sleep(for: .seconds(600)) }
            }
            func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
                if moment == "deciding", error.response?.status == .unauthorized {
                    try await Task.sleep(for: .seconds(600))
                }
                return .passOn
            }
        }
        let form = Self.form(Shrinking())
        let refusals = [Refusal(limit: "maximumBodyBytes", "900"), Refusal("401 Unauthorized", [:])]
        let attempts = moment == "adapting" ? 1 : 2
        func isExpected(_ error: UploadError?) -> Bool {
            error?.attempts == attempts && error?.underlyingError is UploadError
        }
        var total = Duration.seconds(1)
        var error: UploadError?
        // A busy machine may need longer than that for the attempts.
        repeat {
            error = try await Self.run(refusing: refusals) { [total] server -> UploadError? in
                var client = UploadClient(transport: Carrier.asyncHTTP.transport())
                client.interceptors = [Slow(moment: moment)]
                client.timeouts.total = total
                let uploading = client
                return await #expect(throws: UploadError.self) { try await uploading.upload(form, to: server.url) }
            }
            total *= 2
        } while !isExpected(error) && total < .seconds(100)
        #expect(error?.code == .deadlinePassed && isExpected(error))
    }
}
