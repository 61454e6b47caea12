#if AsyncHTTP
import NIOCore
import PostcardClient

/// The body as AsyncHTTPClient takes it: blocks cut into chunks, each counted as sent when the next is asked for.
///
/// AsyncHTTPClient asks for chunks as long as the connection has not said that it is full, and the connection
/// says so only when its event loop has come to them. A loop that lags behind would let chunks pile up without
/// end, so from time to time they wait for the loops.
struct BodyChunks: AsyncSequence, Sendable {
    typealias Element = ByteBuffer

    /// A slow connection is seen to move by this much, and each step costs a hop between threads.
    private static let chunkSize = 64 << 10

    /// The most bytes that wait for an event loop.
    private static let maximumBytesAhead = 4 << 20

    let blocks: BodyBlocks
    /// Of the loops one has the connection; which one is AsyncHTTPClient's secret.
    let loops: any EventLoopGroup
    let end: BodyEnd
    /// What the server has to say first, where it is asked.
    var expectation: Expectation?
    let report: @Sendable (TransportEvent) -> Void

    func makeAsyncIterator() -> Iterator {
        Iterator(body: self)
    }

    struct Iterator: AsyncIteratorProtocol {
        private let body: BodyChunks
        private var bytes = ByteBuffer()
        private var progress = BodyProgress(bytesSent: 0, contentRanges: [])
        private var bytesAhead = 0
        private var place = Place.beginning

        /// Where in the body the next chunk is.
        private enum Place {
            case beginning
            /// In a block, which is known to be the last or not.
            case block(isLast: Bool)
            /// Behind the last chunk, of which the body's end knows.
            case end
        }

        init(body: BodyChunks) {
            self.body = body
        }

        mutating func next() async throws -> ByteBuffer? {
            if bytesAhead >= BodyChunks.maximumBytesAhead {
                await body.waitForLoops()
                bytesAhead = 0
            }
            tell()
            if case .beginning = place, let expectation = body.expectation { try await expectation.wait() }
            if bytes.readableBytes == 0 {
                guard let block = try await body.blocks.take() else {
                    tellEndOfStream()
                    return nil
                }
                bytes = block.bytes
                progress.contentRanges = block.end.contentRanges
                place = .block(isLast: block.isLast)
            }
            let count = Swift.min(bytes.readableBytes, BodyChunks.chunkSize)
            let chunk = bytes.readSlice(length: count)
            progress.bytesSent += Int64(count)
            bytesAhead += count
            if case .block(isLast: true) = place, bytes.readableBytes == 0 {
                place = .end
                progress.isWhole = true
                body.end.reach(progress)
            }
            return chunk
        }

        /// Behind a stream of unknown length it shows only now that the last chunk was the last.
        private mutating func tellEndOfStream() {
            if case .end = place { return }
            place = .end
            progress.isWhole = true
            body.report(.sent(progress))
        }

        private func tell() {
            switch place {
            case .beginning, .block: body.report(.sent(progress))
            case .end: if let whole = body.end.take() { body.report(.sent(whole)) }
            }
        }
    }

    /// Returns when every loop has done what it was given before.
    private func waitForLoops() async {
        let turns = loops.makeIterator().map { $0.submit {} }
        // A loop that has been shut down has nothing left to do.
        try? await EventLoopFuture.andAllComplete(turns, on: loops.any()).get()
    }
}
#endif
