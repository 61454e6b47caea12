import Foundation
import Hummingbird
import Logging
import NIOCore
import NIOHTTP1
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// Reports of files in a bucket, and what happens at the same time.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct PresignedReportTests {
    /// The forms of a bucket, and a client that stores files as with one of them.
    private struct Bench: Sendable {
        let bucket: S3Bucket
        let store: S3UploadStore
        let forms: PresignedForms

        /// - Parameter before: Runs before each request of the store, which fails if this throws.
        init(
            at address: String, _ options: PresignedFormOptions = PresignedFormOptions(),
            before: @escaping @Sendable (S3Request) async throws -> Void = { _ in }
        ) async throws {
            try await self.init(sharing: try await ObjectStores.makeBucket(at: address), options, before: before)
        }

        init(
            sharing bucket: S3Bucket, _ options: PresignedFormOptions = PresignedFormOptions(),
            before: @escaping @Sendable (S3Request) async throws -> Void = { _ in }
        ) async throws {
            self.bucket = bucket
            store = try await S3UploadStore.open(bucket.hooked(before: before))
            forms = try PresignedForms(of: store, options)
        }

        /// - Returns: The key of the object.
        func form() async throws -> String { try #require(try await forms.form(filename: "photo.jpg").key) }

        /// - Returns: The ETag.
        @discardableResult func send(_ content: String, to key: String) async throws -> String {
            let direct = try S3Connection(bucket, logger: .init(label: "test"))
            let response = try await direct.response(
                to: S3Request(method: .PUT, key: key, body: ByteBuffer(string: content)))
            return response.headers.first(name: "etag") ?? ""
        }

        func content(of key: String) async throws -> String? {
            let name = String(key.dropFirst(bucket.prefix.count))
            return try await store.objects.get(name).map { String(buffer: $0.body) }
        }

        func content(of record: UploadRecord) async throws -> String? {
            guard let file = try await store.openFile(0, of: record.id) else { return nil }
            return String(buffer: try await file.read(at: 0, count: 1000))
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `a second file that is sent with a form is not the first one's record`(address: String) async throws {
        let bench = try await Bench(at: address)
        let key = try await bench.form()
        let first = try await bench.send("first", to: key)
        let record = try await bench.forms.record(ofObject: key, etag: first).record
        // Reported again, also without an ETag, once its object is gone.
        for etag in [first, first.unquoted, nil] {
            let again = try await bench.forms.record(ofObject: key, etag: etag, size: 5)
            #expect(again.record == record && again.isRepetition)
        }
        let second = try await bench.send("the second", to: key)
        for (etag, size) in [(second, 10), (second, nil), (nil, nil), (nil, 10)] as [(String?, Int64?)] {
            let problem = try await #require(throws: UploadProblem.self) {
                try await bench.forms.record(ofObject: key, etag: etag, size: size)
            }
            #expect(problem.code == "object-changed" && problem.status.code == 409)
            #expect(problem.advice?.contains("new form") == true)
        }
        #expect(try await bench.forms.record(ofObject: key, etag: first).record == record)
        #expect(try await bench.content(of: record) == "first")
        #expect(try await bench.content(of: key) == "the second")
        #expect(try await bench.store.identifiers(limit: 10, after: nil) == [record.id])
    }

    @Test(arguments: ObjectStores.addresses)
    func `a file that arrives while another one becomes a record stays, and is not taken for it`(
        address: String
    ) async throws {
        let commit = Mutex<(@Sendable () async throws -> Void)?>(nil)
        let bench = try await Bench(at: address) { request in
            guard request.method == .PUT, request.key.contains("/keys/"),
                let work = commit.withLock({ work in
                    defer { work = nil }
                    return work
                })
            else { return }
            try await work()
        }
        let key = try await bench.form()
        let first = try await bench.send("first", to: key)
        commit.withLock { $0 = { try await bench.send("other", to: key) } }
        let record = try await bench.forms.record(ofObject: key, etag: first).record
        #expect(try await bench.content(of: key) == "other")

        // Another receiver makes the record of the second file first.
        let other = try await Bench(sharing: bench.bucket)
        let contested = try await bench.form()
        let loser = try await bench.send("loser", to: contested)
        commit.withLock {
            $0 = {
                let winner = try await other.send("winner", to: contested)
                _ = try await other.forms.record(ofObject: contested, etag: winner)
            }
        }
        for etag in [loser, loser] {
            let problem = try await #require(throws: UploadProblem.self) {
                try await bench.forms.record(ofObject: contested, etag: etag)
            }
            #expect(problem.code == "object-changed")
        }
        #expect(try await bench.store.identifiers(limit: 10, after: nil).count == 2)
        #expect(try await bench.content(of: record) == "first")
        #expect(try await bench.store.objects.list(ObjectName.files).objects.count == 2)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a file that was sent with a form of others is not accepted`(address: String) async throws {
        let bench = try await Bench(at: address)
        var options = PresignedFormOptions()
        options.keyPrefix = "photos"
        options.screen = { _ in .refused(reason: "It is bad.") }
        let screened = try await Bench(sharing: bench.bucket, options)
        let key = try await screened.form()
        try await bench.send("bad", to: key)
        let start = bench.bucket.prefix + ObjectName.arriving
        let name = try #require(key.split(separator: "/").last.map(String.init))
        let short = String(name.dropLast())
        let ends: [String] = [
            "photos/\(name)", short, "\(name)0", "\(name)/", "/\(name)", "", "\(short)u", name.uppercased(),
        ]
        for other in ends.map({ start + $0 }) {
            let problem = try await #require(throws: UploadProblem.self, "\(other)") {
                try await bench.forms.record(ofObject: other)
            }
            #expect(problem.code == "key-of-no-form", "\(other)")
        }
        let problem = try await #require(throws: UploadProblem.self) {
            try await screened.forms.record(ofObject: key)
        }
        #expect(problem.code == "file-refused")
    }

    @Test(arguments: ObjectStores.addresses, [PresignedFormOptions.Method.post, .put])
    func `a form expires with the credentials that sign it`(
        address: String, method: PresignedFormOptions.Method
    ) async throws {
        var options = PresignedFormOptions()
        options.method = method
        var bucket = try await ObjectStores.makeBucket(at: address)
        guard case .fixed(var credentials) = bucket.credentials.kind else { return }
        // To the second, as forms have it.
        let now = Date(timeIntervalSince1970: Date().timeIntervalSince1970.rounded(.down))
        bucket.clock = { now }
        for (end, lifetime) in [(300, 300), (3600, 600), (nil, 600)] as [(Double?, Double)] {
            credentials.expires = end.map { now.addingTimeInterval($0) }
            bucket.credentials = .fixed(credentials)
            let form = try await PresignedForms(of: S3UploadStore.open(bucket), options).form()
            #expect(form.expires == now.addingTimeInterval(lifetime))
            switch form.kind {
            case .post(let fields):
                #expect(method == .post)
                let policy = try #require(fields["policy"].flatMap { Data(base64Encoded: $0) })
                let document = try JSONSerialization.jsonObject(with: policy) as? [String: Any]
                #expect(document?["expiration"] as? String == form.expires?.formatted(.iso8601))
            case .put:
                #expect(method == .put)
                #expect(form.url.absoluteString.contains("X-Amz-Expires=\(Int(lifetime))&"))
            }
        }
    }

    // MARK: - Many, and stopped

    /// What requests wait for.
    private final class Gate: Sendable {
        private let stream: AsyncStream<Void>
        private let continuation: AsyncStream<Void>.Continuation
        private let count = Mutex((now: 0, most: 0, ever: 0))

        init() { (stream, continuation) = AsyncStream.makeStream() }

        var most: Int { count.withLock { $0.most } }
        var ever: Int { count.withLock { $0.ever } }

        /// Waits until the gate is open, or the task is cancelled.
        func pass() async throws {
            count.withLock { $0 = ($0.now + 1, max($0.most, $0.now + 1), $0.ever + 1) }
            defer { count.withLock { $0.now -= 1 } }
            // All that wait share the stream's end.
            for await _ in stream {}
            try Task.checkCancellation()
        }

        func open() { continuation.finish() }
    }

    @Test(arguments: ObjectStores.addresses)
    func `many reports of files leave the uploads of others their memory`(address: String) async throws {
        let gate = Gate()
        let bench = try await Bench(at: address) { request in
            if request.headers.contains(where: { $0.name == "x-amz-copy-source" }) { try await gate.pass() }
        }
        var keys: [String] = []
        for number in 0..<20 {
            keys.append(try await bench.form())
            try await bench.send("file \(number)", to: keys[number])
        }
        try await withThrowingTaskGroup(of: Void.self) { group in
            for key in keys {
                group.addTask { _ = try await bench.forms.record(ofObject: key) }
            }
            try await eventually { gate.ever == S3UploadStore.maximumConcurrentCopies }
            // More than an upload gathers without a block.
            let upload = try await bench.store.beginUpload(under: nil, announcedBytes: nil)
            try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "text/plain"))
            try await upload.write(ByteBuffer(repeating: 1, count: 1 << 20))
            try await upload.endFile()
            _ = try await upload.commit(fields: [], parts: [.file(0)])
            gate.open()
            try await group.waitForAll()
        }
        #expect(gate.most == S3UploadStore.maximumConcurrentCopies)
        #expect(try await bench.store.identifiers(limit: 100, after: nil).count == 21)
        #expect(try await bench.store.objects.list(ObjectName.arriving).objects.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses)
    func `reports of one file that wait for each other copy it a few times at most`(address: String) async throws {
        let gate = Gate()
        let bench = try await Bench(at: address) { request in
            if request.headers.contains(where: { $0.name == "x-amz-copy-source" }) { try await gate.pass() }
        }
        let key = try await bench.form()
        try await bench.send("content", to: key)
        let ids = try await withThrowingTaskGroup(of: UploadID.self) { group in
            for _ in 0..<20 { group.addTask { try await bench.forms.record(ofObject: key).record.id } }
            try await eventually { gate.ever == S3UploadStore.maximumConcurrentCopies }
            gate.open()
            return try await group.reduce(into: Set()) { $0.insert($1) }
        }
        #expect(ids.count == 1)
        #expect(gate.ever == S3UploadStore.maximumConcurrentCopies)
        #expect(try await bench.store.objects.list(ObjectName.files).objects.count == 1)
    }

    @Test(arguments: ObjectStores.addresses, ["copied", "read", "screened"])
    func `a report that is cancelled leaves no copy`(address: String, moment: String) async throws {
        let gate = Gate()
        var options = PresignedFormOptions()
        options.screen = { _ in
            if moment == "screened" { try await gate.pass() }
            return .accepted
        }
        let bench = try await Bench(at: address, options) { request in
            guard request.key.contains("/files/") else { return }
            if moment == "copied" ? request.method == .HEAD : moment == "read" && request.method == .GET {
                try await gate.pass()
            }
        }
        let key = try await bench.form()
        try await bench.send("content", to: key)
        let report = Task { try await bench.forms.record(ofObject: key) }
        try await eventually { gate.ever == 1 }
        #expect(try await bench.store.objects.list(ObjectName.files).objects.count == 1)
        report.cancel()
        await #expect(throws: (any Error).self) { try await report.value }
        #expect(try await bench.store.objects.list(ObjectName.files).objects.isEmpty)
        // It can be reported again.
        gate.open()
        _ = try await bench.forms.record(ofObject: key)
    }

    // MARK: - Screening

    /// Posts an event of the store about some objects.
    private static func post(
        _ keys: [String], of bench: Bench, _ options: PresignedFormOptions
    ) async throws -> (status: Int, text: String) {
        let router = Router()
        try router.addPresignedForms(of: bench.store, options: options)
        let records = keys.map { key in
            #"{"eventName":"ObjectCreated:Put","s3":{"bucket":{"name":"\#(bench.bucket.name)"},"object":{"key":"\#(key)"}}}"#
        }
        let answer = Mutex((status: 0, text: ""))
        try await withRoutes(router) { address in
            let ending = try await Program.run(
                "curl",
                [
                    "-sS", "--max-time", "60", "-w", "\n%{http_code}", "--data-binary",
                    #"{"Records":[\#(records.joined(separator: ","))]}"#, "\(address)/uploads/forms/finished",
                ])
            let lines = ending.text.split(separator: "\n")
            let text = lines.dropLast().joined(separator: "\n")
            answer.withLock { $0 = (lines.last.flatMap { Int($0) } ?? 0, text) }
        }
        return answer.withLock { $0 }
    }

    @Test(arguments: ObjectStores.addresses, [false, true])
    func `a file that cannot be screened does not hold up the others of its event`(
        address: String, isSlow: Bool
    ) async throws {
        let isBroken = Mutex(true)
        var options = PresignedFormOptions()
        options.screeningTimeout = isSlow ? .seconds(3) : .seconds(60)
        options.screen = { file in
            guard file.content.size == 3, isBroken.withLock({ $0 }) else { return .accepted }
            if isSlow { try await Task.sleep(for: .seconds(3600)) }
            throw CocoaError(.fileNoSuchFile)
        }
        let bench = try await Bench(at: address, options)
        var keys: [String] = []
        for content in ["bad", "good", "fine"] {
            keys.append(try await bench.form())
            try await bench.send(content, to: keys[keys.count - 1])
        }
        let refused = try await Self.post(keys, of: bench, options)
        #expect(refused.status == 503 && refused.text.contains("screening-failed"), "\(refused)")
        #expect(try await bench.store.identifiers(limit: 10, after: nil).count == 2)
        #expect(try await bench.content(of: keys[0]) == "bad")
        // The store delivers the event again.
        isBroken.withLock { $0 = false }
        #expect(try await Self.post(keys, of: bench, options).status == 200)
        #expect(try await bench.store.identifiers(limit: 10, after: nil).count == 3)
    }
}
