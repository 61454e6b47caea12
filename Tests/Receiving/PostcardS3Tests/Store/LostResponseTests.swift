import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PostcardServer
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// Responses of the object store that are lost, or that ask to wait.
@Suite(.timeLimit(.minutes(10)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct LostResponseTests {
    private static let key = UploadKey("key", scope: "")

    struct Case: CustomTestStringConvertible, Sendable {
        let testDescription: String
        let method: String
        /// A part of the path of the requests that have the fault.
        let path: String
        let fault: Fault
        var count = 1
    }

    private static let slowDown = Fault.response(
        Fault.Response(503, body: "<Error><Code>SlowDown</Code><Message>Please reduce your rate.</Message></Error>"))
    private static let conflict = Fault.response(
        Fault.Response(409, body: "<Error><Code>ConditionalRequestConflict</Code></Error>"))
    private static let hidden = Fault.response(
        Fault.Response(200, body: "<Error><Code>InternalError</Code><Message>Again.</Message></Error>"))

    private static func upload(
        _ content: ByteBuffer, to store: S3UploadStore, under key: UploadKey?
    ) async throws -> CommittedUpload {
        let upload = try await store.beginUpload(under: key, announcedBytes: nil)
        do {
            try await upload.beginFile(UploadRecord.FileHeader(name: "file", filename: "f", contentType: "text/plain"))
            try await upload.write(content)
            try await upload.endFile()
            return try await upload.commit(fields: [], parts: [.file(0)])
        } catch {
            await upload.discard()
            throw error
        }
    }

    private static func through(
        _ bucket: S3Bucket, retrying: Duration = .seconds(20), _ matching: Case,
        _ body: @escaping @Sendable (S3UploadStore) async throws -> Void
    ) async throws -> Int {
        let hits = Atomic(0)
        let server = try #require(bucket.endpoint.flatMap { URL(string: $0) })
        try await FaultProxy.run(before: server) { request in
            guard request.method == matching.method, request.path.contains(matching.path),
                hits.add(1, ordering: .relaxed).oldValue < matching.count
            else { return .none }
            return matching.fault
        } while: { proxy in
            var bucket = bucket
            bucket.endpoint = "http://127.0.0.1:\(proxy.port)"
            bucket.retryTimeout = retrying
            try await body(S3UploadStore.open(bucket))
        }
        return hits.load(ordering: .relaxed)
    }

    @Test(
        arguments: ObjectStores.addresses,
        [
            Case(testDescription: "file", method: "PUT", path: "/files/", fault: .responseLost),
            Case(testDescription: "record", method: "PUT", path: "/records/", fault: .responseLost),
            Case(testDescription: "key", method: "PUT", path: "/keys/", fault: .responseLost),
            Case(testDescription: "key, twice", method: "PUT", path: "/keys/", fault: .responseLost, count: 2),
            Case(testDescription: "completion", method: "POST", path: "uploadId=", fault: .responseLost),
            Case(testDescription: "error in a 200", method: "POST", path: "uploadId=", fault: hidden, count: 2),
            Case(testDescription: "SlowDown", method: "PUT", path: "/keys/", fault: slowDown, count: 2),
            Case(testDescription: "conflict", method: "PUT", path: "/keys/", fault: conflict, count: 2),
        ])
    func `a lost response is no lost commit, and no second record`(address: String, matching: Case) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let content = ByteBuffer(repeating: 7, count: matching.method == "POST" ? 9 << 20 : 100)
        let hits = try await Self.through(bucket, matching) { store in
            for key in [Self.key, nil] {
                let committed = try await Self.upload(content, to: store, under: key)
                #expect(!committed.isRepetition)
                #expect(try await store.record(committed.record.id) == committed.record)
            }
            #expect(try await store.identifiers(limit: 10, after: nil).count == 2)
        }
        #expect(hits > matching.count)
        let other = try await S3UploadStore.open(bucket)
        #expect(try await other.identifiers(limit: 10, after: nil).count == 2)
        #expect(try await Self.upload(content, to: other, under: Self.key).isRepetition)
        #expect(try await other.objects.list(ObjectName.files).objects.count == 2)
    }

    @Test(arguments: ObjectStores.addresses, ["/keys/", "/records/"])
    func `a commit whose responses are all lost is whole`(address: String, path: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let content = ByteBuffer(string: "content")
        let fault = Case(testDescription: "", method: "PUT", path: path, fault: .responseLost, count: .max)
        _ = try await Self.through(bucket, retrying: .milliseconds(300), fault) { store in
            await #expect(throws: UploadStoreError.self) {
                try await Self.upload(content, to: store, under: Self.key)
            }
        }
        let other = try await S3UploadStore.open(bucket)
        let again = try await Self.upload(content, to: other, under: Self.key)
        #expect(again.isRepetition)
        #expect(try await other.identifiers(limit: 10, after: nil) == [again.record.id])
        let file = try #require(try await other.openFile(0, of: again.record.id))
        #expect(try await file.read(at: 0, count: 100) == content)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a response whose body stalls is asked for again`(address: String) async throws {
        var bucket = try await ObjectStores.makeBucket(at: address)
        bucket.requestTimeout = .seconds(2)
        let stalled = Fault.response(Fault.Response(200, ["Content-Length": "1000"], body: "{"))
        let fault = Case(testDescription: "", method: "GET", path: "/records/", fault: stalled)
        let hits = try await Self.through(bucket, fault) { store in
            let committed = try await Self.upload(ByteBuffer(string: "content"), to: store, under: nil)
            #expect(try await store.record(committed.record.id) == committed.record)
        }
        #expect(hits > 1)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a commit that was deleted before its response arrived is not made again with the same files`(
        address: String
    ) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        let others = try await S3UploadStore.open(bucket)
        let direct = try S3Connection(bucket, logger: .init(label: "test"))
        let isFirst = Mutex(true)
        let store = try await S3UploadStore.open(
            bucket.hooked { request in
                guard request.method == .PUT, request.key.contains("/keys/"), request.body.readableBytes > 0,
                    isFirst.withLock({ isFirst in
                        defer { isFirst = false }
                        return isFirst
                    })
                else { return }
                // The store carries it out, and another receiver lists the record, which is deleted then.
                _ = try await direct.response(to: request)
                guard case .taken(let entry) = try await others.keys.current(Self.key.digest) else { return }
                #expect(try await others.delete(entry.id))
                throw S3Error.unreachable("http://store.example", CancellationError())
            })
        let content = ByteBuffer(string: "content")
        let error = try await #require(throws: UploadStoreError.self) {
            try await Self.upload(content, to: store, under: Self.key)
        }
        #expect(error.code == .unavailable)
        #expect(try await others.identifiers(limit: 10, after: nil).isEmpty)
        // The repetition is another upload. The sweep removes the deleted one's files, and leaves its own.
        let again = try await Self.upload(content, to: store, under: Self.key)
        try await others.sweep(SweepTimes(openFiles: -60))
        #expect(try await others.identifiers(limit: 10, after: nil) == [again.record.id])
        let file = try #require(try await others.openFile(0, of: again.record.id))
        #expect(try await file.read(at: 0, count: 100) == content)
    }
}
