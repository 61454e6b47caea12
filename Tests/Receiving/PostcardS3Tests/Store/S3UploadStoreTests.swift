import Foundation
import Logging
import NIOCore
import PostcardServer
import PostcardServerTesting
import Testing

@testable import PostcardS3

@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct S3UploadStoreTests {
    @Test(arguments: ObjectStores.addresses, UploadStoreCheck.allCases)
    func `the store in a bucket keeps every promise`(address: String, check: UploadStoreCheck) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        try await check.run { try await S3UploadStore.open(bucket) }
    }

    @Test(arguments: ObjectStores.addresses, ResumableUploadStoreCheck.allCases)
    func `the store in a bucket keeps every promise about unfinished uploads`(
        address: String, check: ResumableUploadStoreCheck
    ) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        try await check.run { try await S3UploadStore.open(bucket) }
    }

    private static let key = UploadKey("key", scope: "")

    private static func store(
        _ content: ByteBuffer = ByteBuffer(string: "content"), in store: S3UploadStore, under key: UploadKey? = nil
    ) async throws -> CommittedUpload {
        let upload = try await store.beginUpload(under: key, announcedBytes: nil)
        try await upload.beginFile(UploadRecord.FileHeader(name: "file", filename: "f", contentType: "text/plain"))
        var rest = content
        while rest.readableBytes > 0 {
            if let piece = rest.readSlice(length: min(rest.readableBytes, 1 << 16)) { try await upload.write(piece) }
        }
        try await upload.endFile()
        do {
            return try await upload.commit(fields: [], parts: [.file(0)])
        } catch {
            await upload.discard()
            throw error
        }
    }

    private static func stores(_ count: Int, at address: String) async throws -> [S3UploadStore] {
        let bucket = try await ObjectStores.makeBucket(at: address)
        var stores: [S3UploadStore] = []
        while stores.count < count { stores.append(try await S3UploadStore.open(bucket)) }
        return stores
    }

    private static func read(_ id: UploadID, from store: S3UploadStore) async throws -> ByteBuffer? {
        guard let file = try await store.openFile(0, of: id) else { return nil }
        var content = ByteBuffer()
        while Int64(content.readableBytes) < file.size {
            var piece = try await file.read(at: Int64(content.readableBytes), count: 256 << 10)
            guard piece.readableBytes > 0 else { break }
            content.writeBuffer(&piece)
        }
        return content
    }

    @Test(arguments: ObjectStores.addresses)
    func `responses are kept as long as their records`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let id = try await Self.store(in: stores[0], under: Self.key).record.id
        #expect(try await stores[1].response(to: id) == nil)
        for bytes in [Array(0...255), []] as [[UInt8]] {
            try await stores[0].keepResponse(bytes, to: id)
            try await stores[1].sweep()
            #expect(try await stores[1].response(to: id) == bytes)
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `fifty uploads of one key through three receivers make one record`(address: String) async throws {
        let stores = try await Self.stores(3, at: address)
        let uploads = try await withThrowingTaskGroup { group in
            for index in 0..<50 {
                group.addTask { try await Self.store(in: stores[index % 3], under: Self.key) }
            }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        #expect(Set(uploads.map(\.record)).count == 1)
        #expect(uploads.count { !$0.isRepetition } == 1)
        for store in stores {
            #expect(try await store.identifiers(limit: 10, after: nil) == [uploads[0].record.id])
            #expect(try await Self.read(uploads[0].record.id, from: store) == ByteBuffer(string: "content"))
            #expect(try await store.record(uploads[0].record.id) == uploads[0].record)
        }
        // The losers' files are gone.
        #expect(try await stores[0].objects.list("files/").objects.count == 1)
    }

    @Test(arguments: ObjectStores.addresses)
    func `large files are stored in parts, and read back whole by every receiver`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        var content = ByteBuffer()
        for index in 0..<(21 << 17) { content.writeInteger(UInt64(index) &* 0x9E37_79B9_7F4A_7C15) }
        let record = try await Self.store(content, in: stores[0]).record
        #expect(record.files[0].sha256 == RequestSigner.hash(content))
        #expect(try await Self.read(record.id, from: stores[1]) == content)
        let exact = ByteBuffer(repeating: 5, count: Surroundings.real.partBytes)
        let second = try await Self.store(exact, in: stores[0]).record
        #expect(try await Self.read(second.id, from: stores[1]) == exact)
        #expect(try await stores[1].objects.openParts("").parts.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a record that was committed but not listed is listed by the next upload of its key`(
        address: String
    ) async throws {
        let stores = try await Self.stores(2, at: address)
        let first = try await Self.store(in: stores[0], under: Self.key)
        // As if the receiver had been killed between the two requests.
        try await stores[0].objects.delete(ObjectName.record(first.record.id))
        #expect(try await stores[1].identifiers(limit: 10, after: nil).isEmpty)
        let again = try await Self.store(in: stores[1], under: Self.key)
        #expect(again == CommittedUpload(first.record, isRepetition: true))
        #expect(try await stores[0].identifiers(limit: 10, after: nil) == [first.record.id])
        #expect(try await stores[0].record(first.record.id) == first.record)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a deletion that was cut short frees the key too`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let first = try await Self.store(in: stores[0], under: Self.key).record
        // As if the receiver had been killed after the mark.
        try await stores[0].objects.put(
            ObjectName.record(first.id), ByteBuffer(), metadata: ["key": Self.key.digest, "generation": "0"])
        let second = try await Self.store(in: stores[1], under: Self.key)
        #expect(!second.isRepetition)
        #expect(second.record.id != first.id)
        let again = try await Self.store(in: stores[0], under: Self.key)
        #expect(again.isRepetition)
        #expect(again.record.id == second.record.id)
        #expect(try await stores[0].identifiers(limit: 10, after: nil) == [second.record.id])
        // A late receiver cannot bring the first record back.
        let entry = KeyEntry(key: Self.key.digest, generation: 0, record: first)
        try await stores[0].keys.list(entry, ByteBuffer(bytes: first.json()), seen: Date())
        #expect(try await stores[0].record(first.id) == nil)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a second deletion that comes late does not free the key of a later record`(address: String) async throws {
        let stores = try await Self.stores(2, at: address)
        let first = try await Self.store(in: stores[0], under: Self.key).record
        let metadata = try #require(try await stores[0].objects.head(ObjectName.record(first.id))).metadata
        #expect(try await stores[0].delete(first.id))
        let second = try await Self.store(in: stores[0], under: Self.key).record
        // The other receiver was stopped before this.
        try await stores[1].keys.freeKey(metadata)
        let again = try await Self.store(in: stores[1], under: Self.key)
        #expect(again.isRepetition)
        #expect(again.record.id == second.id)
    }

    @Test(arguments: ObjectStores.addresses)
    func `identifiers grow although the clock of a receiver is behind`(address: String) async throws {
        var bucket = try await ObjectStores.makeBucket(at: address)
        let first = try await Self.store(in: S3UploadStore.open(bucket)).record.id
        bucket.clock = { Date() - 200 }
        let store = try await S3UploadStore.open(bucket)
        let second = try await Self.store(in: store).record.id
        #expect(second > first)
        #expect(try await store.identifiers(limit: 10, after: nil) == [second, first])
    }

    @Test(arguments: ObjectStores.addresses)
    func `what is wrong with a bucket is said at the start`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        var missing = try S3Bucket("s3://postcard-missing-\(UUID().uuidString.lowercased())")
        missing.endpoint = bucket.endpoint
        missing.region = "us-east-1"
        missing.credentials = bucket.credentials
        await expect("NoSuchBucket", opening: missing)
        var late = bucket
        late.clock = { Date() - 400 }
        await expect("clock-skew", opening: late)
        var down = bucket
        down.endpoint = "http://127.0.0.1:1"
        down.retryTimeout = .milliseconds(200)
        await expect("unreachable", opening: down)
        guard ObjectStores.isReal(address) else { return }
        var late16 = bucket
        late16.clock = { Date() - 3600 }
        await expect("RequestTimeTooSkewed", opening: late16)
        var unknown = bucket
        unknown.credentials = .fixed(S3Credentials(accessKeyID: "AKIAUNKNOWN", secretAccessKey: "x"))
        await expect("InvalidAccessKeyId", opening: unknown)
        var wrong = bucket
        wrong.credentials = .fixed(S3Credentials(accessKeyID: "AKIATEST", secretAccessKey: "wrong"))
        await expect("SignatureDoesNotMatch", opening: wrong)
    }

    private func expect(_ code: String, opening bucket: S3Bucket) async {
        do {
            _ = try await S3UploadStore.open(bucket)
            Issue.record("The bucket was opened in spite of \(code).")
        } catch let error as S3Error {
            #expect((error.storeCode ?? error.code.rawValue) == code)
            #expect(error.advice != nil)
        } catch {
            Issue.record(error)
        }
    }
}
