import NIOCore
import PostcardServer

/// Items in turns of the clients that they are from, and in order for each client.
struct TurnQueue<Item: Sendable>: Sendable {
    private var queues: [PeerAddress?: CircularBuffer<Item>] = [:]
    /// The clients that have items, each once.
    private var turns = CircularBuffer<PeerAddress?>()

    /// - Parameter peer: The client; `nil` if it is not known.
    mutating func append(_ item: Item, of peer: PeerAddress?) {
        if queues[peer] == nil { turns.append(peer) }
        queues[peer, default: CircularBuffer(initialCapacity: 1)].append(item)
    }

    mutating func popFirst() -> Item? {
        guard let peer = turns.popFirst(), var queue = queues.removeValue(forKey: peer), let item = queue.popFirst()
        else { return nil }
        if !queue.isEmpty {
            queues[peer] = queue
            turns.append(peer)
        }
        return item
    }
}
