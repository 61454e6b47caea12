#if AsyncHTTP
import NIOCore
import PostcardClient

/// The body as AsyncHTTPClient takes it: blocks cut into chunks, each counted as sent when the next is asked for.
///
/// A chunk is asked for when the connection has room again, so the count is what the connection has taken.
struct BodyChunks: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    let blocks: BodyBlocks
    let report: @Sendable (TransportEvent) -> Void

    func makeAsyncIterator() -> Iterator {
        Iterator(blocks: blocks, report: report)
    }

    struct Iterator: AsyncIteratorProtocol {
        /// A slow connection is seen to move by this much, and each step costs a hop between threads.
        static let chunkSize = 64 << 10

        let blocks: BodyBlocks
        let report: @Sendable (TransportEvent) -> Void
        private var bytes = ByteBuffer()
        private var progress = BodyProgress(bytesSent: 0, contentRanges: [])

        init(blocks: BodyBlocks, report: @escaping @Sendable (TransportEvent) -> Void) {
            self.blocks = blocks
            self.report = report
        }

        mutating func next() async throws -> ByteBuffer? {
            report(.sent(progress))
            if bytes.readableBytes == 0 {
                guard let block = try await blocks.take() else { return nil }
                bytes = block.bytes
                progress.contentRanges = block.contentRanges
            }
            let chunk = bytes.readSlice(length: Swift.min(bytes.readableBytes, Self.chunkSize))
            progress.bytesSent += Int64(chunk?.readableBytes ?? 0)
            return chunk
        }
    }
}
#endif
