import Foundation
import Logging
import NIOCore
import NIOPosix
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardS3

/// Credentials that are replaced while a receiver runs.
@Suite(.timeLimit(.minutes(10)))
struct RenewedCredentialsTests {
    private static func write(_ key: String, _ secret: String, to path: String) {
        let text = "[default]\naws_access_key_id = \(key)\naws_secret_access_key = \(secret)\n"
        try? Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
    }

    private static func environment(_ path: String) -> [String: String] {
        [
            "HOME": "/nonexistent", "AWS_EC2_METADATA_DISABLED": "true", "AWS_SHARED_CREDENTIALS_FILE": path,
            "AWS_CONFIG_FILE": "/nonexistent",
        ]
    }

    @Test func `credentials of a file are read again once they were refused`() async throws {
        let folder = try TemporaryFolder()
        let path = try folder.file("credentials", Data()).path
        Self.write("A", "a", to: path)
        let current = CurrentCredentials(.automatic(environment: Self.environment(path))) { _ in [] }
        let first = try await current.value()
        Self.write("B", "b", to: path)
        #expect(try await current.value() == first)
        let second = await current.value(insteadOf: first)
        #expect(second?.accessKeyID == "B")
        #expect(try await current.value() == second)
        // A request that was refused with the first ones meanwhile.
        #expect(await current.value(insteadOf: first) == second)
        let unchanged = try #require(second)
        #expect(await current.value(insteadOf: unchanged) == nil)
        _ = try folder.file("credentials", Data())
        #expect(await current.value(insteadOf: unchanged) == nil)
        #expect(try await current.value() == second)
    }

    /// Begins each response, and sends no more of it.
    private final class Stalling: ChannelInboundHandler {
        typealias InboundIn = ByteBuffer
        typealias OutboundOut = ByteBuffer

        func channelRead(context: ChannelHandlerContext, data: NIOAny) {
            let head = ByteBuffer(string: "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
            context.writeAndFlush(wrapOutboundOut(head), promise: nil)
        }
    }

    @Test func `credentials whose response stalls are not waited for`() async throws {
        let server = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelInitializer { channel in
                channel.eventLoop.makeCompletedFuture { try channel.pipeline.syncOperations.addHandler(Stalling()) }
            }
            .bind(host: "127.0.0.1", port: 0).get()
        var environment = Self.environment("/nonexistent")
        environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"] = "http://127.0.0.1:\(server.localAddress?.port ?? 0)/"
        var bucket = try S3Bucket("s3://bucket")
        bucket.endpoint = "http://127.0.0.1:1"
        bucket.credentials = .automatic(environment: environment)
        bucket.retryTimeout = .zero
        let objects = try ObjectStore(bucket, logger: Logger(label: "test"))
        let error = await #expect(throws: S3Error.self) { try await objects.list("") }
        #expect(error?.message.contains("does not answer") == true, "\(String(describing: error))")
        try await server.close()
    }

    @Test(
        .enabled(if: !ObjectStores.addresses.isEmpty, ObjectStores.isMissing), arguments: ObjectStores.addresses,
        ["GET", "HEAD"])
    func `a request that is refused for old credentials is made again with new ones`(
        address: String, method: String
    ) async throws {
        var bucket = try await ObjectStores.makeBucket(at: address)
        guard case .fixed(let credentials) = bucket.credentials.kind else { return }
        let folder = try TemporaryFolder()
        let path = try folder.file("credentials", Data()).path
        Self.write("OLD", "old", to: path)
        bucket.credentials = .automatic(environment: Self.environment(path))
        let server = try #require(bucket.endpoint.flatMap { URL(string: $0) })
        let refused = Fault.Response(
            400,
            body: method == "HEAD" ? "" : "<Error><Code>ExpiredToken</Code><Message>It has ended.</Message></Error>")
        try await FaultProxy.run(before: server) { request in
            guard request.number == 0 else { return .none }
            Self.write(credentials.accessKeyID, credentials.secretAccessKey, to: path)
            return .response(refused)
        } while: { [bucket] proxy in
            var bucket = bucket
            bucket.endpoint = "http://127.0.0.1:\(proxy.port)"
            let objects = try ObjectStore(bucket, logger: Logger(label: "test"))
            if method == "HEAD" {
                #expect(try await objects.head("missing") == nil)
            } else {
                #expect(try await objects.list("").objects.isEmpty)
            }
            #expect(proxy.seen.count == 2)
        }
    }
}
