import NIOCore
import PostcardClient
import PostcardForm

/// Reads a form's body, block by block, as fast as the blocks are taken.
struct BodySource {
    /// Large enough that a file is read in few calls, small enough that some of them do not matter.
    static let blockSize = 256 << 10

    /// One is being filled, one waits to be taken, and ``BodyHandler`` writes the others.
    private static let blockCount = 2 + BodyHandler.maximumBytesInFlight / blockSize

    private let layout: FormLayout
    private let reader: FormReader
    /// Blocks whose memory is used again when nobody else holds it: fresh memory costs more than what is done with it.
    private var ring: [ByteBuffer] = []
    private var next = 0

    /// - Throws: `FormError` where the first bytes cannot be read.
    init(_ layout: FormLayout) throws {
        self.layout = layout
        reader = try layout.reader()
    }

    /// Reads the first block, where nothing has to be waited for.
    mutating func readyBlock() throws -> BodyBlock? {
        reader.needsPreparation ? nil : try readBlock()
    }

    /// Reads on until the body ends or is not wanted any more.
    ///
    /// - Throws: What keeps the body from being read, of which the blocks know then.
    mutating func feed(_ blocks: BodyBlocks) async throws {
        do {
            guard await blocks.waitForPlace() else { return }
            while try await reader.prepare() {
                guard let block = try readBlock() else { continue }
                guard await blocks.put(block) else { return }
            }
            blocks.finish(.success(()))
        } catch {
            blocks.finish(.failure(error))
            throw error
        }
    }

    private mutating func readBlock() throws -> BodyBlock? {
        if ring.count < Self.blockCount {
            ring.append(ByteBufferAllocator().buffer(capacity: capacity))
            next = ring.count - 1
        } else {
            next = (next + 1) % ring.count
            ring[next].clear(minimumCapacity: capacity)
        }
        _ = try ring[next].writeWithUnsafeMutableBytes(minimumWritableBytes: 0) { [reader] in try reader.read(into: $0)
        }
        guard ring[next].readableBytes > 0 else { return nil }
        return BodyBlock(
            bytes: ring[next],
            end: BodyProgress(bytesSent: reader.position, contentRanges: reader.contentRanges),
            isLast: reader.isAtEnd)
    }

    /// No more than is left, so that a small form takes little memory.
    private var capacity: Int {
        guard let length = layout.contentLength else { return Self.blockSize }
        return Int(min(Int64(Self.blockSize), max(length - reader.position, 1)))
    }
}
