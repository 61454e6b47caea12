/// Divides the files that requests may have open among the addresses that send the requests.
///
/// There is one file for each connection, so HTTP/1.1 clients alone never use all of them. The streams of one HTTP/2
/// connection could.
struct FileRoom {
    /// How many files all requests may have open at once.
    let total: Int
    /// The maximum for one known address.
    let share: Int
    /// How many files are open.
    private(set) var count = 0
    private var peers = PeerCounts()

    /// - Parameter share: The part of the total that one address may use, from 0 to 1.
    init(total: Int, share: Double) {
        self.total = total
        self.share = PeerAddress.share(share, of: total)
    }

    /// Takes room for one file.
    ///
    /// - Parameter isReserved: Whether the request had room for a file until now, and gets it in any case.
    mutating func take(for peer: PeerAddress?, isReserved: Bool = false) -> ResponseRoom.Admission {
        if !isReserved {
            guard count < total else { return .full }
            guard !peers.hasReached(share, for: peer) else { return .fullForPeer }
        }
        count += 1
        peers.add(peer)
        return .taken
    }

    mutating func giveBack(for peer: PeerAddress?) {
        count -= 1
        peers.remove(peer)
    }
}
