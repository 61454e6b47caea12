import Foundation
import NIOCore
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct StoreLimitReceiverTests {
    /// The bytes that all records take on the disk.
    private static func allocatedBytes(in directory: FilePath) -> Int {
        func names(in folder: FilePath) -> [String] {
            (try? FileManager.default.contentsOfDirectory(atPath: folder.string)) ?? []
        }
        func bytes(of path: FilePath) -> Int {
            guard let status = try? path.stat() else { return 0 }
            return Int(status.blocksAllocated) * 512
        }
        var sum = 0
        for name in names(in: directory) where !name.hasPrefix(".") {
            let folder = directory.appending(name)
            sum += bytes(of: folder)
            for file in names(in: folder) { sum += bytes(of: folder.appending(file)) }
        }
        return sum
    }

    private static func post(_ body: String, to receiver: RunningReceiver, from address: String) async throws
        -> RawResponse
    {
        try await onThread { [port = receiver.port] in
            let socket = try RawSocket(port: port, from: address)
            try socket.send(Form.request(body: body))
            return try RawResponse(socket.receiveAll())
        }
    }

    /// Fills a directory up to a limit.
    private static func fill(_ directory: FilePath, upTo maximum: Int) async throws {
        let store = try LocalUploadStore(directory: directory)
        for _ in 0..<maximum / 110_000 {
            let upload = try await store.beginUpload()
            try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "a/b"))
            try await upload.write(ByteBuffer(repeating: 7, count: 100_000))
            try await upload.endFile()
            _ = try await upload.commit(fields: [], parts: [.file(0)])
        }
    }

    private static let loads: [(senders: Int, bytes: Int, forms: Int)] = [
        (1, 1000, 80), (4, 1000, 25), (16, 1000, 8), (1, 100_000, 40), (4, 100_000, 20), (16, 100_000, 6),
    ]

    @Test(
        .enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."),
        arguments: loads)
    func `the limit is kept while forms arrive, and an address that has little loses none`(
        senders: Int, bytes: Int, forms: Int
    ) async throws {
        let maximum = 4_000_000
        let body = Form.fileHeader + String(repeating: "x", count: bytes) + Form.end
        try await withTemporaryDirectory { directory in
            let received = directory.appending("received")
            try await Self.fill(received, upTo: maximum)
            try await withReceiver(in: received) {
                $0.retention = RetentionPolicy()
                $0.retention?.maximumBytes = Int64(maximum)
            } _: { receiver in
                let most = maximum / 5 * 6 + bytes + 16_384
                try await withThrowingTaskGroup { tasks in
                    for _ in 0..<senders {
                        tasks.addTask {
                            for _ in 0..<forms {
                                let response = try await Self.post(body, to: receiver, from: "127.0.0.1")
                                guard response.status != 201 else { continue }
                                #expect(response.status == 503)
                                #expect(response.problem?.code == "store-over-limit")
                                #expect(response.headers["retry-after"] != nil)
                            }
                        }
                    }
                    for _ in 0..<20 {
                        #expect(try await Self.post(Form.small, to: receiver, from: "127.0.0.2").status == 201)
                        #expect(Self.allocatedBytes(in: receiver.directory) <= most)
                    }
                    try await tasks.waitForAll()
                }
                try await eventually {
                    guard let stored = try await receiver.metrics()["postcard_stored_bytes"] else { return false }
                    return Int(stored) <= maximum && Self.allocatedBytes(in: receiver.directory) <= Int(stored)
                }
            }
        }
    }

    @Test func `a form that is repeated under its key is answered while the limit is exceeded`() async throws {
        try await withTemporaryDirectory { directory in
            let received = directory.appending("received")
            let request = Form.request(body: Form.small, fields: ["Idempotency-Key: k"])
            let first = try await withAnswer(of: request, in: received)
            let store = StubbornStore(try LocalUploadStore(directory: received))
            let ids = try await store.identifiers(limit: 10, after: nil)
            store.stubborn.ids.withLock { $0 = Set(ids) }
            for _ in 0..<50 {
                let record = try await store.beginUpload(under: nil, announcedBytes: nil)
                    .commit(fields: [UploadRecord.Field(name: "a", value: "b")], parts: [.field(0)]).record
                store.stubborn.ids.withLock { _ = $0.insert(record.id) }
            }
            try await withReceiver(on: store) {
                $0.retention = RetentionPolicy()
                $0.retention?.maximumBytes = 1000
            } _: { receiver in
                let refused = try await receiver.exchange(Form.request(body: Form.small))
                #expect(refused.status == 503)
                let repeated = try await receiver.exchange(request)
                #expect(repeated.body == first)
            }
        }
    }

    private func withAnswer(of request: String, in directory: FilePath) async throws -> String {
        var answer = ""
        try await withReceiver(in: directory) { receiver in answer = try await receiver.exchange(request).body }
        return answer
    }

    @Test func `what is there at the start counts before the first form, and is refused while it cannot be removed`()
        async throws
    {
        try await withTemporaryDirectory { directory in
            let store = StubbornStore(try LocalUploadStore(directory: directory))
            for _ in 0..<200 {
                let field = UploadRecord.Field(name: "a", value: "b")
                let record = try await store.beginUpload(under: nil, announcedBytes: nil)
                    .commit(fields: [field], parts: [.field(0)]).record
                store.stubborn.ids.withLock { _ = $0.insert(record.id) }
            }
            try await withReceiver(on: store) {
                $0.retention = RetentionPolicy()
                $0.retention?.maximumBytes = 10_000
            } _: { receiver in
                // More than the share of an address.
                let body = Form.fileHeader + String(repeating: "x", count: 1000) + Form.end
                let response = try await receiver.exchange(Form.request(body: body))
                #expect(response.problem?.code == "store-over-limit")
                #expect(try await receiver.metrics()[#"postcard_refusals_total{code="store-over-limit"}"#] == 1)
                #expect(try await store.identifiers(limit: 1000, after: nil).count == 200)
            }
        }
    }

    private static let forms: [(name: String, fields: [String], files: [Int])] = [
        ("empty", [], []), ("one byte", [], [1]), ("an empty file", [], [0]), ("a field", ["x"], []),
        ("control characters, which are longer in the record", [String(repeating: "\u{1}", count: 40_000)], []),
        ("many files", [], Array(repeating: 5000, count: 300)),
    ]

    @Test(arguments: forms.indices)
    func `an upload counts at least what it takes on the disk, also after a restart`(index: Int) async throws {
        let (name, fields, files) = Self.forms[index]
        try await withTemporaryDirectory { directory in
            let store = try LocalUploadStore(directory: directory)
            let upload = try await store.beginUpload(under: UploadKey("key", scope: ""))
            for bytes in files {
                try await upload.beginFile(UploadRecord.FileHeader(name: "f", filename: "f", contentType: "a/b"))
                try await upload.write(ByteBuffer(repeating: 7, count: bytes))
                try await upload.endFile()
            }
            let record = try await upload.commit(
                fields: fields.map { UploadRecord.Field(name: "a", value: $0) },
                parts: fields.indices.map { .field($0) } + files.indices.map { .file($0) }
            ).record
            let counted = record.storedBytes(inBlocksOf: store.blockBytes)
            let allocated = Int64(Self.allocatedBytes(in: directory))
            #expect(counted >= 8192, "\(name)")
            // The offsets of large records are not counted.
            #expect(counted + (index > 3 ? 4096 : 0) >= allocated, "\(name)")
            let listed = try #require(try await store.sizes()?[record.id])
            #expect(listed >= allocated && listed - counted <= 4096, "\(name)")
        }
    }
}
