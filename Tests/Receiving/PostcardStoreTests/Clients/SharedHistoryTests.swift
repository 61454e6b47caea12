import PostcardReceivingSupport
import Testing

@testable import PostcardStore

struct SharedHistoryTests {
    /// Who adds an item in each step, and the items that are left.
    static let histories: [(peers: [Int?], maximum: Int, left: [Int])] = [
        // A client alone keeps its latest.
        ([0, 0, 0, 0, 0], 3, [2, 3, 4]),
        // One that adds many pushes out its own.
        ([1, 0, 0, 0, 0, 0, 0], 3, [0, 5, 6]),
        ([1, 1, 0, 0, 0, 0, 0], 4, [0, 1, 5, 6]),
        ([nil, 0, 0, 0, 0, 0, 0], 3, [0, 5, 6]),
        // If all have as many, the oldest item goes.
        ([0, 1, 2, 3, 4], 3, [2, 3, 4]),
        ([0, 1, 0, 1, 2], 4, [1, 2, 3, 4]),
        ([nil, nil, nil, nil], 2, [2, 3]),
        ([0, 1], 0, []),
        ([0, 1], -1, []),
    ]

    @Test(arguments: histories)
    func `the address that has most loses its oldest item`(peers: [Int?], maximum: Int, left: [Int]) {
        var history = SharedHistory<Int>()
        var removed: [Int] = []
        for (item, peer) in peers.enumerated() {
            history.append(item, of: peer.flatMap { TestPeers.all[$0] })
            removed += history.removeExcess(over: maximum)
        }
        #expect(history.items == left)
        #expect(removed.sorted() == peers.indices.filter { !left.contains($0) })
    }

    /// The sizes of items, who adds each, and the items that are left.
    static let sizes: [(items: [(peer: Int, bytes: Int)], left: [Int])] = [
        ([(0, 60), (0, 60)], [1]),
        // The address with most bytes loses an item, and not the one with most items.
        ([(0, 1), (0, 1), (0, 1), (1, 60), (1, 60)], [0, 1, 2, 4]),
        // The newest item stays, however large.
        ([(0, 60), (1, 200)], [1]),
        ([(0, 10), (1, 30), (2, 95)], [2]),
    ]

    @Test(arguments: sizes)
    func `the address that has most bytes loses its oldest item`(items: [(peer: Int, bytes: Int)], left: [Int]) {
        var history = SharedHistory<Int>()
        for (number, item) in items.enumerated() {
            history.append(number, of: TestPeers.all[item.peer], bytes: item.bytes)
            _ = history.removeExcess(over: 10, maximumBytes: 100)
        }
        #expect(history.items == left)
    }

    @Test func `what was removed no longer counts`() {
        var history = SharedHistory<Int>()
        for item in 0..<4 { history.append(item, of: TestPeers.all[item % 2], bytes: 10) }
        history.removeAll { $0 == 0 || $0 == 2 }
        history.append(4, of: TestPeers.all[2], bytes: 10)
        #expect(history.removeExcess(over: 3, maximumBytes: 30).isEmpty)
        history.append(5, of: TestPeers.all[0], bytes: 10)
        #expect(history.removeExcess(over: 3) == [1])
    }

    @Test func `a limit that has become lower takes from those that have most`() {
        var history = SharedHistory<Int>()
        for item in 0..<10_000 { history.append(item, of: item < 9000 ? TestPeers.all[0] : TestPeers.all[item % 100]) }
        let removed = history.removeExcess(over: 1000)
        #expect(removed.count == 9000)
        // The 99 others have ten items each.
        #expect(history.items.filter { $0 >= 9000 && $0 % 100 > 0 }.count == 990)
        #expect(history.items.filter { $0 % 100 == 0 } == (1...10).map { 8900 + $0 * 100 })
    }
}
