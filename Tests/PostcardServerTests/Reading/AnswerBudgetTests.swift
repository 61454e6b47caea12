import Foundation
import Hummingbird
import NIOCore
import PostcardReceiver
import PostcardTestSupport
import Synchronization
import Testing

@testable import PostcardServer

@Suite(.timeLimit(.minutes(10)))
struct AnswerBudgetTests {
    /// Keeps what is written, once it is let through.
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

    private static func send(_ count: Int, within budget: AnswerBudget, to gated: GatedWriter) async throws {
        let content = BytesInMemory(bytes: ByteBuffer(repeating: 7, count: count))
        var writer: any ResponseBodyWriter = gated
        try await budget.send(content, 0..<Int64(count), to: &writer)
    }

    @Test(arguments: [1, 4096, 100_000, 16 << 20])
    func `a file goes in pieces that the budget has room for, and all room is given back`(bytes: Int) async throws {
        let budget = AnswerBudget(bytes: bytes)
        let writer = GatedWriter()
        let count = bytes == 1 ? 1000 : 1_000_000
        try await Self.send(count, within: budget, to: writer)
        let pieces = writer.written.withLock { $0 }
        #expect(pieces.reduce(0, +) == count)
        #expect(pieces.allSatisfy { $0 <= min(bytes, 64 << 10) })
        #expect(budget.freeBytes == bytes)
    }

    @Test func `who finds no room waits in line, and leaves it when cancelled`() async throws {
        let budget = AnswerBudget(bytes: 4096)
        let (gate, open) = AsyncStream.makeStream(of: Void.self)
        let holding = Task { try await Self.send(4096, within: budget, to: GatedWriter(gate: gate)) }
        try await eventually { budget.freeBytes == 0 }
        let cancelled = Task { try await Self.send(4096, within: budget, to: GatedWriter()) }
        try await eventually { budget.waitingCount == 1 }
        let next = GatedWriter()
        let waiting = Task { try await Self.send(10_000, within: budget, to: next) }
        try await eventually { budget.waitingCount == 2 }
        cancelled.cancel()
        await #expect(throws: CancellationError.self) { try await cancelled.value }
        #expect(budget.waitingCount == 1)
        open.finish()
        try await holding.value
        try await waiting.value
        #expect(next.written.withLock { $0.reduce(0, +) } == 10_000)
        #expect(budget.freeBytes == 4096)
    }

    @Test func `an answer made in memory is refused where there is no room, and takes room until it is dropped`() throws
    {
        let budget = AnswerBudget(bytes: 10_000)
        do {
            let body = try budget.body(of: ByteBuffer(repeating: 7, count: 6000))
            #expect(budget.freeBytes == 4000)
            let problem = #expect(throws: UploadProblem.self) {
                try budget.body(of: ByteBuffer(repeating: 7, count: 6000))
            }
            #expect(problem?.code == "too-many-answers")
            #expect(body.contentLength == 6000)
        }
        #expect(budget.freeBytes == 10_000)
    }

    @Test func `downloads that nobody reads give their room to others when they are cut off`() async throws {
        try await withReceiver {
            $0.uploads.maximumAnswerBytes = 8 << 10
            $0.connections.idleTimeout = .seconds(5)
        } _: { receiver in
            let body = Form.fileHeader + String(repeating: "x", count: 24_000_000) + Form.end
            let answer = try await receiver.exchange(Form.request(body: body))
            let url = try UploadRecord(json: Data(answer.body.utf8)).files[0].url
            var stalled: [RawSocket] = []
            for _ in 0..<4 {
                let socket = try RawSocket(port: receiver.port, receiveBufferBytes: 4096)
                try socket.send("GET \(url) HTTP/1.1\r\nHost: a\r\n\r\n")
                stalled.append(socket)
            }
            for socket in stalled { _ = try socket.receive(until: "\r\n\r\n") }
            let honest = try await receiver.curl("--max-time", "120", receiver.url + url)
            #expect(honest.output.count == 24_000_000)
            #expect(stalled.count == 4)
        }
    }

    @Test func `a reader slower than the sockets' buffers are large reads the whole file`() async throws {
        try await withReceiver {
            $0.connections.idleTimeout = .seconds(6)
        } _: { receiver in
            let count = 24_000_000
            let body = Form.fileHeader + String(repeating: "x", count: count) + Form.end
            let answer = try await receiver.exchange(Form.request(body: body))
            let url = try UploadRecord(json: Data(answer.body.utf8)).files[0].url
            let port = receiver.port
            let received = try await onThread {
                let socket = try RawSocket(port: port, receiveBufferBytes: 32 << 10)
                try socket.send("GET \(url) HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n")
                var received = 0
                // 30 kB a second for four times the idle time; a piece of the file takes longer than that time.
                for _ in 0..<240 {
                    received += try socket.receive(upTo: 3000).count
                    socket.pause(milliseconds: 100)
                }
                return try received + socket.receiveAll().count
            }
            #expect(received > count)
        }
    }
}
