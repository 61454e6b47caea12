import AsyncHTTPClient
import NIOCore
import PostcardClient
import Synchronization
import Testing

@testable import PostcardAsyncHTTP

@Suite struct BodyChunksTests {
    /// Keeps every step that was reported.
    private final class Journal: Sendable {
        private let entries = Mutex<[BodyProgress]>([])

        var all: [Int64] { entries.withLock { $0.map(\.bytesSent) } }

        /// Of each step, whether it said that it was the last.
        var ends: [Bool] { entries.withLock { $0.map(\.isWhole) } }

        func note(_ event: TransportEvent) {
            if case .sent(let body) = event { entries.withLock { $0.append(body) } }
        }
    }

    private static let chunk = 64 << 10

    /// A body of one block that is three chunks and a byte long.
    private static func put(into blocks: BodyBlocks, isLast: Bool) async -> Bool {
        let bytes = ByteBuffer(repeating: 7, count: 3 * chunk + 1)
        let end = BodyProgress(bytesSent: Int64(bytes.readableBytes), contentRanges: [])
        return await blocks.put(BodyBlock(bytes: bytes, end: end, isLast: isLast))
    }

    @Test func `a body is whole when its last chunk is handed out, not when its last block is taken`() async throws {
        let (blocks, end, journal) = (BodyBlocks(), BodyEnd(), Journal())
        async let isWanted = Self.put(into: blocks, isLast: true)
        let chunks = BodyChunks(
            blocks: blocks, loops: HTTPClient.defaultEventLoopGroup, end: end, report: journal.note)
        var iterator = chunks.makeAsyncIterator()
        for _ in 0..<3 {
            #expect(try await iterator.next()?.readableBytes == Self.chunk)
            #expect(end.take() == nil)
        }
        #expect(try await iterator.next()?.readableBytes == 1)
        #expect(await isWanted)
        #expect(end.take()?.bytesSent == Int64(3 * Self.chunk + 1))
        #expect(try await iterator.next() == nil)
        #expect(journal.all == [0, 1, 2, 3].map { Int64($0 * Self.chunk) })
    }

    @Test(arguments: [true, false])
    func `the chunks tell of every step when the next is asked for`(isLast: Bool) async throws {
        let (blocks, end, journal) = (BodyBlocks(), BodyEnd(), Journal())
        async let isWanted = Self.put(into: blocks, isLast: isLast)
        let chunks = BodyChunks(
            blocks: blocks, loops: HTTPClient.defaultEventLoopGroup, end: end, report: journal.note)
        var iterator = chunks.makeAsyncIterator()
        for _ in 0..<4 { #expect(try await iterator.next() != nil) }
        #expect(await isWanted)
        blocks.finish(.success(()))
        #expect(try await iterator.next() == nil)
        // Of a block that turns out to be the last only afterwards, that is told as a step of its own.
        let whole = Int64(3 * Self.chunk + 1)
        #expect(journal.all == [0, 1, 2, 3].map { Int64($0 * Self.chunk) } + (isLast ? [whole] : [whole, whole]))
        #expect(journal.ends == Array(repeating: false, count: isLast ? 4 : 5) + [true])
        #expect(end.take() == nil)
    }
}
