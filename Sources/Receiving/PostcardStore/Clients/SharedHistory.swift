import NIOCore

/// The latest items of all clients. If there are too many, the address with the most items loses its oldest item, so
/// that a busy client cannot displace the few items of others.
package struct SharedHistory<Item: Sendable>: Sendable {
    /// An item in the history. A class, so that reading the number does not copy the references in the item.
    private final class Entry: Sendable {
        /// The number of the item among all items that were ever added.
        let number: Int
        let item: Item
        let bytes: Int

        init(number: Int, item: Item, bytes: Int) {
            (self.number, self.item, self.bytes) = (number, item, bytes)
        }
    }

    /// The items of an address, oldest first.
    private struct Share {
        var entries = CircularBuffer<Entry>(initialCapacity: 1)
        var bytes = 0

        mutating func append(_ entry: Entry) {
            entries.append(entry)
            bytes += entry.bytes
        }

        mutating func removeFirst() -> Entry? {
            let entry = entries.popFirst()
            bytes -= entry?.bytes ?? 0
            return entry
        }
    }

    /// The addresses with items. `nil` stands for clients that cannot be distinguished.
    private var shares: [PeerAddress?: Share] = [:]
    private var lastNumber = 0
    private var count = 0
    private var bytes = 0

    package init() {}

    /// All items, oldest first.
    package var items: [Item] {
        shares.values.flatMap(\.entries).sorted { $0.number < $1.number }.map(\.item)
    }

    /// Adds an item. `bytes` is its size; 0 in a history that only limits the number of items.
    package mutating func append(_ item: Item, of peer: PeerAddress?, bytes: Int = 0) {
        lastNumber += 1
        shares[peer, default: Share()].append(Entry(number: lastNumber, item: item, bytes: bytes))
        count += 1
        self.bytes += bytes
    }

    package mutating func removeAll(where isRemoved: (Item) -> Bool) {
        for peer in Array(shares.keys) { removeAll(of: peer, where: isRemoved) }
    }

    package mutating func removeAll(of peer: PeerAddress?, where isRemoved: (Item) -> Bool) {
        guard let share = shares.removeValue(forKey: peer) else { return }
        var left = Share()
        for entry in share.entries where !isRemoved(entry.item) { left.append(entry) }
        count -= share.entries.count - left.entries.count
        bytes -= share.bytes - left.bytes
        if !left.entries.isEmpty { shares[peer] = left }
    }

    /// Removes items until their number and size are within the limits, and returns the removed items. The newest item
    /// stays if at least one may stay.
    package mutating func removeExcess(over maximumCount: Int, maximumBytes: Int = .max) -> [Item] {
        let excess = count - max(maximumCount, 0)
        var removed: [Item] = []
        if excess == 1, let item = removeOldest(by: { $0.entries.count }) { removed.append(item) }
        // More than one item exceeds the limit only after the limit was lowered.
        if excess > 1 { removed = removeOldest(excess) }
        while bytes > maximumBytes, count > 1, let item = removeOldest(by: { $0.bytes }) { removed.append(item) }
        return removed
    }

    /// Removes the oldest item of the address with the largest `amount`. The newest item of all stays, unless it is the
    /// only item.
    private mutating func removeOldest(by amount: (Share) -> Int) -> Item? {
        var chosen: (amount: Int, number: Int, peer: PeerAddress?)?
        for (peer, share) in shares {
            guard let number = share.entries.first?.number, number < lastNumber || count == 1 else { continue }
            let own = amount(share)
            if let chosen, own < chosen.amount || own == chosen.amount && number > chosen.number { continue }
            chosen = (own, number, peer)
        }
        return chosen.flatMap { removeFirst(of: $0.peer) }
    }

    /// Removes several items in one pass. Each is the oldest item of the address that then has the most items.
    private mutating func removeOldest(_ excess: Int) -> [Item] {
        var ranked: [(rank: Int, number: Int, peer: PeerAddress?)] = []
        for (peer, share) in shares {
            for (index, entry) in share.entries.enumerated() {
                ranked.append((share.entries.count - index, entry.number, peer))
            }
        }
        ranked.sort { $0.rank == $1.rank ? $0.number < $1.number : $0.rank > $1.rank }
        return ranked.prefix(excess).compactMap { removeFirst(of: $0.peer) }
    }

    private mutating func removeFirst(of peer: PeerAddress?) -> Item? {
        guard let index = shares.index(forKey: peer), let entry = shares.values[index].removeFirst() else { return nil }
        if shares.values[index].entries.isEmpty { shares.remove(at: index) }
        count -= 1
        bytes -= entry.bytes
        return entry.item
    }
}
