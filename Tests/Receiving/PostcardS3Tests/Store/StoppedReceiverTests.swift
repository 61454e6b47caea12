import Foundation
import NIOCore
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// A receiver that stops between any two of its requests to the object store, and another one that goes on.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct StoppedReceiverTests {
    private static let key = UploadKey("key", scope: "")
    private static let large = ByteBuffer(repeating: 7, count: 9 << 20)
    /// Everything may be removed at once.
    private static let atOnce = SweepTimes(orphan: -60, openFiles: -60, mark: -60, listing: -60, expired: -60)

    /// Where a receiver stops.
    enum Stop: CaseIterable, Sendable {
        /// Before a request.
        case before
        /// After a request was carried out, and before its answer.
        case after
    }

    /// Does something at a receiver that stops before or after its first request, its second one and so on, until it gets
    /// through.
    ///
    /// - Parameters:
    ///   - work: What the receiver does.
    ///   - check: What is expected of another receiver then. The value is what `work` noted last.
    ///   - prepare: What is in the bucket before.
    private static func stopEverywhere<Value: Sendable>(
        _ stop: Stop, at address: String, noting initial: Value,
        _ work: @escaping @Sendable (S3UploadStore, @Sendable (Value) -> Void) async throws -> Void,
        check: @Sendable (S3UploadStore, Value) async throws -> Void,
        given prepare: @Sendable (S3UploadStore) async throws -> Void = { _ in }
    ) async throws {
        for count in 0..<200 {
            let bucket = try await ObjectStores.makeBucket(at: address)
            let other = try await S3UploadStore.open(bucket)
            try await prepare(other)
            let server = try #require(bucket.endpoint.flatMap { URL(string: $0) })
            let left = Atomic(Int.max)
            let noted = Mutex(initial)
            try await FaultProxy.run(before: server) { _ in
                let number = left.subtract(1, ordering: .relaxed).oldValue
                guard number <= 0 else { return .none }
                return number == 0 && stop == .after ? .responseLost : .response(Fault.Response(503))
            } while: { proxy in
                var bucket = bucket
                bucket.endpoint = "http://127.0.0.1:\(proxy.port)"
                bucket.retryTimeout = .zero
                let store = try await S3UploadStore.open(bucket)
                left.store(count, ordering: .relaxed)
                try? await work(store) { value in noted.withLock { $0 = value } }
            }
            try await check(other, noted.withLock { $0 })
            if left.load(ordering: .relaxed) >= 0 {
                #expect(count > 1)
                return
            }
        }
        Issue.record("It makes more than 200 requests.")
    }

    private static func upload(
        _ contents: [ByteBuffer], to store: S3UploadStore, under key: UploadKey? = key
    ) async throws -> CommittedUpload {
        let upload = try await store.beginUpload(under: key, announcedBytes: nil)
        do {
            for content in contents {
                try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "text/plain"))
                try await upload.write(content)
                try await upload.endFile()
            }
            return try await upload.commit(fields: [], parts: contents.indices.map { .file($0) })
        } catch {
            await upload.discard()
            throw error
        }
    }

    private static func expectWhole(_ record: UploadRecord, _ contents: [ByteBuffer], in store: S3UploadStore)
        async throws
    {
        #expect(try await store.record(record.id) == record)
        for (index, content) in contents.enumerated() {
            let file = try #require(try await store.openFile(index, of: record.id))
            #expect(try await file.read(at: 0, count: content.readableBytes + 1) == content)
        }
    }

    private static func names(_ store: S3UploadStore) async throws -> [String] {
        try await store.objects.list("").objects.map { $0.key.split(separator: "/").prefix(2).joined(separator: "/") }
    }

    @Test(arguments: ObjectStores.addresses, Stop.allCases)
    func `an upload with a key becomes one record, and nothing is left of the first try`(
        address: String, stop: Stop
    ) async throws {
        let contents = [Self.large, ByteBuffer(string: "small")]
        try await Self.stopEverywhere(stop, at: address, noting: UploadID?.none) { store, note in
            note(try await Self.upload(contents, to: store).record.id)
        } check: { store, answered in
            try await store.sweep()
            let listed = try await store.identifiers(limit: 10, after: nil)
            if let answered { #expect(listed == [answered]) }
            let again = try await Self.upload(contents, to: store)
            if !listed.isEmpty { #expect(again.isRepetition && listed == [again.record.id]) }
            #expect(try await store.identifiers(limit: 10, after: nil) == [again.record.id])
            try await store.sweep(Self.atOnce)
            try await Self.expectWhole(again.record, contents, in: store)
            #expect(try await store.objects.list(ObjectName.files).objects.count == 2)
            #expect(try await store.objects.openParts("").parts.isEmpty)
        }
    }

    @Test(arguments: ObjectStores.addresses, Stop.allCases)
    func `an upload without a key is whole if it is listed`(address: String, stop: Stop) async throws {
        let contents = [ByteBuffer(string: "small")]
        try await Self.stopEverywhere(stop, at: address, noting: UploadID?.none) { store, note in
            note(try await Self.upload(contents, to: store, under: nil).record.id)
        } check: { store, answered in
            try await store.sweep(Self.atOnce)
            let listed = try await store.identifiers(limit: 10, after: nil)
            if let answered { #expect(listed == [answered]) }
            for id in listed {
                let record = try #require(try await store.record(id))
                try await Self.expectWhole(record, contents, in: store)
            }
            #expect(try await store.objects.list(ObjectName.files).objects.count == listed.count)
        }
    }

    @Test(arguments: ObjectStores.addresses, Stop.allCases)
    func `a deletion can be finished by another receiver, and frees the key`(
        address: String, stop: Stop
    ) async throws {
        let contents = [ByteBuffer(string: "small")]
        try await Self.stopEverywhere(stop, at: address, noting: false) { store, note in
            for id in try await store.identifiers(limit: 1, after: nil) { note(try await store.delete(id)) }
        } check: { store, isDeleted in
            let listed = try await store.identifiers(limit: 10, after: nil)
            if isDeleted { #expect(listed.isEmpty) }
            for id in listed { #expect(try await store.delete(id)) }
            let again = try await Self.upload(contents, to: store)
            #expect(!again.isRepetition)
            try await store.sweep(Self.atOnce)
            try await Self.expectWhole(again.record, contents, in: store)
            #expect(try await store.identifiers(limit: 10, after: nil) == [again.record.id])
            // The empty object of the key's first generation stays.
            let left = try await Self.names(store).map { $0.prefix { $0 != "/" } }
            #expect(left == ["files", "keys", "keys", "records"])
        } given: { store in
            _ = try await Self.upload(contents, to: store)
        }
    }

    // MARK: - Unfinished uploads

    private static let id = ResumptionID(String(repeating: "a", count: 32))
    /// What each append brings: little, much with a digest, and much.
    private static let appends: [(bytes: ByteBuffer, isRevertible: Bool)] = [
        (ByteBuffer(repeating: 1, count: 10), false), (ByteBuffer(repeating: 2, count: 100_000), true),
        (ByteBuffer(repeating: 3, count: 9 << 20), false),
    ]
    private static let whole = appends.reduce(into: ByteBuffer()) { $0.writeImmutableBuffer($1.bytes) }

    private static func finish(_ upload: S3UnfinishedUpload, in store: S3UploadStore) async throws -> UploadRecord {
        let content = try await upload.openContent()
        #expect(content.size == Int64(whole.readableBytes))
        let bytes = try await content.read(at: 0, count: whole.readableBytes)
        let record = try await Self.upload([bytes], to: store).record
        let response = #"{"status":201,"fields":[],"length":\#(whole.readableBytes),"record":"\#(record.id)"}"#
        try await upload.finish(
            with: JSONDecoder().decode(FinalResponse.self, from: Data(response.utf8)),
            options: UnfinishedUploadOptions())
        return record
    }

    @Test(arguments: ObjectStores.addresses, Stop.allCases)
    func `an upload in several requests goes on at another receiver where it was`(
        address: String, stop: Stop
    ) async throws {
        let id = try #require(Self.id)
        try await Self.stopEverywhere(stop, at: address, noting: Int64(-1)) { store, note in
            let form = UnfinishedForm(contentType: "text/plain", key: Self.key, length: nil)
            let upload = try await store.createUnfinishedUpload(
                id, of: form, expires: Date(timeIntervalSinceNow: 3600))
            await upload.lock.withLock {}
            note(0)
            for append in Self.appends {
                var appender = try await upload.makeAppender(isRevertible: append.isRevertible)
                try await appender.append(append.bytes)
                try await appender.finish()
                guard case .unfinished(let offset) = try await upload.durableProgress() else { return }
                note(offset)
            }
            _ = try await Self.finish(upload, in: store)
        } check: { store, promised in
            try await store.sweep()
            guard let upload = try await store.unfinishedUpload(id) else {
                #expect(promised < 0)
                return
            }
            let progress = try await upload.durableProgress()
            if case .unfinished(let offset) = progress {
                #expect(offset >= promised)
                var appender = try await upload.makeAppender(isRevertible: false)
                if let rest = Self.whole.getSlice(at: Int(offset), length: Self.whole.readableBytes - Int(offset)) {
                    try await appender.append(rest)
                }
                try await appender.finish()
                #expect(try await upload.durableProgress() == .unfinished(offset: Int64(Self.whole.readableBytes)))
                _ = try await Self.finish(upload, in: store)
            }
            let listed = try await store.identifiers(limit: 10, after: nil)
            let first = try #require(listed.first)
            let record = try #require(try await store.record(first))
            #expect(listed.count == 1)
            let length = Int64(Self.whole.readableBytes)
            #expect(try await upload.durableProgress() == .finished(length: length, record: record.id))
            try await store.sweep()
            // Its bytes are those of the record alone.
            #expect(try await store.objects.list(ObjectName.unfinished).objects.count == 2)
            try await store.sweep(Self.atOnce)
            try await Self.expectWhole(record, [Self.whole], in: store)
        }
    }

    @Test(arguments: ObjectStores.addresses, Stop.allCases)
    func `an upload is discarded as a whole`(address: String, stop: Stop) async throws {
        let id = try #require(Self.id)
        try await Self.stopEverywhere(stop, at: address, noting: false) { store, note in
            try await store.unfinishedUpload(id)?.discard()
            note(true)
        } check: { store, isDiscarded in
            // Another one, because the receiver that created it knows the upload.
            let other = try await S3UploadStore.open(store.objects.bucket)
            if let upload = try await other.unfinishedUpload(id) {
                #expect(!isDiscarded)
                let progress = try await upload.durableProgress()
                #expect(progress == .gone || progress == .unfinished(offset: 100_010))
                try await upload.discard()
            }
            try await store.sweep(Self.atOnce)
            #expect(try await store.objects.list(ObjectName.unfinished).objects.isEmpty)
        } given: { store in
            let form = UnfinishedForm(contentType: "text/plain", key: Self.key, length: nil)
            let upload = try await store.createUnfinishedUpload(
                id, of: form, expires: Date(timeIntervalSinceNow: 3600))
            await upload.lock.withLock {}
            for append in Self.appends.prefix(2) {
                var appender = try await upload.makeAppender(isRevertible: append.isRevertible)
                try await appender.append(append.bytes)
                try await appender.finish()
            }
            try await upload.setLength(1_000_000)
        }
    }

    @Test(arguments: ObjectStores.addresses, Stop.allCases)
    func `a sweep that stops is finished by another one, and removes nothing of a record`(
        address: String, stop: Stop
    ) async throws {
        let contents = [ByteBuffer(string: "small")]
        try await Self.stopEverywhere(stop, at: address, noting: false) { store, note in
            try await store.sweep(Self.atOnce)
            note(true)
        } check: { store, isDone in
            if !isDone { try await store.sweep(Self.atOnce) }
            let listed = try await store.identifiers(limit: 10, after: nil)
            #expect(listed.count == 2)
            for id in listed {
                let record = try #require(try await store.record(id))
                try await Self.expectWhole(record, contents, in: store)
            }
            #expect(try await store.objects.list(ObjectName.files).objects.count == 2)
            #expect(try await store.objects.list(ObjectName.records).objects.count == 2)
            #expect(try await store.objects.openParts("").parts.isEmpty)
        } given: { store in
            _ = try await Self.upload(contents, to: store, under: nil)
            let deleted = try await Self.upload(contents, to: store, under: UploadKey("other", scope: "")).record
            _ = try await store.delete(deleted.id)
            // Receivers that were killed within an upload, before its listing, and within a large file.
            try await store.objects.put(ObjectName.files + "left/0", ByteBuffer(string: "left"))
            let unlisted = try await Self.upload(contents, to: store).record
            try await store.objects.delete(ObjectName.record(unlisted.id))
            _ = try await store.objects.beginParts(ObjectName.files + "left/1")
        }
    }
}
