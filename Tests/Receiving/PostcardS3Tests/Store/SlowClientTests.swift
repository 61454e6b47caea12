import Foundation
import NIOCore
import NIOHTTP1
import PostcardServer
import PostcardTestSupport
import Testing

@testable import PostcardS3

/// Clients that hold the memory of all uploads, and stop sending.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct SlowClientTests {
    /// A store with memory for one upload at a time.
    private static func store(at address: String) async throws -> S3UploadStore {
        try await S3UploadStore.open(ObjectStores.makeBucket(at: address), memoryBytes: 8 << 20)
    }

    /// Bytes that are other ones wherever they are moved to.
    private static let content: ByteBuffer = {
        // A prime number, so that no part of an upload begins as another one does.
        let pattern = (0..<65_521).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 7)) }
        var content = ByteBuffer()
        while content.readableBytes < 20_000_000 { content.writeBytes(pattern) }
        return content
    }()

    private static func bytes(_ range: Range<Int>) -> ByteBuffer {
        content.getSlice(at: range.lowerBound, length: range.count) ?? ByteBuffer()
    }

    private static func begin(in store: S3UploadStore) async throws -> S3Upload {
        let upload = try await store.beginUpload(under: nil, announcedBytes: nil)
        try await upload.beginFile(UploadRecord.FileHeader(name: "file", filename: "f", contentType: "text/plain"))
        return upload
    }

    private static func end(_ upload: S3Upload) async throws -> UploadRecord {
        try await upload.endFile()
        return try await upload.commit(fields: [], parts: [.file(0)]).record
    }

    private static func expectContent(_ record: UploadRecord, _ count: Int, in store: S3UploadStore) async throws {
        let file = try #require(try await store.openFile(0, of: record.id))
        #expect(file.size == Int64(count))
        #expect(try await file.read(at: 0, count: count) == bytes(0..<count))
    }

    /// Where the pieces end in which a file arrives: a slow client that sends little, and ones whose bytes become several
    /// parts before, while and after they are set aside.
    @Test(
        arguments: ObjectStores.addresses,
        [
            [100_000, 150_000], [100_000, 9_000_000, 9_100_000], [9_000_000, 12_000_000, 20_000_000],
            [100_000, 17_000_000],
        ])
    func `other uploads are stored meanwhile, and the slow one is whole`(address: String, ends: [Int]) async throws {
        let store = try await Self.store(at: address)
        let slow = try await Self.begin(in: store)
        var start = 0
        for end in ends {
            try await slow.write(Self.bytes(start..<end))
            start = end
            let fast = try await Self.begin(in: store)
            try await fast.write(Self.bytes(0..<100_000))
            try await Self.expectContent(Self.end(fast), 100_000, in: store)
        }
        try await Self.expectContent(Self.end(slow), start, in: store)
        // Nothing is left of what was set aside.
        #expect(try await store.objects.list(ObjectName.files).objects.count == ends.count + 1)
        #expect(try await store.objects.openParts("").parts.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a slow upload that is given up leaves nothing`(address: String) async throws {
        let store = try await Self.store(at: address)
        let slow = try await Self.begin(in: store)
        try await slow.write(Self.bytes(0..<9_000_000))
        let fast = try await Self.begin(in: store)
        try await fast.write(Self.bytes(0..<100_000))
        _ = try await Self.end(fast)
        await slow.discard()
        #expect(try await store.objects.list(ObjectName.files).objects.count == 1)
        #expect(try await store.objects.openParts("").parts.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a slow upload leaves nothing if its bytes cannot be read back`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let store = try await S3UploadStore.open(
            bucket.hooked { request in
                if request.method == .GET, request.key.contains("/files/") { throw ProgramFailure("It is gone.") }
            }, memoryBytes: 8 << 20)
        let slow = try await Self.begin(in: store)
        try await slow.write(Self.bytes(0..<100_000))
        let fast = try await Self.begin(in: store)
        try await fast.write(Self.bytes(0..<100_000))
        _ = try await Self.end(fast)
        await #expect(throws: ProgramFailure.self) { try await slow.write(Self.bytes(100_000..<17_000_000)) }
        await slow.discard()
        #expect(try await store.objects.list(ObjectName.files).objects.count == 1)
        #expect(try await store.objects.openParts("").parts.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses, [false, true])
    func `an append that is slow gives its memory to other uploads, too`(
        address: String, isRevertible: Bool
    ) async throws {
        let store = try await Self.store(at: address)
        let id = try #require(ResumptionID(String(repeating: "a", count: 32)))
        let form = UnfinishedForm(contentType: "text/plain", key: UploadKey("key", scope: ""), length: nil)
        let upload = try await store.createUnfinishedUpload(
            id, of: form, expires: Date(timeIntervalSinceNow: 3600))
        await upload.lock.withLock {}
        var appender = try await upload.makeAppender(isRevertible: isRevertible)
        var start = 0
        for end in [100_000, 300_000, 9_000_000] {
            try await appender.append(Self.bytes(start..<end))
            start = end
            let fast = try await Self.begin(in: store)
            try await fast.write(Self.bytes(0..<100_000))
            try await Self.expectContent(Self.end(fast), 100_000, in: store)
        }
        try await appender.finish()
        #expect(try await upload.durableProgress() == .unfinished(offset: Int64(start)))
        let content = try await upload.openContent()
        #expect(try await content.read(at: 0, count: start) == Self.bytes(0..<start))
    }

    @Test(arguments: ObjectStores.addresses)
    func `a slow append leaves nothing that it set aside if that cannot be read back`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let id = try #require(ResumptionID(String(repeating: "a", count: 32)))
        let held = ObjectName.held("", ofUnfinished: id.text)
        let store = try await S3UploadStore.open(
            bucket.hooked { request in
                if request.method == .GET, request.key.contains(held) { throw ProgramFailure("It is gone.") }
            }, memoryBytes: 8 << 20)
        let form = UnfinishedForm(contentType: "text/plain", key: UploadKey("key", scope: ""), length: nil)
        let upload = try await store.createUnfinishedUpload(
            id, of: form, expires: Date(timeIntervalSinceNow: 3600))
        var appender = try await upload.makeAppender(isRevertible: true)
        try await appender.append(Self.bytes(0..<100_000))
        let fast = try await Self.begin(in: store)
        try await fast.write(Self.bytes(0..<100_000))
        _ = try await Self.end(fast)
        await #expect(throws: (any Error).self) { try await appender.append(Self.bytes(100_000..<17_000_000)) }
        let keys = try await store.objects.list(ObjectName.folder(ofUnfinished: id.text)).objects.map(\.key)
        #expect(!keys.contains { $0.contains(held) }, "\(keys)")
        #expect(try await store.objects.openParts("").parts.isEmpty)
    }
}
