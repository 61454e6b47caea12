#if AsyncHTTP
import NIOCore
import PostcardForm

/// Reads a form's body, block by block, as fast as the blocks are taken.
struct BodySource {
    /// Large enough that a file is read in few calls, small enough that two of them do not matter.
    private static let blockSize = 512 << 10

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
                var bytes = ByteBufferAllocator().buffer(capacity: Self.capacity(for: reader, of: layout))
                _ = try bytes.writeWithUnsafeMutableBytes(minimumWritableBytes: 0) { try reader.read(into: $0) }
                if bytes.readableBytes == 0 { continue }
                guard await blocks.put(BodyBlock(bytes: bytes, contentRanges: reader.contentRanges)) else { return }
            }
            blocks.finish(.success(()))
        } catch {
            blocks.finish(.failure(error))
        }
    }

    /// No more than is left, so that a small form takes little memory.
    private static func capacity(for reader: FormReader, of layout: FormLayout) -> Int {
        guard let length = layout.contentLength else { return blockSize }
        return Int(min(Int64(blockSize), max(length - reader.position, 1)))
    }
}
#endif
