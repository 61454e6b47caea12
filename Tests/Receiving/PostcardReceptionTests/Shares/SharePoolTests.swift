import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception

struct SharePoolTests {
    typealias Pool = SharePool<Int>

    private static let peers = TestPeers.all
    private static let now = ContinuousClock.now

    private static func taken(
        _ pool: inout Pool, _ amount: Int = 1, for peer: PeerAddress?, by owner: Int = 0, after seconds: Int = 0
    ) throws(Pool.Refusal) -> Int {
        try pool.take(amount...amount, for: peer, by: owner, at: now + .seconds(seconds)).number
    }

    /// Takes items for an address until it is refused.
    private static func fill(_ pool: inout Pool, for peer: PeerAddress?) -> (count: Int, refusal: Pool.Refusal?) {
        var count = 0
        while true {
            do throws(Pool.Refusal) {
                _ = try taken(&pool, for: peer)
                count += 1
            } catch {
                return (count, error)
            }
        }
    }

    static let alone: [(total: Int, share: Double, count: Int)] = [
        (1, 0.25, 1), (2, 0.25, 1), (4, 0.25, 1), (8, 0.25, 2), (100, 0.25, 23), (2000, 0.25, 450), (2000, 0.5, 900),
        (2000, 0.001, 3), (8, 1, 8), (2000, 1, 2000),
    ]

    @Test(arguments: alone)
    func `an address gets its share of what is free, and at least one item`(total: Int, share: Double, count: Int) {
        var pool = Pool(total: total, share: share)
        #expect(Self.fill(&pool, for: Self.peers[0]) == (count, count < total ? .ofAddress(limit: count) : .ofAll))
        #expect(pool.free == total - count)
    }

    static let attacks: [(attackers: Int, left: Int)] = [(1, 1550), (4, 769), (16, 217), (64, 71)]

