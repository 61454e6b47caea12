import Foundation
import NIOCore
import PostcardServer
import Testing

@testable import PostcardS3

@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct SweepTests {
    private static let key = UploadKey("key", scope: "")

    /// Everything may be removed at once.
    private static let atOnce = SweepTimes(orphan: -60, openFiles: -60, mark: -60, listing: -60)

    private static func begin(in store: S3UploadStore, under key: UploadKey? = nil) async throws -> S3Upload {
        let upload = try await store.beginUpload(under: key, announcedBytes: nil)
        try await upload.beginFile(UploadRecord.FileHeader(name: "file", filename: "f", contentType: "text/plain"))
        try await upload.write(ByteBuffer(string: "content"))
        try await upload.endFile()
        return upload
    }

    private static func keys(of store: S3UploadStore) async throws -> Set<String> {
        Set(try await store.objects.list("").objects.map { String($0.key.prefix { $0 != "/" }) })
    }

    @Test(arguments: ObjectStores.addresses)
    func `what no record names is removed, and nothing else`(address: String) async throws {
        let store = try await S3UploadStore.open(ObjectStores.makeBucket(at: address))
        let kept = try await Self.begin(in: store).commit(fields: [], parts: [.file(0)]).record
        let keyed = try await Self.begin(in: store, under: Self.key).commit(fields: [], parts: [.file(0)]).record
        // Receivers that were killed: before the commit, between its requests, and within a large file.
        _ = try await Self.begin(in: store)
        let unlisted = try await Self.begin(in: store, under: UploadKey("other", scope: "")).commit(
            fields: [], parts: [.file(0)]
        ).record
        try await store.objects.delete(ObjectName.record(unlisted.id))
        _ = try await store.objects.beginParts(ObjectName.files + "left/0")
        try await store.sweep()
        #expect(try await store.objects.list(ObjectName.files).objects.count == 4)
        try await store.sweep(Self.atOnce)
        #expect(try await store.objects.list(ObjectName.files).objects.count == 3)
        #expect(try await store.objects.openParts("").parts.isEmpty)
        #expect(try await store.identifiers(limit: 10, after: nil) == [unlisted.id, keyed.id, kept.id])
        for record in [unlisted, keyed, kept] {
            let file = try #require(try await store.openFile(0, of: record.id))
            #expect(try await file.read(at: 0, count: 100) == ByteBuffer(string: "content"))
        }
    }

    @Test(arguments: ObjectStores.addresses)
    func `bytes of a stored file that were set aside are removed once they are old`(address: String) async throws {
        let store = try await S3UploadStore.open(ObjectStores.makeBucket(at: address))
        let record = try await Self.begin(in: store).commit(fields: [], parts: [.file(0)]).record
        let file = ObjectName.file(0, of: record.id)
        // The request that removes them failed.
        try await store.objects.put(ObjectName.aside(0, ofFile: file), ByteBuffer(string: "con"))
        try await store.sweep()
        #expect(try await store.objects.list(ObjectName.files).objects.count == 2)
        try await store.sweep(Self.atOnce)
        #expect(try await store.objects.list(ObjectName.files).objects.map(\.key) == [file])
    }

    @Test(arguments: ObjectStores.addresses)
    func `a deletion leaves nothing but the empty object of the key`(address: String) async throws {
        let store = try await S3UploadStore.open(ObjectStores.makeBucket(at: address))
        let keyed = try await Self.begin(in: store, under: Self.key).commit(fields: [], parts: [.file(0)]).record
        let other = try await Self.begin(in: store).commit(fields: [], parts: [.file(0)]).record
        #expect(try await store.delete(keyed.id))
        #expect(try await store.delete(other.id))
        try await store.sweep(Self.atOnce)
        let left = try await store.objects.list("").objects
        #expect(left.map(\.key) == [ObjectName.key(Self.key.digest, generation: 0)])
        #expect(left.first?.size == 0)
        let again = try await Self.begin(in: store, under: Self.key).commit(fields: [], parts: [.file(0)])
        #expect(!again.isRepetition)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a deletion that was cut short is finished`(address: String) async throws {
        let store = try await S3UploadStore.open(ObjectStores.makeBucket(at: address))
        let record = try await Self.begin(in: store, under: Self.key).commit(fields: [], parts: [.file(0)]).record
        let name = ObjectName.record(record.id)
        let metadata = try #require(try await store.objects.head(name)).metadata
        try await store.objects.put(name, ByteBuffer(), metadata: metadata)
        try await store.sweep()
        #expect(try await store.objects.head(ObjectName.key(Self.key.digest, generation: 0))?.size == 0)
        #expect(try await Self.keys(of: store) == ["files", "keys", "records"])
        try await store.sweep(Self.atOnce)
        #expect(try await Self.keys(of: store) == ["keys"])
    }
}
