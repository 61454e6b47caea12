import NIOCore
import PostcardClient
import Testing

@testable import PostcardAsyncHTTP

@Suite struct BodyBlocksTests {
    private struct Broken: Error {}

    private func block(_ text: String, isLast: Bool = false) -> BodyBlock {
        let end = BodyProgress(bytesSent: Int64(text.utf8.count), contentRanges: [])
        return BodyBlock(bytes: ByteBuffer(string: text), end: end, isLast: isLast)
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

    @Test func `once the last block is taken the body is over, and stays so`() async throws {
        let blocks = BodyBlocks()
        async let isWanted = blocks.put(block("abc", isLast: true))
        #expect(try await blocks.take()?.isLast == true)
        #expect(await isWanted)
        blocks.close()
        #expect(try await blocks.take() == nil)
    }

    @Test func `a failure reaches whoever takes, again and again`() async throws {
        let blocks = BodyBlocks()
        #expect(blocks.failure == nil)
        blocks.finish(.failure(Broken()))
        #expect(blocks.failure is Broken)
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
