#if AsyncHTTP
import NIOCore
import PostcardClient
import PostcardForm

/// Reads a form's body, block by block, as fast as the blocks are taken.
struct BodySource {
    /// Large enough that a file is read in few calls, small enough that some of them do not matter.
    private static let blockSize = 256 << 10

    private let layout: FormLayout
    private let blocks: BodyBlocks

    init(_ layout: FormLayout, into blocks: BodyBlocks) {
        self.layout = layout
        self.blocks = blocks
    }

    /// Reads until the body ends, cannot be read, or is not wanted any more.
    func run() async {
        do {
            let reader = try layout.reader()
            while try await reader.prepare() {
                var bytes = ByteBufferAllocator().buffer(capacity: capacity(at: reader.position))
                _ = try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 0) { try reader.read(into: $0) }
                if bytes.readableBytes == 0 { continue }
                // What a slow stream or a rate limit gives would keep the room of a block while it waits to go out.
                if bytes.readableBytes < bytes.capacity / 4 { bytes = ByteBuffer(bytes: bytes.readableBytesView) }
                let end = BodyProgress(bytesSent: reader.position, contentRanges: reader.contentRanges)
                let isLast = reader.position == layout.contentLength
                guard await blocks.put(BodyBlock(bytes: bytes, end: end, isLast: isLast)) else { return }
            }
            blocks.finish(.success(()))
        } catch {
            blocks.finish(.failure(error))
        }
    }

    /// No more than is left, so that a small form takes little memory.
    private func capacity(at position: Int64) -> Int {
        guard let length = layout.contentLength else { return Self.blockSize }
        return Int(min(Int64(Self.blockSize), max(length - position, 1)))
    }
}
#endif
