import NIOCore
import Synchronization

/// Sizes the buffers that a connection is read into. About thirteen may wait for the route of each connection, and four
/// are kept for its next bytes, so they are smaller while there are many connections.
struct SharedReceiveBuffers: RecvByteBufferAllocator {
    private static let connections = Atomic<Int>(0)
    private static let maximumBytes = 64 << 10
    private static let minimumBytes = 4 << 10
    /// The size of one buffer of all connections together.
    private static let sharedBytes = 2 << 20

    private var adaptive = AdaptiveRecvByteBufferAllocator(
        minimum: 64, initial: 2 << 10, maximum: SharedReceiveBuffers.maximumBytes)

    /// Counts connections until the object is released.
    final class Count: Sendable {
        init() { SharedReceiveBuffers.connections.add(1, ordering: .relaxed) }
        deinit { SharedReceiveBuffers.connections.subtract(1, ordering: .relaxed) }
    }

    private var size: Int {
        var share = Self.maximumBytes
        let connections = Self.connections.load(ordering: .relaxed)
        // A power of two, as all capacities are.
        while share > Self.minimumBytes, share * connections > Self.sharedBytes { share /= 2 }
        return min(adaptive.nextBufferSize() ?? share, share)
    }

    func nextBufferSize() -> Int? { size }

    func buffer(allocator: ByteBufferAllocator) -> ByteBuffer { allocator.buffer(capacity: size) }

    mutating func record(actualReadBytes: Int) -> Bool { adaptive.record(actualReadBytes: actualReadBytes) }
}
