import Foundation
import NIOCore
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// Unfinished uploads that several receivers append to. What one receiver does is checked in `S3UploadStoreTests`.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct UnfinishedUploadTests {
    private static let id = ResumptionID(String(repeating: "a", count: 32))

    private static func stores(_ count: Int, at address: String) async throws -> [S3UploadStore] {
        let bucket = try await ObjectStores.makeBucket(at: address)
        var stores: [S3UploadStore] = []
        while stores.count < count { stores.append(try await S3UploadStore.open(bucket)) }
        return stores
    }

    private static func create(in store: S3UploadStore, lifetime: TimeInterval = 3600) async throws
        -> S3UnfinishedUpload
    {
        let form = UnfinishedForm(contentType: "text/plain", key: UploadKey("key", scope: ""), length: nil)
        let id = try #require(Self.id)
        let expires = Date(timeIntervalSinceNow: lifetime)
        let upload = try await store.createUnfinishedUpload(id, of: form, expires: expires)
        await upload.lock.withLock {}
        return upload
    }

    private static func find(in store: S3UploadStore) async throws -> S3UnfinishedUpload {
        let id = try #require(Self.id)
        return try #require(try await store.unfinishedUpload(id))
    }

    private static func append(
        _ bytes: ByteBuffer, to upload: S3UnfinishedUpload, isRevertible: Bool = false
    ) async throws {
        var appender = try await upload.makeAppender(isRevertible: isRevertible)
        try await appender.append(bytes)
        try await appender.finish()
    }

    private static func bytes(_ count: Int, _ byte: UInt8 = 7) -> ByteBuffer {
        ByteBuffer(repeating: byte, count: count)
    }

    private static func content(of upload: S3UnfinishedUpload) async throws -> ByteBuffer {
        let file = try await upload.openContent()
        return try await file.read(at: 0, count: Int(file.size))
    }

    private static func names(in store: S3UploadStore) async throws -> [String] {
        try await store.objects.list(ObjectName.unfinished).objects.map { object in
            object.key.split(separator: "/").dropFirst(2).joined(separator: "/")
        }
    }

    private static func response(_ length: Int) throws -> FinalResponse {
        try JSONDecoder().decode(
            FinalResponse.self, from: Data(#"{"status":400,"fields":[],"body":"","length":\#(length)}"#.utf8))
    }

    @Test(arguments: ObjectStores.addresses, [false, true])
    func `of receivers that append at one offset at once one succeeds`(
        address: String, isRevertible: Bool
    ) async throws {
        let stores = try await Self.stores(3, at: address)
        _ = try await Self.create(in: stores[0])
        var end = 0
        // Some have one chunk, some several, and some an object that a chunk names.
        for size in ObjectStores.isReal(address) ? [10, 100_000, 9_000_000] : [10, 100] {
            var uploads: [S3UnfinishedUpload] = []
            for store in stores {
                uploads.append(try await Self.find(in: store))
                #expect(try await uploads.last?.durableProgress() == .unfinished(offset: Int64(end)))
            }
            let winners = try await withThrowingTaskGroup(of: Int?.self) { group in
                for (index, upload) in uploads.enumerated() {
                    group.addTask {
                        do {
                            let bytes = Self.bytes(size + index, UInt8(index))
                            try await Self.append(bytes, to: upload, isRevertible: isRevertible)
                            return index
                        } catch let error as UploadStoreError where error.code == .overtaken {
                            return nil
                        }
                    }
                }
                return try await group.reduce(into: []) { $0 += $1.map { [$0] } ?? [] }
            }
            let winner = try #require(winners.first)
            #expect(winners.count == 1)
            end += size + winner
            for upload in uploads {
                #expect(try await upload.durableProgress() == .unfinished(offset: Int64(end)))
            }
            let content = try await Self.content(of: uploads[2])
            #expect(content.readableBytesView.suffix(size).allSatisfy { $0 == UInt8(winner) })
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `an upload that begins at one receiver ends at another`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let first = try await Self.create(in: stores[0])
        try await Self.append(Self.bytes(1000), to: first)
        let second = try await Self.find(in: stores[1])
        #expect(try await second.durableProgress() == .unfinished(offset: 1000))
        try await second.setLength(2000)
        try await Self.append(Self.bytes(1000), to: second)
        #expect(try await first.durableProgress() == .unfinished(offset: 2000))
        #expect(first.form.length == 2000)
        #expect(try await Self.content(of: first) == Self.bytes(2000))
        try await second.finish(with: Self.response(2000), options: UnfinishedUploadOptions())
        #expect(try await first.durableProgress() == .finished(length: 2000, record: nil))
        #expect(try await first.response() == Self.response(2000))
        #expect(try await Self.names(in: stores[0]) == ["end", "form", "length/00000000000000002000"])
        try await first.discard()
        #expect(try await second.durableProgress() == .gone)
        #expect(try await stores[1].unfinishedUpload(first.id) != nil)
        let third = try await S3UploadStore.open(stores[0].objects.bucket)
        #expect(try await third.unfinishedUpload(first.id) == nil)
    }

    @Test(arguments: ObjectStores.addresses)
    func `the offset never falls while another receiver appends and finishes`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let upload = try await Self.create(in: stores[0])
        let watched = try await Self.find(in: stores[1])
        async let watching: [UnfinishedUploadProgress] = {
            var seen: [UnfinishedUploadProgress] = []
            while true {
                let progress = try await watched.durableProgress()
                seen.append(progress)
                if case .finished = progress { return seen }
            }
        }()
        for _ in 0..<40 { try await Self.append(Self.bytes(10), to: upload) }
        try await upload.finish(with: Self.response(400), options: UnfinishedUploadOptions())
        let offsets = try await watching.map { progress -> Int64 in
            switch progress {
            case .unfinished(let offset): offset
            case .finished(let length, _): length
            case .gone: -1
            }
        }
        #expect(offsets == offsets.sorted())
        #expect(offsets.allSatisfy { $0 % 10 == 0 && $0 >= 0 })
    }

    @Test(arguments: ObjectStores.addresses, ["/chunks/", "/form", "/end", "/length/"])
    func `a lost response is not a conflict`(address: String, path: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let server = try #require(bucket.endpoint.flatMap { URL(string: $0) })
        let hits = Atomic(0)
        try await FaultProxy.run(before: server) { request in
            guard request.method == "PUT", request.path.contains(path),
                hits.add(1, ordering: .relaxed).oldValue < 2
            else { return .none }
            return .responseLost
        } while: { proxy in
            var bucket = bucket
            bucket.endpoint = "http://127.0.0.1:\(proxy.port)"
            let upload = try await Self.create(in: S3UploadStore.open(bucket))
            try await upload.setLength(100_020)
            try await Self.append(Self.bytes(10), to: upload)
            try await Self.append(Self.bytes(100_000), to: upload, isRevertible: true)
            try await Self.append(Self.bytes(10), to: upload)
            #expect(try await upload.durableProgress() == .unfinished(offset: 100_020))
            #expect(try await Self.content(of: upload) == Self.bytes(100_020))
            try await upload.finish(with: Self.response(100_020), options: UnfinishedUploadOptions())
            #expect(try await upload.response() == Self.response(100_020))
        }
        #expect(hits.load(ordering: .relaxed) > 2)
    }

    @Test(arguments: ObjectStores.addresses)
    func `bytes that could be reverted are not seen by another receiver before`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let upload = try await Self.create(in: stores[0])
        let other = try await Self.find(in: stores[1])
        for size in [10, 100_000, 20_000_000] {
            var appender = try await upload.makeAppender(isRevertible: true)
            try await appender.append(Self.bytes(size))
            #expect(try await other.durableProgress() == .unfinished(offset: 0))
            try await appender.revert()
            try await appender.finish()
            #expect(try await other.durableProgress() == .unfinished(offset: 0))
        }
        #expect(try await Self.names(in: stores[0]) == ["form"])
        #expect(try await stores[0].objects.openParts("").parts.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a receiver that is late brings no bytes back`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let upload = try await Self.create(in: stores[0])
        try await Self.append(Self.bytes(10), to: upload)
        // Stopped between the two.
        let late = try await Self.find(in: stores[1])
        _ = try await late.durableProgress()
        var appender = try await late.makeAppender(isRevertible: false)
        try await upload.finish(with: Self.response(10), options: UnfinishedUploadOptions())
        try await appender.append(Self.bytes(10))
        try await appender.finish()
        for upload in [upload, late] {
            #expect(try await upload.durableProgress() == .finished(length: 10, record: nil))
        }
        try await stores[0].sweep()
        #expect(try await Self.names(in: stores[0]) == ["end", "form"])
    }

    @Test(arguments: ObjectStores.addresses)
    func `the sweep removes expired uploads an hour later, and what they leave`(address: String) async throws {
        let store = try await Self.stores(1, at: address)[0]
        let atOnce = SweepTimes(orphan: -60, openFiles: -60, mark: -60, listing: -60, expired: -60)
        let live = try await Self.create(in: store)
        try await Self.append(Self.bytes(10), to: live)
        try await store.sweep(atOnce)
        #expect(try await Self.content(of: live) == Self.bytes(10))
        try await live.discard()
        // A mark, until no late request can come.
        #expect(try await Self.names(in: store) == ["end"])
        try await store.sweep()
        #expect(try await Self.names(in: store) == ["end"])
        try await store.sweep(atOnce)
        #expect(try await Self.names(in: store).isEmpty)
        // Another identifier is another upload; here nothing is left of the first.
        let expired = UnfinishedObjects(objects: store.objects, id: String(repeating: "b", count: 32))
        func facts(_ seconds: TimeInterval) -> UnfinishedFacts {
            UnfinishedFacts(
                contentType: "", keyDigest: "", created: Date(), expires: Date(timeIntervalSinceNow: -seconds),
                length: nil, reprDigest: nil, wantReprDigest: nil)
        }
        try await expired.create(facts(3000))
        try await expired.createChunk(at: 0, Self.bytes(10), of: "append")
        _ = try await store.objects.beginParts(ObjectName.held("left", ofUnfinished: expired.id))
        try await store.sweep()
        #expect(try await Self.names(in: store).count == 2)
        try await store.objects.delete(ObjectName.form(ofUnfinished: expired.id))
        try await expired.create(facts(4000))
        try await store.sweep()
        #expect(try await Self.names(in: store) == ["end"])
        try await store.sweep(atOnce)
        #expect(try await Self.names(in: store).isEmpty)
        #expect(try await store.objects.openParts("").parts.isEmpty)
    }
}
