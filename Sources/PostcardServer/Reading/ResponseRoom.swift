import NIOCore

/// Divides the memory for responses among the responses in progress and the addresses they are sent to.
///
/// An address gets at most its share. Responses without room wait in a queue of their address. The queues are served in
/// turns, so an address with thousands of unread responses does not delay the others.
struct ResponseRoom {
    private struct Peer {
        /// Its responses in progress.
        var responses = 0
        /// The bytes that they hold.
        var held = 0
        /// The numbers of its waiting responses in order, and of some that have left the queue.
        var queue = CircularBuffer<Int>()
        /// How many of them are still waiting.
        var waiting = 0
        /// Whether it is in `turns`.
        var hasTurn = false

        var isIdle: Bool { responses == 0 && held == 0 && waiting == 0 && !hasTurn }
    }

    private struct Waiter {
        let peer: PeerAddress?
        let wanted: Int
    }

    /// Whether there is room for a response that is already in memory.
    enum Admission: Equatable {
        case taken
        case full
        /// The address has used its share.
        case fullForPeer
    }

    let total: Int
    /// The maximum for one known address, in bytes.
    let share: Int
    /// The bytes that no response holds.
    private(set) var free: Int
    /// By address. `nil` is for clients that cannot be distinguished, whose share is not limited.
    private var peers: [PeerAddress?: Peer] = [:]
    private var waiters: [Int: Waiter] = [:]
    /// The addresses whose next response only waits for free bytes, each once.
    private var turns = CircularBuffer<PeerAddress?>()

    static let maximumPieceBytes = 64 << 10
    static let minimumPieceBytes = 4 << 10

    /// - Parameters:
    ///   - total: The maximum of all responses together, in bytes.
    ///   - share: The part of it that one address may use, from 0 to 1.
    init(total: Int, share: Double) {
        self.total = max(total, 1)
        self.share = PeerAddress.share(share, of: self.total)
        free = self.total
    }

    /// How many responses wait.
    var waitingCount: Int { waiters.count }

    mutating func responseBegins(for peer: PeerAddress?) {
        peers[peer, default: Peer()].responses += 1
    }

    mutating func responseEnds(for peer: PeerAddress?) {
        peers[peer]?.responses -= 1
        forgetIfIdle(peer)
    }

    /// Takes room for a piece of a response.
    ///
    /// - Returns: How many bytes the piece may have, or `nil` if there is no room or others wait for it.
    mutating func take(upTo wanted: Int, for peer: PeerAddress?) -> Int? {
        let count = piece(wanted, for: peer)
        guard turns.isEmpty, peers[peer]?.waiting ?? 0 == 0, hasShare(count, peer), free >= count else { return nil }
        hold(count, for: peer)
        return count
    }

    /// Takes room for a whole response. One larger than the share is allowed if its address holds nothing else.
    mutating func take(all count: Int, for peer: PeerAddress?) -> Admission {
        guard hasShare(count, peer) || peers[peer]?.held ?? 0 == 0 else {
            return share(of: peer) < total ? .fullForPeer : .full
        }
        guard turns.isEmpty, free >= count else { return .full }
        hold(count, for: peer)
        return .taken
    }

    mutating func giveBack(_ count: Int, for peer: PeerAddress?) {
        free += count
        peers[peer]?.held -= count
        giveTurn(to: peer)
        forgetIfIdle(peer)
    }

    /// Adds a response to the queue of its address.
    ///
    /// - Parameter number: Identifies the response, which must not be waiting yet.
    mutating func wait(_ number: Int, for wanted: Int, peer: PeerAddress?) {
        waiters[number] = Waiter(peer: peer, wanted: wanted)
        peers[peer, default: Peer()].queue.append(number)
        peers[peer]?.waiting += 1
        giveTurn(to: peer)
    }

    /// Removes a response from its queue.
    mutating func leave(_ number: Int) {
        guard let waiter = waiters.removeValue(forKey: number), var peer = peers.removeValue(forKey: waiter.peer) else {
            return
        }
        peer.waiting -= 1
        // Searching a long queue for each number would be slow, so numbers that have left are removed together.
        if peer.queue.count > 2 * peer.waiting + 16 {
            let waiters = waiters
            peer.queue.removeAll { waiters[$0] == nil }
        }
        peers[waiter.peer] = peer
        forgetIfIdle(waiter.peer)
    }

    /// Takes room for pieces of waiting responses, as long as there is any.
    mutating func serve() -> [(number: Int, count: Int)] {
        var served: [(number: Int, count: Int)] = []
        while let peer = turns.first {
            guard let (number, wanted) = firstInQueue(of: peer), hasShare(piece(wanted, for: peer), peer) else {
                // It gets another turn when it releases bytes, or with its next response that waits.
                turns.removeFirst()
                peers[peer]?.hasTurn = false
                forgetIfIdle(peer)
                continue
            }
            let count = piece(wanted, for: peer)
            guard free >= count else { break }
            hold(count, for: peer)
            waiters[number] = nil
            peers[peer]?.queue.removeFirst()
            peers[peer]?.waiting -= 1
            turns.removeFirst()
            turns.append(peer)
            served.append((number, count))
        }
        return served
    }

    // MARK: - Bookkeeping

    /// How many bytes the next piece may have: fewer if more addresses have responses in progress, or if its own
    /// address has more. All pieces together use a quarter of the memory, as long as they are larger than the minimum.
    private func piece(_ wanted: Int, for peer: PeerAddress?) -> Int {
        let share = share(of: peer)
        let part = min(total / max(peers.count, 1), share) / max(peers[peer]?.responses ?? 0, 1) / 4
        return min(max(part, Self.minimumPieceBytes), Self.maximumPieceBytes, wanted, share)
    }

    private func share(of peer: PeerAddress?) -> Int { peer == nil ? total : share }

    private func hasShare(_ count: Int, _ peer: PeerAddress?) -> Bool {
        (peers[peer]?.held ?? 0) + count <= share(of: peer)
    }

    private mutating func hold(_ count: Int, for peer: PeerAddress?) {
        free -= count
        peers[peer, default: Peer()].held += count
    }

    private mutating func giveTurn(to peer: PeerAddress?) {
        guard let state = peers[peer], state.waiting > 0, !state.hasTurn else { return }
        peers[peer]?.hasTurn = true
        turns.append(peer)
    }

    private mutating func firstInQueue(of peer: PeerAddress?) -> (number: Int, wanted: Int)? {
        while let number = peers[peer]?.queue.first {
            if let waiter = waiters[number] { return (number, waiter.wanted) }
            peers[peer]?.queue.removeFirst()
        }
        return nil
    }

    private mutating func forgetIfIdle(_ peer: PeerAddress?) {
        if peers[peer]?.isIdle == true { peers[peer] = nil }
    }
}
