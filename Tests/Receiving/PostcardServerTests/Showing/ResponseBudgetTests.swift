import Foundation
import Hummingbird
import NIOCore
import NIOPosix
import PostcardReceiver
import PostcardReceivingSupport
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardReception
@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct ResponseBudgetTests {
    /// Records the sizes of what is written, and blocks until its gate opens.
    private final class GatedWriter: ResponseBodyWriter, Sendable {
        let written = Mutex<[Int]>([])
        private let gate: AsyncStream<Void>?

        init(gate: AsyncStream<Void>? = nil) {
            self.gate = gate
        }

        func write(_ buffer: ByteBuffer) async throws {
            written.withLock { $0.append(buffer.readableBytes) }
            if let gate { for await _ in gate {} }
        }

        func finish(_ trailingHeaders: HTTPFields?) async throws {}
    }

    private static func budget(_ bytes: Int, clientShare: Double = 1) -> ResponseBudget {
        var options = UploadOptions()
        options.maximumHeldResponseBytes = bytes
        options.clientShare = clientShare
        return ResponseBudget(ShareAccount(ShareLimits(options, connections: 100)))
    }

    private static func send(
        _ count: Int, within budget: ResponseBudget, to gated: GatedWriter,
        priority: FormResponse.Priority = .ordinary, on connection: UploadConnection? = nil
    ) async throws {
        let content = BytesInMemory(bytes: ByteBuffer(repeating: 7, count: count))
        var writer: any ResponseBodyWriter = gated
        try await budget.send(content, 0..<Int64(count), to: &writer, priority: priority, on: connection)
    }

    private static func listeningChannel() async throws -> any Channel {
        try await ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).bind(host: "127.0.0.1", port: 0).get()
    }

    /// A connection from the address of one of the test peers.
    private static func connection(from number: Int, on channel: any Channel) throws -> UploadConnection {
        let address = try #require(IPAddress(SocketAddress(ipAddress: "192.0.2.\(number)", port: 1)))
        return UploadConnection(channel: channel, client: RequestClient(from: .address(address)))
    }

    @Test(arguments: [1, 4096, 100_000, 16 << 20])
    func `a file is sent in pieces that fit the budget, and all room is released`(bytes: Int) async throws {
        let budget = Self.budget(bytes)
        let writer = GatedWriter()
        let count = bytes == 1 ? 1000 : 1_000_000
        try await Self.send(count, within: budget, to: writer)
        let pieces = writer.written.withLock { $0 }
        #expect(pieces.reduce(0, +) == count)
        #expect(pieces.allSatisfy { $0 <= min(bytes, 64 << 10) })
        #expect(budget.shares.free(of: .responseBytes) == bytes)
    }

    @Test func `a response without room waits, and stops waiting when it is cancelled`() async throws {
        let budget = Self.budget(4096)
        var holding: ShareAccount.Hold? = try budget.shares.take(4096, of: .responseBytes, for: nil)
        #expect(holding != nil)
        let cancelled = Task { try await Self.send(4096, within: budget, to: GatedWriter()) }
        try await eventually { budget.shares.waitingCount(for: .responseBytes) == 1 }
        let next = GatedWriter()
        let waiting = Task { try await Self.send(10_000, within: budget, to: next) }
        try await eventually { budget.shares.waitingCount(for: .responseBytes) == 2 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(budget.shares.waitingCount(for: .responseBytes) == 1)
        holding = nil
        try await waiting.value
        #expect(next.written.withLock { $0.reduce(0, +) } == 10_000)
        #expect(budget.shares.free(of: .responseBytes) == 4096)
    }

    @Test func `unread responses of one address leave room for another, and for the response to a form`() async throws {
        let budget = Self.budget(64 << 10, clientShare: 0.25)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let channel = try await Self.listeningChannel()
        let connection = try Self.connection(from: 0, on: channel)
        let holding = (0..<20).map { _ in
            Task { try await Self.send(4096, within: budget, to: GatedWriter(gate: gate), on: connection) }
        }
        try await eventually { budget.shares.waitingCount(for: .responseBytes) > 0 }
        #expect(budget.shares.free(of: .responseBytes) > 32 << 10)
        try await Self.send(100_000, within: budget, to: GatedWriter(), on: Self.connection(from: 1, on: channel))
        let form = GatedWriter()
        try await Self.send(10_000, within: budget, to: form, priority: .immediate, on: connection)
        #expect(form.written.withLock { $0 } == [4096, 4096, 1808])
        let problem = #expect(throws: UploadProblem.self) {
            try budget.shares.take(5000, of: .responseBytes, for: TestPeers.all[0])
        }
        #expect(problem?.status == .tooManyRequests)
        #expect(problem?.code == "too-many-answers-of-client")
        #expect(problem?.limit?.name == "maximumHeldResponseBytesOfClient")
        open.finish()
        for task in holding { try await task.value }
        #expect(budget.shares.free(of: .responseBytes) == 64 << 10)
        try await channel.close().get()
    }

    /// A channel that counts how often its close future is used.
    private final class CountingChannel: Channel {
        private let base: any Channel
        let callbacks = Mutex(0)

        init(_ base: any Channel) {
            self.base = base
        }

        var closeFuture: EventLoopFuture<Void> {
            callbacks.withLock { $0 += 1 }
            return base.closeFuture
        }

        var allocator: ByteBufferAllocator { base.allocator }
        var pipeline: ChannelPipeline { base.pipeline }
        var localAddress: SocketAddress? { base.localAddress }
        var remoteAddress: SocketAddress? { base.remoteAddress }
        var parent: (any Channel)? { base.parent }
        var isWritable: Bool { base.isWritable }
        var isActive: Bool { base.isActive }
        var eventLoop: any EventLoop { base.eventLoop }
        var _channelCore: any ChannelCore { base._channelCore }

        func setOption<Option: ChannelOption>(_ option: Option, value: Option.Value) -> EventLoopFuture<Void> {
            base.setOption(option, value: value)
        }

        func getOption<Option: ChannelOption>(_ option: Option) -> EventLoopFuture<Option.Value> {
            base.getOption(option)
        }
    }

    @Test func `a connection is observed once for all its waiting responses, and its end ends their wait`()
        async throws
    {
        let listening = try await Self.listeningChannel()
        let channel = CountingChannel(listening)
        let budget = Self.budget(4096)
        func withFullBudget(_ body: (Task<Void, any Error>) async throws -> Void) async throws {
            var holding: ShareAccount.Hold? = try budget.shares.take(4096, of: .responseBytes, for: nil)
            #expect(holding != nil)
            let waiting = Task {
                try await Self.send(
                    4096, within: budget, to: GatedWriter(), on: UploadConnection(channel: channel))
            }
            try await eventually { budget.shares.waitingCount(for: .responseBytes) == 1 }
            try await body(waiting)
            holding = nil
            _ = await waiting.result
        }
        for _ in 0..<20 { try await withFullBudget { _ in } }
        #expect(channel.callbacks.withLock { $0 } == 1)
        try await withFullBudget { waiting in
            try await listening.close().get()
            await #expect(throws: CancellationError.self) { try await waiting.value }
        }
        #expect(budget.shares.free(of: .responseBytes) == 4096)
    }

    @Test func `a response in memory is refused if there is no room, and takes room until it is dropped`() throws {
        let budget = Self.budget(10_000)
        do {
            let body = try budget.body(of: ByteBuffer(repeating: 7, count: 6000), on: nil)
            #expect(budget.shares.free(of: .responseBytes) == 4000)
            let problem = #expect(throws: UploadProblem.self) {
                try budget.body(of: ByteBuffer(repeating: 7, count: 6000), on: nil)
            }
            #expect(problem?.code == "too-many-answers")
            #expect(body.contentLength == 6000)
        }
        #expect(budget.shares.free(of: .responseBytes) == 10_000)
    }

    /// Uploads a file, and returns its path.
    private static func stored(_ count: Int, at receiver: RunningReceiver) async throws -> String {
        let body = Form.fileHeader + String(repeating: "x", count: count) + Form.end
        let response = try await receiver.exchange(Form.request(body: body))
        return try UploadRecord(json: Data(response.body.utf8)).files[0].url
    }

    /// Opens connections that request a file and read only the head of the response.
    private static func stalled(
        _ count: Int, asking path: String, of receiver: RunningReceiver
    ) async throws -> [RawSocket] {
        try await onThread { [port = receiver.port] in
            let sockets = try (0..<count).map { _ in
                let socket = try RawSocket(port: port, receiveBufferBytes: 4096)
                try socket.send("GET \(path) HTTP/1.1\r\nHost: a\r\n\r\n")
                return socket
            }
            for socket in sockets { _ = try socket.receive(until: "\r\n\r\n") }
            return sockets
        }
    }

    @Test(.enabled(if: RawSocket.canConnect(from: "127.0.0.2"), "This machine has no second address."))
    func `the unread downloads of one address delay neither another address nor the response to a form`()
        async throws
    {
        try await withReceiver {
            // Without shares, sixteen pieces would use all of it, and none would be released before the test is over.
            $0.uploads.maximumHeldResponseBytes = 64 << 10
            $0.connections.idleTimeout = .seconds(600)
        } _: { receiver in
            let url = try await Self.stored(1_000_000, at: receiver)
            let stalled = try await Self.stalled(20, asking: Self.stored(8_000_000, at: receiver), of: receiver)
            let honest = try await receiver.curl("--interface", "127.0.0.2", receiver.url + url)
            #expect(honest.output.count == 1_000_000, "\(honest.messages)")
            // The record is too large to be sent without reading it from the store.
            let text = String(repeating: "y", count: 100_000)
            let form = Form.part("Content-Disposition: form-data; name=\"a\"", text)
            let stored = try await receiver.exchange(Form.request(body: form))
            #expect(stored.status == 201)
            #expect(try UploadRecord(json: Data(stored.body.utf8)).fields.map(\.value) == [text])
            #expect(stalled.count == 20)
        }
    }

    @Test func `unread downloads release their room when they are cut off`() async throws {
        try await withReceiver {
            $0.uploads.maximumHeldResponseBytes = 8 << 10
            $0.uploads.clientShare = 1
            $0.connections.idleTimeout = .seconds(5)
        } _: { receiver in
            let stalled = try await Self.stalled(4, asking: Self.stored(8_000_000, at: receiver), of: receiver)
            let honest = try await receiver.curl(receiver.url + Self.stored(100_000, at: receiver))
            #expect(honest.output.count == 100_000, "\(honest.messages)")
            #expect(stalled.count == 4)
        }
    }

    @Test func `a client that reads slowly from large socket buffers receives the whole file`() async throws {
        try await withReceiver {
            $0.connections.idleTimeout = .seconds(6)
        } _: { receiver in
            let count = 24_000_000
            let url = try await Self.stored(count, at: receiver)
            let port = receiver.port
            let received = try await onThread {
                let socket = try RawSocket(port: port, receiveBufferBytes: 32 << 10)
                try socket.send("GET \(url) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                var received = 0
                // 30 kB per second for four times the idle timeout. A piece of the file takes longer than that timeout.
                for _ in 0..<240 {
                    received += try socket.receive(upTo: 3000).count
                    RawSocket.pause(milliseconds: 100)
                }
                return try received + socket.receiveAll().count
            }
            #expect(received > count)
        }
    }
}
