import NIOCore

/// Bytes that are gathered for one request: a few in memory of their own, and more in a block of the budget.
struct GatheredBytes: Sendable {
    private var few = ByteBuffer()
    private var block: MemoryBudget.Block?

    /// What became of bytes that were to be added.
    enum Addition: Sendable {
        case added
        case needsBlock
        case isFull
    }

    var count: Int { few.readableBytes + (block?.count ?? 0) }

    /// Adds the first of the bytes.
    ///
    /// - Parameters:
    ///   - maximum: How many bytes are gathered.
    ///   - free: How many bytes are gathered without a block.
    mutating func add(_ bytes: inout ByteBuffer, upTo maximum: Int, free: Int) -> Addition {
        let count = min(maximum - self.count, bytes.readableBytes)
        guard count > 0 else { return .isFull }
        guard block != nil || self.count + count <= free else { return .needsBlock }
        guard var piece = bytes.readSlice(length: count) else { return .added }
        if let block { block.write(piece) } else { few.writeBuffer(&piece) }
        return .added
    }

    /// How many bytes the block has room for; `nil` without a block.
    func room(upTo maximum: Int) -> Int? { block.map { maximum - $0.count } }

    /// Makes room for more.
    mutating func hold(_ block: MemoryBudget.Block) {
        block.write(few)
        few = ByteBuffer()
        self.block = block
    }

    /// From now on the bytes wait for the store and not for the client.
    func isSending() { block?.isSending() }

    /// Removes the bytes.
    ///
    /// - Returns: The bytes, and the block, which is to be kept until they are sent.
    mutating func take() -> (bytes: ByteBuffer, block: MemoryBudget.Block?) {
        defer { self = GatheredBytes() }
        isSending()
        return (block?.bytes ?? few, block)
    }
}
