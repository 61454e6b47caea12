import NIOCore

extension ByteBuffer {
    /// A buffer holds on to the memory of all that was read with it; fewer bytes than these are copied out of it. As many
    /// are gathered in one buffer.
    private static let smallBytes = 4 << 10

    /// Whether the buffer is better copied than held on to.
    private var isSmall: Bool { readableBytes < Self.smallBytes }

    /// The same bytes to be held on to for longer than until the next are read.
    var kept: ByteBuffer {
        guard isSmall else { return self }
        // No larger than they are: a sender who stalls may have thousands beside it.
        var room = ByteBufferAllocator().buffer(capacity: readableBytes)
        room.writeImmutableBuffer(self)
        return room
    }

    /// Takes in bytes that follow, where they are few and so are those here: what comes byte by byte is not held in a
    /// buffer for each of them. The memory doubles as it fills up. The buffer is copied if others hold it too.
    ///
    /// - Returns: Whether it took them.
    mutating func takeIn(_ next: ByteBuffer) -> Bool {
        guard next.isSmall, readableBytes + next.readableBytes <= Self.smallBytes else { return false }
        writeImmutableBuffer(next)
        return true
    }
}
