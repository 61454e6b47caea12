import NIOCore
import Testing

@testable import PostcardAsyncHTTP

@Suite struct BodyBlocksTests {
    private struct Broken: Error {}

    private func block(_ text: String) -> BodyBlock {
        BodyBlock(bytes: ByteBuffer(string: text), contentRanges: [])
    }

    @Test func `blocks come out in the order in which they went in, then the end`() async throws {
        let blocks = BodyBlocks()
        async let isFirstWanted = blocks.put(block("a"))
        #expect(try await blocks.take()?.bytes == ByteBuffer(string: "a"))
        #expect(await isFirstWanted)
        async let isSecondWanted = blocks.put(block("b"))
        #expect(try await blocks.take()?.bytes == ByteBuffer(string: "b"))
        #expect(await isSecondWanted)
        blocks.finish(.success(()))
        #expect(try await blocks.take() == nil)
        #expect(try await blocks.take() == nil)
    }

    @Test func `a failure reaches whoever takes, again and again`() async throws {
        let blocks = BodyBlocks()
        blocks.finish(.failure(Broken()))
        await #expect(throws: Broken.self) { try await blocks.take() }
        await #expect(throws: Broken.self) { try await blocks.take() }
    }

    @Test func `closing lets the reader go and refuses what comes later`() async throws {
        let blocks = BodyBlocks()
        async let isWanted = blocks.put(block("a"))
        blocks.close()
        #expect(await isWanted == false)
        #expect(await blocks.put(block("b")) == false)
        await #expect(throws: CancellationError.self) { try await blocks.take() }
    }

    @Test func `cancelling the reader lets it go`() async throws {
        let blocks = BodyBlocks()
        let reader = Task { await blocks.put(block("a")) }
        reader.cancel()
        #expect(await reader.value == false)
    }
}
