package import Foundation
import NIOCore
import NIOHTTP1
import NIOPosix
import Synchronization
package import Testing

/// A proxy in front of a server that does to each request what a test says.
///
/// ```swift
/// try await FaultProxy.run([.reset(atByte: 1_000)], before: server.url) { proxy in
///     try await client.upload(form, to: proxy.uploads)
/// }
/// ```
package struct FaultProxy: Sendable {
    /// Where it listens.
    package let url: URL

    private let requests = ProxyRequests()
    let server: URL
    let plan: @Sendable (ProxyRequest) -> Fault
    /// Ends when the work is done: held connections then continue.
    let end: ProxyEnd

    /// The requests whose heads have come, in that order.
    package var seen: [ProxyRequest] { requests.all }

    /// How many bytes clients have put on the wire: heads too, and also what the proxy had not read when it closed a
    /// connection. On other systems than Linux those of bodies that it has read.
    package var receivedBytes: Int {
        #if os(Linux)
        requests.receivedBytes
        #else
        requests.bodyBytes
        #endif
    }

    /// How much each socket of the proxy holds back, in bytes: little, as of a network in which a packet stays for
    /// milliseconds.
    static let bufferBytes: ChannelOptions.Types.SocketOption.Value = 32 << 10

    /// Returns when this many bytes of bodies have arrived, or when the task is cancelled.
    package func waitForBody(of bytes: Int) async {
        for await count in requests.bodyCounts() where count >= bytes { return }
    }

    /// Looks for what an upload has left open.
    ///
    /// - Parameter folder: The folder of the form's files.
    package func expectNothingOpen(
        in folder: TemporaryFolder, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        #if os(Linux)
        #expect(try OpenDescriptors.sockets(connectedTo: port) == 0, sourceLocation: sourceLocation)
        #expect(try OpenDescriptors.files(in: folder.url) == 0, sourceLocation: sourceLocation)
        #endif
    }

    /// Where forms are posted.
    package var uploads: URL { url.appending(path: "uploads") }

    /// The port that it listens on.
    package var port: Int { url.port ?? 0 }

    /// Runs a proxy that does one thing after another, and from then on lets everything pass.
    package static func run<Result: Sendable>(
        _ faults: [Fault], before server: URL,
        while work: @escaping @Sendable (FaultProxy) async throws -> Result
    ) async throws -> Result {
        try await run(before: server) { request in
            request.number < faults.count ? faults[request.number] : .none
        } while: {
            try await work($0)
        }
    }

    /// Runs a proxy while something is done with it, and returns when every client has closed its connections.
    ///
    /// - Parameters:
    ///   - server: Where requests go.
    ///   - plan: What befalls a request.
    ///   - work: What is done with the proxy.
    package static func run<Result: Sendable>(
        before server: URL, _ plan: @escaping @Sendable (ProxyRequest) -> Fault,
        while work: @escaping @Sendable (FaultProxy) async throws -> Result
    ) async throws -> Result {
        let listener = try await ServerBootstrap(group: .singletonMultiThreadedEventLoopGroup)
            .childChannelOption(.allowRemoteHalfClosure, value: true)
            .childChannelOption(.autoRead, value: false)
            .childChannelOption(.socketOption(.so_rcvbuf), value: bufferBytes)
            .childChannelOption(.maxMessagesPerRead, value: 1)
            .childChannelOption(
                .recvAllocator, value: FixedSizeRecvByteBufferAllocator(capacity: Int(bufferBytes) / 4)
            )
            .bind(host: "127.0.0.1", port: 0) { ConnectionHold.add(to: $0) }
        guard let port = listener.channel.localAddress?.port, let url = URL(string: "http://127.0.0.1:\(port)") else {
            throw ProgramFailure("The proxy has no port.")
        }
        let proxy = FaultProxy(url: url, server: server, plan: plan, end: ProxyEnd())
        return try await listener.executeThenClose { connections in
            async let serving: Void = proxy.serve(connections)
            let result: Swift.Result<Result, any Error>
            do {
                result = .success(try await work(proxy))
            } catch {
                result = .failure(error)
            }
            proxy.end.come()
            try? await listener.channel.close()
            try await serving
            return try result.get()
        }
    }

    private func serve(_ connections: NIOAsyncChannelInboundStream<any Channel>) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            for try await channel in connections {
                // That a connection breaks is what the proxy is for.
                group.addTask { try? await ProxyConnection(self, requests).serve(channel) }
            }
        }
    }

    private init(url: URL, server: URL, plan: @escaping @Sendable (ProxyRequest) -> Fault, end: ProxyEnd) {
        self.url = url
        self.server = server
        self.plan = plan
        self.end = end
    }
}

/// A request as the proxy saw it.
package struct ProxyRequest: Sendable {
    /// Which it was, from 0.
    package let number: Int
    package let method: String
    package let path: String
    private let headers: HTTPHeaders

    init(_ head: HTTPRequestHead, number: Int) {
        self.number = number
        method = head.method.rawValue
        path = head.uri
        headers = head.headers
    }

    /// The first value of a header field.
    package subscript(name: String) -> String? { headers.first(name: name) }
}

/// The requests that a proxy has seen.
final class ProxyRequests: Sendable {
    private let requests = Mutex<[ProxyRequest]>([])
    private let body = Mutex((bytes: 0, watchers: [AsyncStream<Int>.Continuation]()))
    private let received = Mutex(0)

    var bodyBytes: Int { body.withLock { $0.bytes } }

    /// How many bytes of bodies have come, now and whenever there are more.
    func bodyCounts() -> AsyncStream<Int> {
        let (counts, watcher) = AsyncStream.makeStream(of: Int.self, bufferingPolicy: .bufferingNewest(1))
        body.withLock { body in
            watcher.yield(body.bytes)
            body.watchers.append(watcher)
        }
        return counts
    }

    func countBody(_ count: Int) {
        body.withLock { body in
            body.bytes += count
            for watcher in body.watchers { watcher.yield(body.bytes) }
        }
    }

    var receivedBytes: Int { received.withLock { $0 } }

    func countReceived(_ count: Int) {
        received.withLock { $0 += count }
    }

    var all: [ProxyRequest] { requests.withLock { $0 } }

    func add(_ head: HTTPRequestHead) -> ProxyRequest {
        requests.withLock { requests in
            let request = ProxyRequest(head, number: requests.count)
            requests.append(request)
            return request
        }
    }
}

/// An event that happens once, for any number of waiting tasks.
final class ProxyEnd: Sendable {
    private let promise = MultiThreadedEventLoopGroup.singleton.any().makePromise(of: Void.self)

    func come() {
        promise.succeed()
    }

    func wait() async {
        try? await promise.futureResult.get()
    }
}
