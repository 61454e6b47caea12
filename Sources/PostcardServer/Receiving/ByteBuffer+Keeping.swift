package import NIOCore

extension ByteBuffer {
    /// A buffer holds on to the memory of all that was read with it; fewer bytes than these are copied out of it.
    private static let smallBytes = 4 << 10

    /// Whether the buffer is better copied than held on to.
    private var isSmall: Bool { readableBytes < Self.smallBytes }

    /// The same bytes to be held on to for longer than until the next are read.
    package var kept: ByteBuffer {
        guard isSmall else { return self }
        var room = ByteBufferAllocator().buffer(capacity: Self.smallBytes)
        room.writeImmutableBuffer(self)
        return room
    }

    /// Takes in bytes that follow, where they are few and there is room for them: what comes byte by byte is not held
    /// in a buffer for each of them. Nobody else should hold the buffer, or it is copied.
    ///
    /// - Returns: Whether it took them.
    package mutating func takeIn(_ next: ByteBuffer) -> Bool {
        guard next.isSmall, writableBytes >= next.readableBytes else { return false }
        writeImmutableBuffer(next)
        return true
    }
}
