import Foundation
import NIOCore
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// How many requests the store makes, and how much it reads.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct StoreRequestTests {
    private static func commit(_ text: String, in store: S3UploadStore) async throws -> UploadRecord {
        let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
        let field = UploadRecord.Field(name: "a", value: text)
        return try await upload.commit(fields: [field], parts: [.field(0)]).record
    }

    /// Opens a store behind a proxy that sees its requests.
    private static func watching(
        _ bucket: S3Bucket, _ plan: @escaping @Sendable (ProxyRequest) -> Fault = { _ in .none },
        _ body: @escaping @Sendable (S3UploadStore, FaultProxy) async throws -> Void
    ) async throws {
        let server = try #require(bucket.endpoint.flatMap { URL(string: $0) })
        try await FaultProxy.run(before: server, plan) { proxy in
            var bucket = bucket
            bucket.endpoint = "http://127.0.0.1:\(proxy.port)"
            try await body(S3UploadStore.open(bucket), proxy)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `a listing skips many deleted records at once`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        try await Self.watching(bucket) { store, proxy in
            var ids: [UploadID] = []
            for _ in 0..<20 { ids.append(try await Self.commit("text", in: store).id) }
            for id in ids.dropFirst(2) { _ = try await store.delete(id) }
            let before = proxy.seen.count
            #expect(try await store.identifiers(limit: 1, after: nil) == [ids[1]])
            #expect(proxy.seen.count - before == 2)
            #expect(try await store.identifiers(limit: 2, after: nil) == [ids[1], ids[0]])
            let followed = proxy.seen.count
            #expect(try await store.newestRecords() == NewestRecords(identifiers: [ids[1], ids[0]], oldest: nil))
            #expect(proxy.seen.count - followed == 1)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `the sizes of all uploads are in two listings`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        try await Self.watching(bucket) { store, proxy in
            var expected: [UploadID: Int64] = [:]
            for sizes in [[], [5, 0, 100_000], [9 << 20], [7]] {
                let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
                for size in sizes {
                    try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "a/b"))
                    try await upload.write(ByteBuffer(repeating: 1, count: size))
                    try await upload.endFile()
                }
                let record = try await upload.commit(fields: [], parts: sizes.indices.map(UploadRecord.Part.file))
                    .record
                expected[record.id] = Int64(record.json().count + sizes.reduce(0, +))
            }
            // One is deleted, and another one is not a record yet.
            let deleted = try #require(expected.keys.min())
            expected[deleted] = nil
            #expect(try await store.delete(deleted))
            let open = try await store.beginUpload(under: nil, announcedBytes: nil)
            try await open.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "a/b"))
            try await open.write(ByteBuffer(repeating: 1, count: 1000))
            try await open.endFile()
            let before = proxy.seen.count
            #expect(try await store.sizes() == expected)
            #expect(proxy.seen.count - before == 2)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `a record is read whole however long its text is as JSON`(address: String) async throws {
        let store = try await S3UploadStore.open(ObjectStores.makeBucket(at: address))
        // Six bytes for each character.
        let record = try await Self.commit(String(repeating: "\u{1}", count: 3 << 20), in: store)
        #expect(try await store.record(record.id) == record)
        let json = ByteBuffer(bytes: record.json())
        let file = try #require(try await store.openRecord(record.id))
        #expect(file.size == Int64(json.readableBytes))
        #expect(try await file.read(at: 0, count: json.readableBytes) == json)
        // A short one is still there once it was deleted.
        let short = try await Self.commit("text", in: store)
        let open = try #require(try await store.openRecord(short.id))
        #expect(try await store.delete(short.id))
        #expect(try await open.read(at: 0, count: 1000) == ByteBuffer(bytes: short.json()))
        #expect(try await store.openRecord(short.id) == nil)
    }

    @Test(arguments: ObjectStores.addresses)
    func `many who ask whether the store works share one request`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        try await Self.watching(bucket) { store, proxy in
            let start = ContinuousClock.now
            try await withThrowingTaskGroup { group in
                for _ in 0..<100 { group.addTask { try await store.checkReadiness() } }
                try await group.waitForAll()
            }
            let seconds = Int((start.duration(to: .now) / .seconds(1)).rounded(.up))
            #expect(proxy.seen.count { $0.path.hasSuffix("/ready") } <= seconds)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `a chunk that another request stores while the offset is read is no failure`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let late = Mutex<S3UnfinishedUpload?>(nil)
        try await Self.watching(bucket) { request in
            // Between the listing and this request.
            if request.method == "HEAD", request.path.hasSuffix("/end") {
                late.withLock { $0 }?.advance(to: 20)
            }
            return .none
        } _: { store, _ in
            let id = try #require(ResumptionID(String(repeating: "a", count: 32)))
            let form = UnfinishedForm(contentType: "text/plain", key: UploadKey("key", scope: ""), length: nil)
            let upload = try await store.createUnfinishedUpload(
                id, of: form, expires: Date(timeIntervalSinceNow: 3600))
            await upload.lock.withLock {}
            var appender = try await upload.makeAppender(isRevertible: false)
            try await appender.append(ByteBuffer(repeating: 7, count: 10))
            try await appender.finish()
            late.withLock { $0 = upload }
            // The state is later than the listing.
            #expect(try await upload.durableProgress() == .unfinished(offset: 20))
            late.withLock { $0 = nil }
        }
    }
}
