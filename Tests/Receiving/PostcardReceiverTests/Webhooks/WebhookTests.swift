import Crypto
import Foundation
import Logging
import NIOCore
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardReceiver

@Suite struct WebhookSecretTests {
    @Test func `a message is signed as Standard Webhooks' own example`() throws {
        let secret = try #require(WebhookSecret("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"))
        let signature = secret.signature(
            id: "msg_p5jXN8AQM9LWM0D4loKWxJek", timestamp: 1_614_265_330, body: Array(#"{"test": 2432232314}"#.utf8))
        #expect(signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=")
    }

    private static func secret(bytes: Int) -> String {
        "whsec_" + Data(repeating: 7, count: bytes).base64EncodedString()
    }

    private static let texts: [(text: String, isSecret: Bool)] = [
        (secret(bytes: 24), true), (secret(bytes: 64), true), (secret(bytes: 23), false), (secret(bytes: 65), false),
        ("", false), ("whsec_", false), (String(secret(bytes: 24).dropFirst(6)), false),
        ("WHSEC_" + secret(bytes: 24).dropFirst(6), false), (secret(bytes: 24) + " ", false),
        ("whsec_" + String(repeating: "!", count: 32), false),
    ]

    @Test(arguments: texts) func `a secret has its prefix and 24 to 64 bytes`(text: String, isSecret: Bool) {
        #expect((WebhookSecret(text) != nil) == isSecret)
    }
}

/// An endpoint in this process.
private final class Endpoint: Sendable {
    private struct State {
        var messages: [Webhook.Message] = []
        var statuses: [Int] = []
        /// What each record is refused with.
        var refusals: [String: Int] = [:]
    }

    private let state = Mutex(State())

    static let secrets = [1, 2].map { WebhookSecret("whsec_" + Data(repeating: $0, count: 24).base64EncodedString()) }

    var messages: [Webhook.Message] { state.withLock { $0.messages } }

    /// The identifiers of the records of all messages.
    var announced: [String] { messages.compactMap { try? Announcement($0).data.id } }

    /// - Parameter statuses: What the endpoint responds with to the first records, until ``recover()``. It responds with
    ///   204 to others.
    func webhook(_ statuses: [Int] = []) -> Webhook {
        state.withLock { $0.statuses = statuses }
        return Webhook(url: "https://app.example/hidden/hook?token=hidden", secrets: Self.secrets.compactMap(\.self)) {
            [self] message in
            let id = try Announcement(message).data.id
            return state.withLock { state in
                state.messages.append(message)
                if let status = state.refusals[id] { return status }
                guard !state.statuses.isEmpty else { return 204 }
                let status = state.statuses.removeFirst()
                state.refusals[id] = status
                return status
            }
        }
    }

    /// Accepts everything from now on.
    func recover() { state.withLock { ($0.statuses, $0.refusals) = ([], [:]) } }
}

private struct Announcement: Decodable {
    struct Record: Decodable {
        let id: String
        let url: String?
        let fields: [UploadRecord.Field]?
        let files: [UploadRecord.File]?
    }

    let type: String
    let timestamp: Date
    let data: Record

    init(_ message: Webhook.Message) throws {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        self = try decoder.decode(Self.self, from: Data(message.body))
    }
}

/// The response to `GET /webhooks`, as other programs read it.
private struct WebhookStatus: Decodable {
    struct Stuck: Decodable {
        let upload: String
        let attempts: Int
        let failure: String
        let next: String?
    }

    let url: String
    let isDown: Bool
    let pending, delivered, failedAttempts, stuckCount: Int
    let stuck: [Stuck]
}

extension RunningReceiver {
    fileprivate func webhooks() async throws -> WebhookStatus {
        try await JSONDecoder().decode(WebhookStatus.self, from: curl("\(url)/webhooks").output)
    }
}

@Suite(.timeLimit(.minutes(10)))
struct WebhookTests {
    @Test func `each record is announced, signed with all secrets`() async throws {
        let endpoint = Endpoint()
        try await withReceiver {
            $0.webhook = endpoint.webhook()
        } _: { receiver in
            var ids: Set<String> = []
            for _ in 0..<3 {
                let response = try await receiver.exchange(Form.request(body: Form.small))
                ids.insert(try #require(response.headers["location"]?.split(separator: "/").last.map(String.init)))
            }
            try await eventually { endpoint.announced.count >= 3 }
            #expect(Set(endpoint.announced) == ids)
            let message = try #require(endpoint.messages.first)
            let headers = Dictionary(uniqueKeysWithValues: message.headers)
            let announcement = try Announcement(message)
            #expect(announcement.type == "upload.received")
            #expect(abs(announcement.timestamp.timeIntervalSinceNow) < 600)
            #expect(announcement.data.fields == [UploadRecord.Field(name: "a", value: "value")])
            #expect(headers["webhook-id"] == "msg_\(announcement.data.id)")
            #expect(headers["content-type"] == "application/json")
            let timestamp = try #require(headers["webhook-timestamp"].flatMap { Int64($0) })
            let signatures = Endpoint.secrets.compactMap {
                $0?.signature(id: "msg_\(announcement.data.id)", timestamp: timestamp, body: message.body)
            }
            #expect(headers["webhook-signature"] == signatures.joined(separator: " "))
            try await eventually { try await receiver.webhooks().delivered == 3 }
            let status = try await receiver.webhooks()
            #expect(status.url == "https://app.example")
            #expect(status.pending == 0)
            #expect(try await receiver.metrics()["postcard_webhooks_delivered_total"] == 3)
        }
    }

    @Test func `what would change how a message is shown is escaped in it, and means the same`() throws {
        let name = "a\u{202E}gpj.exe\u{1B}\u{9B}\u{2066}한👩‍🚀"
        let record = UploadRecord(
            id: UploadID(earliestAt: 0), received: Date(), fields: [],
            files: [.init(name: "f", filename: name, contentType: "a/b", size: 0, sha256: "", url: "")])
        let message = Endpoint().webhook().message(about: record.id, Array(record.json()), at: Date())
        let text = String(decoding: message.body, as: UTF8.self)
        #expect(text.contains(#"a\u202egpj.exe"#) && text.contains("한👩‍🚀"))
        #expect(!text.unicodeScalars.contains { "\u{202E}\u{1B}\u{9B}\u{2066}".unicodeScalars.contains($0) })
        #expect(try Announcement(message).data.files?.map(\.filename) == [name])
    }

    @Test func `a record is announced after a start if the receiver ended before, and then no more`() async throws {
        try await withTemporaryDirectory { folder in
            let directory = folder.appending("received")
            let id = try await storeOne(in: directory)
            let endpoint = Endpoint()
            for _ in 0..<2 {
                try await withReceiver(in: directory) {
                    $0.webhook = endpoint.webhook()
                } _: { receiver in
                    try await eventually { endpoint.announced == [id.text] }
                    try await eventually { try await receiver.webhooks().pending == 0 }
                }
            }
            #expect(endpoint.announced == [id.text])
        }
    }

    @Test(arguments: [
        ("https://hooks.example/services/T0/B0/secret", "https://hooks.example"),
        ("http://[::1]:8080/a?b#c", "http://[::1]:8080"), ("https://a.example?secret", "https://a.example"),
        ("https://user:secret@a.example:1/", "https://a.example:1"), ("https://a.example", "https://a.example"),
        ("secret", ""),
    ])
    func `only scheme, host and port of the address are shown`(url: String, shown: String) {
        #expect(Webhook(url: url, secrets: [], post: { _ in 204 }).shownURL == shown)
    }

    /// Stores a record as a receiver with a webhook does that is killed right after the commit.
    private func storeOne(in directory: FilePath, fields: [UploadRecord.Field] = []) async throws -> UploadID {
        let store = try LocalUploadStore(directory: directory)
        store.keepOutbox()
        let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
        return try await upload.commit(fields: fields, parts: fields.indices.map { .field($0) }).record.id
    }

    @Test func `a record that was just announced is not announced again, however often the outbox is read`()
        async throws
    {
        try await withTemporaryDirectory { folder in
            let store = try LocalUploadStore(directory: folder.appending("received"))
            let endpoint = Endpoint()
            let deliverer = WebhookDeliverer(
                endpoint.webhook(), from: store, meter: UploadMeter(),
                logger: Logger(label: "test") { _ in SwiftLogNoOpLogHandler() }, readingInterval: .microseconds(100))
            let running = Task { try await deliverer.run() }
            var records: [UploadRecord] = []
            for _ in 0..<300 {
                let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
                records.append(try await upload.commit(fields: [], parts: []).record)
                // The request is reported later than the reading has found its record.
                if records.count % 3 == 0 { for record in records.suffix(3) { deliverer.note(.recorded(record)) } }
            }
            try await eventually { try await store.outbox().isEmpty }
            running.cancel()
            _ = await running.result
            #expect(endpoint.announced.count == 300)
            #expect(Set(endpoint.announced) == Set(records.map(\.id.text)))
        }
    }

    @Test func `records that were made without a webhook are not announced`() async throws {
        try await withTemporaryDirectory { folder in
            let directory = folder.appending("received")
            try await withReceiver(in: directory) { receiver in
                _ = try await receiver.exchange(Form.request(body: Form.small))
            }
            let endpoint = Endpoint()
            try await withReceiver(in: directory) {
                $0.webhook = endpoint.webhook()
            } _: { receiver in
                let response = try await receiver.exchange(Form.request(body: Form.small))
                try await eventually { try await receiver.webhooks().delivered == 1 }
                #expect(response.headers["location"] == "/uploads/\(endpoint.announced[0])")
            }
        }
    }

    @Test func `of a large record its address is announced`() async throws {
        try await withTemporaryDirectory { folder in
            let directory = folder.appending("received")
            let text = String(repeating: "x", count: 300_000)
            let id = try await storeOne(in: directory, fields: [UploadRecord.Field(name: "a", value: text)])
            let endpoint = Endpoint()
            try await withReceiver(in: directory) {
                $0.webhook = endpoint.webhook()
            } _: { _ in
                try await eventually { !endpoint.messages.isEmpty }
                let announcement = try Announcement(endpoint.messages[0])
                #expect(announcement.data.id == id.text)
                #expect(announcement.data.url == "/uploads/\(id)")
                #expect(announcement.data.fields == nil)
            }
        }
    }

    @Test func `what the endpoint refuses is listed, and sent again`() async throws {
        let endpoint = Endpoint()
        try await withReceiver {
            $0.webhook = endpoint.webhook([404, 302, 500])
        } _: { receiver in
            for _ in 0..<3 { _ = try await receiver.exchange(Form.request(body: Form.small)) }
            var status = try await receiver.webhooks()
            // While a record is tried again, it is not among those that are stuck.
            try await eventually {
                status = try await receiver.webhooks()
                return status.isDown && status.stuck.count == 3
            }
            #expect(status.stuckCount == 3)
            #expect(
                Set(status.stuck.map(\.failure)) == [
                    "The endpoint responded with 404.", "The endpoint responded with 500.",
                    "The endpoint responded with 302, and redirects are not followed.",
                ])
            #expect(status.stuck.map(\.upload).sorted() == (try receiver.records.sorted()))
            #expect(try await receiver.metrics()["postcard_webhook_endpoint_down"] == 1)
            try await eventually { try await receiver.metrics()["postcard_webhooks_stuck"] == 3 }
            endpoint.recover()
            // The first one is asked for after five seconds, and brings the others with it.
            try await eventually { try await receiver.webhooks().pending == 0 }
            #expect(Set(endpoint.announced).count == 3)
            #expect(try await receiver.webhooks().delivered == 3)
        }
    }

    @Test func `a record that is deleted before it was announced is forgotten`() async throws {
        try await withTemporaryDirectory { folder in
            let directory = folder.appending("received")
            let id = try await storeOne(in: directory)
            let store = try LocalUploadStore(directory: directory)
            #expect(try await store.outbox() == [id])
            _ = try await store.delete(id)
            #expect(try await store.outbox().isEmpty)
        }
    }

    @Test func `a record that makes room for others before it was announced is in the log`() async throws {
        let log = CapturedLog.Lines()
        let endpoint = Endpoint()
        let refused = Mutex<String?>(nil)
        try await withReceiver {
            let webhook = endpoint.webhook()
            // The endpoint refuses the first record, and then others push the record out.
            $0.webhook = Webhook(url: webhook.url, secrets: webhook.secrets) { message in
                let id = try Announcement(message).data.id
                let isRefused = refused.withLock { refused in
                    refused = refused ?? id
                    return refused == id
                }
                return isRefused ? 503 : try await webhook.post(message)
            }
            $0.retention = RetentionPolicy()
            $0.retention?.maximumBytes = 1
            $0.logger = Logger(label: "test") { _ in CapturedLog(lines: log, logLevel: .warning) }
        } _: { receiver in
            let first = try await receiver.exchange(Form.request(body: Form.small))
            let id = try #require(first.headers["location"]?.split(separator: "/").last.map(String.init))
            try await eventually { try await receiver.webhooks().failedAttempts >= 1 }
            _ = try await receiver.exchange(Form.request(body: Form.small))
            try await eventually { try await receiver.webhooks().pending == 0 }
            #expect(Set(endpoint.announced).count == 1)
            #expect(log.all.count { $0["upload"] == .string(id) } == 1)
        }
    }

    @Test func `an endpoint that never responds holds nothing up, not even the end`() async throws {
        try await withReceiver {
            $0.webhook = Webhook(url: "https://app.example", secrets: []) { _ in
                try await Task.sleep(for: .seconds(86400))
                return 204
            }
        } _: { receiver in
            for _ in 0..<20 {
                let response = try await receiver.exchange(Form.request(body: Form.small))
                #expect(response.status == 201)
            }
            try await eventually { try await receiver.webhooks().pending == 20 }
        }
    }

    @Test func `a record is in the outbox until it is settled, also for the next start`() async throws {
        try await withTemporaryDirectory { folder in
            let directory = folder.appending("received")
            let ids = [try await storeOne(in: directory), try await storeOne(in: directory)]
            do {
                let store = try LocalUploadStore(directory: directory)
                #expect(try await store.outbox() == ids)
                try await store.settle(ids[0])
                try await store.settle(ids[0])
                #expect(try await store.outbox() == [ids[1]])
            }
            let store = try LocalUploadStore(directory: directory)
            #expect(try await store.outbox() == [ids[1]])
            #expect(try await store.record(ids[0]) != nil)
        }
    }
}