    @Test(arguments: attacks)
    func `attackers that take all they can leave room for newcomers`(attackers: Int, left: Int) {
        var pool = Pool(total: 2000, share: 0.25)
        for peer in Self.peers.prefix(attackers) { _ = Self.fill(&pool, for: peer) }
        #expect(pool.free == left)
        // Each newcomer gets at least a 64th of the reserve.
        let newcomers = Self.peers.dropFirst(attackers).prefix(left / 3)
        for peer in newcomers.prefix(18) { #expect(Self.fill(&pool, for: peer).count >= 3) }
    }

    static let single: [(amount: Int, isTaken: Bool)] = [(45_000, true), (45_001, false), (100_001, false)]

    @Test(arguments: single)
    func `an only item may be half of what is free, at once or step by step`(amount: Int, isTaken: Bool) throws {
        var pool = Pool(total: 100_000, share: 0.25)
        let atOnce = try? Self.taken(&pool, amount, for: Self.peers[0])
        #expect((atOnce != nil) == isTaken)
        var growing = Pool(total: 100_000, share: 0.25)
        let number = try Self.taken(&growing, 1, for: Self.peers[0])
        let grown: Void? = try? growing.grow(number, by: amount - 1)
        #expect((grown != nil) == isTaken)
        #expect(growing.held(by: Self.peers[0]) == (isTaken ? amount : 1))
        // Two are limited by the share.
        _ = try? Self.taken(&growing, 1, for: Self.peers[0])
        #expect(throws: Pool.Refusal.self) { try growing.grow(number, by: 22_500) }
    }

    @Test func `what an address could never have is refused for its share, although others hold all`() throws {
        var pool = Pool(total: 1000, share: 0.25)
        #expect(throws: Pool.Refusal.ofAddress(limit: 450)) { try Self.taken(&pool, 451, for: Self.peers[0]) }
        _ = try Self.taken(&pool, 1000, for: nil)
        #expect(throws: Pool.Refusal.ofAll) { try Self.taken(&pool, 450, for: Self.peers[0]) }
        #expect(throws: Pool.Refusal.ofAddress(limit: 1)) { try Self.taken(&pool, 451, for: Self.peers[0]) }
        #expect(throws: Pool.Refusal.ofAll) { try Self.taken(&pool, 1001, for: nil) }
    }

    @Test func `clients without addresses are not limited, and what is there already counts in any case`() throws {
        var pool = Pool(total: 10, share: 0.25)
        #expect(Self.fill(&pool, for: nil) == (10, .ofAll))
        let grant = pool.restore(5, for: Self.peers[0], by: 0, at: Self.now)
        #expect(pool.free == -5)
        #expect(throws: Pool.Refusal.ofAll) { try Self.taken(&pool, for: Self.peers[1]) }
        pool.giveBack(grant.number)
        pool.giveBack(grant.number)
        #expect(pool.free == 0)
    }

    @Test func `whatever sizes a disk says, the sum can be counted`() throws {
        var pool = Pool(total: .max, share: 0.25)
        let grants = (0..<5).map { _ in pool.restore(.max, for: nil, by: 0, at: Self.now) }
        #expect(pool.free <= 0)
        for grant in grants { pool.giveBack(grant.number) }
        #expect(pool.isEmpty)
    }

    @Test func `an item of variable size leaves some for those after it`() throws {
        var pool = Pool(total: 16 << 20, share: 0.25, unit: 4096)
        var sizes: [Int] = []
        while let grant = try? pool.take(4096...65_536, for: Self.peers[0], by: 0, at: Self.now) {
            sizes.append(grant.amount)
        }
        #expect(sizes.first == 65_536)
        #expect(sizes.last == 4096)
        #expect(sizes.count > 60)
        let other = try pool.take(4096...65_536, for: Self.peers[1], by: 0, at: Self.now)
        #expect(other.amount == 65_536)
    }

    @Test func `waiting requests are served in turns of their addresses, and in order for each`() throws {
        var pool = Pool(total: 1, share: 1)
        let first = try Self.taken(&pool, for: Self.peers[0])
        var names: [Int: String] = [:]
        for (name, peer) in [("a1", 0), ("a2", 0), ("a3", 0), ("b1", 1), ("b2", 1), ("c1", 2)] {
            let number = pool.nextNumber()
            names[number] = name
            pool.wait(number, for: 1...1, peer: Self.peers[peer], owner: 0)
            #expect(pool.serve(at: Self.now).isEmpty)
        }
        #expect(throws: Pool.Refusal.self) { try Self.taken(&pool, for: Self.peers[3]) }
        pool.leave(try #require(names.first { $0.value == "b2" }?.key))
        var order: [String] = []
        var holding = first
        for _ in 0..<5 {
            pool.giveBack(holding)
            let served = pool.serve(at: Self.now)
            holding = try #require(served.first?.number)
            #expect(served.count == 1)
            order.append(names[holding] ?? "")
        }
        #expect(order == ["a1", "b1", "c1", "a2", "a3"])
        pool.giveBack(holding)
        #expect(pool.serve(at: Self.now).isEmpty)
        #expect(pool.isEmpty)
    }

    @Test func `a request that waits no longer keeps nothing from others`() throws {
        var pool = Pool(total: 1, share: 1)
        let first = try Self.taken(&pool, for: Self.peers[0])
        let number = pool.nextNumber()
        pool.wait(number, for: 1...1, peer: Self.peers[1], owner: 0)
        #expect(pool.serve(at: Self.now).isEmpty)
        pool.leave(number)
        pool.giveBack(first)
        #expect(throws: Never.self) { try Self.taken(&pool, for: Self.peers[2]) }
    }

    @Test func `the oldest item of the address that has most gives way, once, and none that is new`() throws {
        var pool = Pool(total: 8, share: 0.9)
        // The owners are in the order in which they took.
        for (owner, peer) in [1, 0, 0, 1, 0].enumerated() {
            _ = try Self.taken(&pool, for: Self.peers[peer], by: owner, after: owner)
        }
        func next(_ seconds: Int) -> Int? { pool.giveWay(takenBefore: Self.now + .seconds(seconds)) }
        #expect(next(-1) == nil)
        #expect([next(0), next(1), next(2), next(2), next(4), next(4), next(4)] == [0, 1, 2, nil, 4, 3, nil])
        var unlimited = Pool(total: 1, share: 1)
        _ = try Self.taken(&unlimited, for: Self.peers[0])
        #expect(unlimited.giveWay(takenBefore: Self.now) == nil)
    }

    @Test func `clients that cannot be distinguished do not give way`() throws {
        var pool = Pool(total: 10, share: 0.25)
        for number in 0..<8 { _ = try Self.taken(&pool, for: nil, by: number) }
        _ = try Self.taken(&pool, for: Self.peers[0], by: 8)
        #expect([pool.giveWay(takenBefore: Self.now), pool.giveWay(takenBefore: Self.now)] == [8, nil])
    }
}
