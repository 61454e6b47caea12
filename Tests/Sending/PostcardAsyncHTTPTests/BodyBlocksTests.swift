import NIOCore
import Testing

@testable import PostcardAsyncHTTP

@Suite(.timeLimit(.minutes(10))) struct BodyBlocksTests {
    private struct Broken: Error {}

    private func block(_ text: String, isLast: Bool = false) -> BodyBlock {
        BodyBlock(bytes: ByteBuffer(string: text), end: Int64(text.utf8.count), isLast: isLast)
    }

    private func text(_ next: BodyBlocks.Next) -> String? {
        if case .block(let block) = next { String(buffer: block.bytes) } else { nil }
    }

    /// Takes the next thing there is, once it is there.
    private func take(_ blocks: BodyBlocks) async -> BodyBlocks.Next {
        while true {
            let (calls, call) = AsyncStream<Void>.makeStream()
            let next = blocks.take { call.finish() }
            guard case .later = next else { return next }
            for await _ in calls {}
        }
    }

    @Test func `blocks are taken in the order in which they were added, then the end`() async throws {
        let blocks = BodyBlocks(block("a"))
        async let reader = {
            guard await blocks.waitUntilTaken() else { return false }
            for text in ["b", "c"] {
                guard await blocks.put(block(text)) else { return false }
            }
            blocks.finish(.success(()))
            return true
        }()
        for expected in ["a", "b", "c"] { #expect(text(await take(blocks)) == expected) }
        guard case .end = await take(blocks) else { throw Broken() }
        #expect(await reader)
        guard case .end = await take(blocks) else { throw Broken() }
    }

    @Test func `once the last block is taken the body is over, and stays so`() async throws {
        let blocks = BodyBlocks()
        async let isNeeded = blocks.put(block("abc", isLast: true))
        #expect(text(await take(blocks)) == "abc")
        #expect(await isNeeded)
        blocks.close()
        guard case .end = await take(blocks) else { throw Broken() }
    }

    @Test func `a failure breaks the body, and is kept`() async throws {
        let blocks = BodyBlocks()
        #expect(blocks.failure == nil)
        blocks.finish(.failure(Broken()))
        #expect(blocks.failure is Broken)
        guard case .broken = await take(blocks) else { throw Broken() }
        #expect(await blocks.put(block("late")) == false)
    }

    @Test func `a wait for a block ends with a failure, an end and a closing`() async throws {
        for way in 0..<3 {
            let blocks = BodyBlocks()
            let (calls, call) = AsyncStream<Void>.makeStream()
            guard case .later = blocks.take(orCall: { call.finish() }) else { throw Broken() }
            switch way {
            case 0: blocks.finish(.failure(Broken()))
            case 1: blocks.finish(.success(()))
            default: blocks.close()
            }
            for await _ in calls {}
            switch await take(blocks) {
            case .end: #expect(way == 1)
            case .broken: #expect(way != 1)
            case .block, .later: Issue.record("Nothing was put in, and way \(way) ended it.")
            }
        }
    }

    @Test func `closing ends the wait of the reader and refuses later blocks`() async throws {
        let blocks = BodyBlocks(block("a"))
        async let isNeeded = blocks.waitUntilTaken()
        blocks.close()
        #expect(await isNeeded == false)
        #expect(await blocks.put(block("b")) == false)
        guard case .broken = await take(blocks) else { throw Broken() }
    }

    @Test func `cancelling the reader ends its wait`() async throws {
        let blocks = BodyBlocks()
        let reader = Task { await blocks.put(block("a")) }
        reader.cancel()
        #expect(await reader.value == false)
    }
}
