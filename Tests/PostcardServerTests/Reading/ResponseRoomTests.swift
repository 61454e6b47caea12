import NIOCore
import PostcardTestSupport
import Testing

@testable import PostcardServer

struct ResponseRoomTests {
    private static let piece = ResponseRoom.minimumPieceBytes
    private static let addresses = (1...3).compactMap { number in
        PeerAddress(try? SocketAddress(ipAddress: "192.0.2.\(number)", port: 1))
    }

    /// Takes the smallest pieces for an address until there is no room left.
    private static func fill(_ room: inout ResponseRoom, for peer: PeerAddress?) -> Int {
        var count = 0
        while room.take(upTo: piece, for: peer) != nil { count += 1 }
        return count
    }

    @Test func `an address gets its share, and a client without an address gets all that is left`() throws {
        var room = ResponseRoom(total: 16 * Self.piece, share: 0.25)
        #expect(Self.fill(&room, for: Self.addresses[0]) == 4)
        #expect(Self.fill(&room, for: Self.addresses[1]) == 4)
        #expect(Self.fill(&room, for: nil) == 8)
        room.giveBack(Self.piece, for: Self.addresses[1])
        #expect(Self.fill(&room, for: Self.addresses[0]) == 0)
        #expect(Self.fill(&room, for: Self.addresses[1]) == 1)
    }

    @Test func `pieces get smaller with more responses to the same address, but not to other addresses`() {
        let (greedy, other) = (Self.addresses[0], Self.addresses[1])
        var room = ResponseRoom(total: 16 << 20, share: 0.25)
        for _ in 1...4000 { room.responseBegins(for: greedy) }
        room.responseBegins(for: other)
        #expect(room.take(upTo: 1 << 20, for: greedy) == ResponseRoom.minimumPieceBytes)
        #expect(room.take(upTo: 1 << 20, for: other) == ResponseRoom.maximumPieceBytes)
        for _ in 1..<100 { room.responseBegins(for: other) }
        #expect(room.take(upTo: 1 << 20, for: other) == (1 << 20) / 100)
    }

    @Test func `addresses are served in turns, each in the order of its responses`() {
        let (first, second) = (Self.addresses[0], Self.addresses[1])
        var room = ResponseRoom(total: 4 * Self.piece, share: 1)
        #expect(Self.fill(&room, for: nil) == 4)
        for number in 1...3 { room.wait(number, for: Self.piece, peer: first) }
        room.wait(4, for: Self.piece, peer: second)
        #expect(room.serve().isEmpty)
        room.giveBack(3 * Self.piece, for: nil)
        #expect(room.serve().map(\.number) == [1, 4, 2])
        room.giveBack(Self.piece, for: nil)
        #expect(room.serve().map(\.number) == [3])
    }

    @Test func `responses that wait for the share of their address do not delay others`() {
        let (greedy, other) = (Self.addresses[0], Self.addresses[1])
        var room = ResponseRoom(total: 8 * Self.piece, share: 0.25)
        #expect(Self.fill(&room, for: greedy) == 2)
        for number in 1...10_000 { room.wait(number, for: Self.piece, peer: greedy) }
        #expect(room.serve().isEmpty)
        #expect(room.take(upTo: Self.piece, for: other) == Self.piece)
        #expect(room.take(all: Self.piece, for: other) == .taken)
        // In reverse order, so that each is far from the start of the queue.
        for number in (2...10_000).reversed() { room.leave(number) }
        #expect(room.waitingCount == 1)
        room.giveBack(Self.piece, for: greedy)
        #expect(room.serve().map(\.number) == [1])
    }

    static let whole: [(held: Int, others: Int, count: Int, admission: ResponseRoom.Admission)] = [
        (0, 0, 20_000, .taken), (4096, 0, 20_000, .fullForPeer), (4096, 0, 12_288, .taken),
        (4096, 0, 12_289, .fullForPeer), (0, 50_000, 20_000, .full), (0, 0, 65_537, .full),
    ]

    @Test(arguments: whole)
    func `a response larger than the share is allowed if its address holds nothing else`(
        held: Int, others: Int, count: Int, admission: ResponseRoom.Admission
    ) {
        let address = Self.addresses[0]
        var room = ResponseRoom(total: 65_536, share: 0.25)
        if held > 0 { #expect(room.take(all: held, for: address) == .taken) }
        if others > 0 { #expect(room.take(all: others, for: nil) == .taken) }
        #expect(room.take(all: count, for: address) == admission)
    }

    @Test(arguments: 1...20 as ClosedRange<UInt64>)
    func `in any sequence, no room is lost, no share is exceeded, and waiting responses are served in order`(
        seed: UInt64
    ) {
        var random = SeededGenerator(seed: seed)
        let clients: [PeerAddress?] = [nil] + Self.addresses
        var room = ResponseRoom(total: 30 * Self.piece, share: 0.3)
        var held: [(peer: PeerAddress?, count: Int)] = []
        var waiting: [(number: Int, peer: PeerAddress?)] = []
        var lastNumber = 0
        func takeServed() {
            for (number, count) in room.serve() {
                guard let place = waiting.firstIndex(where: { $0.number == number }) else {
                    Issue.record("A response that was not waiting was served.")
                    continue
                }
                let peer = waiting.remove(at: place).peer
                #expect(!waiting[..<place].contains { $0.peer == peer })
                held.append((peer, count))
            }
            #expect(room.free == room.total - held.reduce(0) { $0 + $1.count })
            for address in Self.addresses {
                #expect(held.reduce(0) { $0 + ($1.peer == address ? $1.count : 0) } <= room.share)
            }
        }
        for _ in 0..<2000 {
            let peer = clients.randomElement(using: &random) ?? nil
            switch Int.random(in: 0..<5, using: &random) {
            case 0, 1:
                let wanted = Int.random(in: 1...20_000, using: &random)
                if let count = room.take(upTo: wanted, for: peer) {
                    held.append((peer, count))
                } else {
                    lastNumber += 1
                    room.wait(lastNumber, for: wanted, peer: peer)
                    waiting.append((lastNumber, peer))
                }
            case 2 where !waiting.isEmpty:
                room.leave(waiting.remove(at: Int.random(in: 0..<waiting.count, using: &random)).number)
            case _ where !held.isEmpty:
                let (peer, count) = held.remove(at: Int.random(in: 0..<held.count, using: &random))
                room.giveBack(count, for: peer)
            default: break
            }
            takeServed()
        }
        while !held.isEmpty {
            let (peer, count) = held.removeLast()
            room.giveBack(count, for: peer)
            takeServed()
        }
        #expect(waiting.isEmpty)
        #expect(room.free == room.total)
    }
}
