import Foundation
import Logging
import NIOCore
import PostcardTestSupport
import Testing

@testable import PostcardS3

@Suite(.timeLimit(.minutes(5)), .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing))
struct ObjectStoreTests {
    private func objects(at address: String) async throws -> ObjectStore {
        try ObjectStore(try await ObjectStores.makeBucket(at: address), logger: Logger(label: "test"))
    }

    @Test(arguments: ObjectStores.addresses)
    func `objects are created once, and read in ranges`(address: String) async throws {
        let objects = try await objects(at: address)
        guard case .created = try await objects.create("a", ByteBuffer(string: "0123456789"), metadata: ["m": "x y"])
        else {
            Issue.record("It exists already.")
            return
        }
        guard case .exists = try await objects.create("a", ByteBuffer(string: "other")) else {
            Issue.record("It was created twice.")
            return
        }
        let head = try #require(try await objects.head("a"))
        #expect(head.size == 10)
        #expect(head.metadata == ["m": "x y"])
        #expect(try await objects.get("a", range: 2..<5)?.body == ByteBuffer(string: "234"))
        #expect(try await objects.get("a")?.body == ByteBuffer(string: "0123456789"))
        try await objects.delete("a")
        try await objects.delete("a")
        #expect(try await objects.head("a") == nil)
        #expect(try await objects.get("a") == nil)
    }

    @Test(arguments: ObjectStores.addresses)
    func `listings begin after a key, page by page`(address: String) async throws {
        let objects = try await objects(at: address)
        for name in ["b/3", "b/1", "b/2", "c/1", "a/1"] { try await objects.put(name, ByteBuffer(string: name)) }
        let page = try await objects.list("b/", after: "b/1", limit: 1)
        #expect(page.objects.map(\.key) == ["b/2"])
        #expect(page.isTruncated)
        #expect(page.objects.first.map { abs($0.modified.timeIntervalSince(page.time)) < 60 } == true)
        let rest = try await objects.list("b/", after: "b/15", limit: 10)
        #expect(rest.objects.map(\.key) == ["b/2", "b/3"])
        #expect(!rest.isTruncated)
    }

    @Test(arguments: ObjectStores.addresses)
    func `an object is made of parts, also if it is completed twice`(address: String) async throws {
        let objects = try await objects(at: address)
        let upload = try await objects.beginParts("p", metadata: ["key": "k"])
        let first = ByteBuffer(repeating: 1, count: 5 << 20)
        let tags = [
            try await objects.putPart(1, of: "p", upload, first),
            try await objects.putPart(2, of: "p", upload, ByteBuffer(string: "end")),
        ]
        let size = Int64(5 << 20) + 3
        try await objects.completeParts(of: "p", upload, tags, size: size)
        // As if the first answer had been lost.
        try await objects.completeParts(of: "p", upload, tags, size: size)
        #expect(try await objects.head("p")?.size == size)
        #expect(try await objects.head("p")?.metadata["key"] == "k")
        #expect(try await objects.get("p", range: (size - 4)..<size)?.body == ByteBuffer(bytes: [1] + "end".utf8))
        let left = try await objects.beginParts("q")
        #expect(try await objects.openParts("").parts.map(\.key) == ["q"])
        try await objects.abortParts(of: "q", left)
        #expect(try await objects.openParts("").parts.isEmpty)
    }

    @Test(arguments: ObjectStores.addresses)
    func `a presigned request and a POST policy are accepted`(address: String) async throws {
        let bucket = try await ObjectStores.makeBucket(at: address)
        guard case .fixed(let credentials) = bucket.credentials.kind, let endpoint = bucket.endpoint else { return }
        let signer = RequestSigner(credentials: credentials, region: "us-east-1")
        let objects = try ObjectStore(bucket, logger: Logger(label: "test"))
        try await objects.put("a b", ByteBuffer(string: "text"))
        var request = SignableRequest(
            method: "GET", host: String(endpoint.dropFirst("http://".count)), path: "/\(bucket.name)/some/path/a b")
        signer.presign(&request, lifetime: 60, at: Date())
        let url = "\(endpoint)\(request.encodedPath)?\(request.encodedQuery)"
        #expect(try await Program.run("curl", ["-sS", "--fail", url]).text == "text")

        let policy = PostPolicy(
            expires: Date() + 600, fields: [("key", "some/path/posted"), ("success_action_status", "201")],
            contentLengths: 1...100)
        let fields = try policy.formFields(signedBy: signer, bucket: bucket.name, at: Date())
        let arguments = fields.flatMap { ["-F", "\($0.0)=\($0.1)"] } + ["-F", "file=posted;filename=f"]
        let answer = try await Program.run("curl", ["-sS"] + arguments + ["\(endpoint)/\(bucket.name)"])
        // moto has no body in its answer.
        if ObjectStores.isReal(address) { #expect(answer.text.contains("<Key>"), "\(answer.text)") }
        #expect(try await objects.get("posted")?.body == ByteBuffer(string: "posted"))
    }
}
