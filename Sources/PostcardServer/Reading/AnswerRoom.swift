import NIOCore

/// Divides the memory for answers among the answers in progress, and among the addresses that they are sent to.
///
/// One address has at most its share. Answers that find no room wait in a line of their address, and the lines are
/// served in turns, so an address with thousands of unread answers delays no other.
struct AnswerRoom {
    private struct Peer {
        /// Its answers in progress.
        var answers = 0
        /// The bytes that they hold.
        var held = 0
        /// The numbers of those that wait, in their order, and of some that have left.
        var line = CircularBuffer<Int>()
        /// How many of them still wait.
        var waiting = 0
        /// Whether it is one of `turns`.
        var hasTurn = false

        var isIdle: Bool { answers == 0 && held == 0 && waiting == 0 && !hasTurn }
    }

    private struct Waiter {
        let peer: PeerAddress?
        let wanted: Int
    }

    /// Whether there is room for an answer that was made in memory.
    enum Admission: Equatable {
        case taken
        case full
        /// The address has its share.
        case fullForPeer
    }

    let total: Int
    /// The most that one known address may hold.
    let share: Int
    /// The bytes that no answer holds.
    private(set) var free: Int
    /// By address; `nil` is for clients that cannot be told apart, which have no share.
    private var peers: [PeerAddress?: Peer] = [:]
    private var waiters: [Int: Waiter] = [:]
    /// The addresses whose next answer waits for nothing but free bytes, each once.
    private var turns = CircularBuffer<PeerAddress?>()

    static let maximumPieceBytes = 64 << 10
    static let minimumPieceBytes = 4 << 10

    /// - Parameters:
    ///   - total: The bytes of all answers together.
    ///   - share: The part of them that one address may hold.
    init(total: Int, share: Double) {
        self.total = max(total, 1)
        self.share = PeerAddress.share(share, of: self.total)
        free = self.total
    }

    /// How many answers wait.
    var waitingCount: Int { waiters.count }

    mutating func answerBegins(for peer: PeerAddress?) {
        peers[peer, default: Peer()].answers += 1
    }

    mutating func answerEnds(for peer: PeerAddress?) {
        peers[peer]?.answers -= 1
        forgetIfIdle(peer)
    }

    /// Takes room for a piece of an answer.
    ///
    /// - Returns: How many bytes the piece may have; `nil` where there is no room, or others wait for it.
    mutating func take(upTo wanted: Int, for peer: PeerAddress?) -> Int? {
        let count = piece(wanted, for: peer)
        guard turns.isEmpty, peers[peer]?.waiting ?? 0 == 0, hasShare(count, peer), free >= count else { return nil }
        hold(count, for: peer)
        return count
    }

    /// Takes room for a whole answer. One that is larger than the share is let in where its address holds nothing.
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

    /// An answer waits for a piece, behind the others of its address.
    ///
    /// - Parameter number: Identifies the answer. It is not waiting yet.
    mutating func wait(_ number: Int, for wanted: Int, peer: PeerAddress?) {
        waiters[number] = Waiter(peer: peer, wanted: wanted)
        peers[peer, default: Peer()].line.append(number)
        peers[peer]?.waiting += 1
        giveTurn(to: peer)
    }

    /// An answer no longer waits.
    mutating func leave(_ number: Int) {
        guard let waiter = waiters.removeValue(forKey: number), var peer = peers.removeValue(forKey: waiter.peer) else {
            return
        }
        peer.waiting -= 1
        // Looking for the number would take time for each that leaves a long line. What is left of them goes at once.
        if peer.line.count > 2 * peer.waiting + 16 {
            let waiters = waiters
            peer.line.removeAll { waiters[$0] == nil }
        }
        peers[waiter.peer] = peer
        forgetIfIdle(waiter.peer)
    }

    /// Gives pieces to those that wait, as far as there is room.
    mutating func serve() -> [(number: Int, count: Int)] {
        var served: [(number: Int, count: Int)] = []
        while let peer = turns.first {
            guard let (number, wanted) = firstInLine(of: peer), hasShare(piece(wanted, for: peer), peer) else {
                // It gets a turn again with the next bytes that it gives back, or the next answer that waits.
                turns.removeFirst()
                peers[peer]?.hasTurn = false
                forgetIfIdle(peer)
                continue
            }
            let count = piece(wanted, for: peer)
            guard free >= count else { break }
            hold(count, for: peer)
            waiters[number] = nil
            peers[peer]?.line.removeFirst()
            peers[peer]?.waiting -= 1
            turns.removeFirst()
            turns.append(peer)
            served.append((number, count))
        }
        return served
    }

    // MARK: - Bookkeeping

    /// How many bytes the next piece may have: the more addresses have answers, and the more its own address has, the
    /// fewer. All pieces together take a quarter of the memory, as long as they are larger than the minimum.
    private func piece(_ wanted: Int, for peer: PeerAddress?) -> Int {
        let share = share(of: peer)
        let part = min(total / max(peers.count, 1), share) / max(peers[peer]?.answers ?? 0, 1) / 4
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

    private mutating func firstInLine(of peer: PeerAddress?) -> (number: Int, wanted: Int)? {
        while let number = peers[peer]?.line.first {
            if let waiter = waiters[number] { return (number, waiter.wanted) }
            peers[peer]?.line.removeFirst()
        }
        return nil
    }

    private mutating func forgetIfIdle(_ peer: PeerAddress?) {
        if peers[peer]?.isIdle == true { peers[peer] = nil }
    }
}
