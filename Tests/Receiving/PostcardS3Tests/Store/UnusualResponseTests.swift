import HTTPTypes
import Foundation
import Logging
import NIOCore
import NIOHTTP1
import PostcardForm
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// A store whose responses a test makes up.
@Suite(.timeLimit(.minutes(5)))
struct UnusualResponseTests {
    /// The requests that were made.
    private final class Seen: Sendable {
        private let list = Mutex<[String]>([])

        var requests: [String] { list.withLock { $0 } }

        func add(_ request: S3Request) {
            let query = request.query.map { "?\($0.name)" }.joined()
            list.withLock { $0.append("\(request.method.rawValue) \(request.key)\(query)") }
        }
    }

    private static func response(
        _ status: HTTPResponse.Status, _ body: String = "", _ headers: HTTPHeaders = [:]
    ) -> S3Response {
        var headers = headers
        headers.add(name: "date", value: "Mon, 05 Oct 2026 10:20:30 GMT")
        return S3Response(status: status, headers: headers, body: ByteBuffer(string: body))
    }

    /// - Parameter partBytes: The size of a part.
    private static func store(
        partBytes: Int = 8 << 20, _ respond: @escaping @Sendable (S3Request) throws -> S3Response
    ) throws -> (ObjectStore, Seen) {
        let seen = Seen()
        var bucket = try S3Bucket("s3://bucket")
        bucket.endpoint = "http://127.0.0.1:1"
        bucket.region = "us-east-1"
        bucket.credentials = .fixed(S3Credentials(accessKeyID: "key", secretAccessKey: "secret"))
        bucket.retryTimeout = .zero
        bucket.surroundings = Surroundings(
            exchange: { request, _, _ in
                try Task.checkCancellation()
                seen.add(request)
                return try respond(request)
            }, partBytes: partBytes, freeBytes: partBytes / 2)
        return (try ObjectStore(bucket, logger: Logger(label: "test")), seen)
    }

    @Test func `a listing without entries that says there are more is not taken for the end`() async throws {
        let entry =
            "<Contents><Key>files/a</Key><Size>1</Size><LastModified>2026-10-05T10:20:30.000Z</LastModified></Contents>"
        let (objects, _) = try Self.store { request in
            let isFirst = !request.query.contains { $0.name == "start-after" }
            return Self.response(
                200,
                "<ListBucketResult>\(isFirst ? entry : "")<IsTruncated>true</IsTruncated></ListBucketResult>")
        }
        let error = await #expect(throws: S3Error.self) { try await objects.listAll("files/") { _ in } }
        #expect(error?.code == .unexpectedResponse)
    }

    @Test func `an object whose size a HEAD does not say is not taken for an empty one`() async throws {
        let (objects, _) = try Self.store { _ in Self.response(200) }
        let error = await #expect(throws: S3Error.self) { try await objects.head("records/a") }
        #expect(error?.code == .unexpectedResponse)
        let (empty, _) = try Self.store { _ in Self.response(200, "", ["content-length": "0"]) }
        #expect(try await empty.head("records/a")?.size == 0)
    }

    @Test func `the parts of a cancelled upload are removed in a task that is cancelled`() async throws {
        let (objects, seen) = try Self.store(partBytes: 100) { request in
            switch request.method {
            case .POST: Self.response(200, "<R><UploadId>u</UploadId></R>")
            case .PUT: Self.response(200, "", ["etag": "\"a\""])
            default: Self.response(204)
            }
        }
        let (written, write) = AsyncStream.makeStream(of: Void.self)
        let upload = Task {
            let budget = MemoryBudget(blocks: 3, surroundings: objects.surroundings)
            let writer = ObjectWriter(objects, "file", metadata: [:], budget)
            try await writer.write(ByteBuffer(repeating: 1, count: 250))
            write.finish()
            try? await Task.sleep(for: .seconds(600))
            await writer.cancel()
        }
        for await _ in written {}
        upload.cancel()
        try await upload.value
        #expect(seen.requests.last == "DELETE file?uploadId")
    }

    @Test func `objects are removed until the store does not answer`() async throws {
        let (objects, seen) = try Self.store { _ in
            throw S3Error.unreachable("http://127.0.0.1:1", CancellationError())
        }
        await #expect(throws: S3Error.self) { try await objects.delete((1...50).map { "\($0)" }) }
        #expect((1...16).contains(seen.requests.count))
    }
}
