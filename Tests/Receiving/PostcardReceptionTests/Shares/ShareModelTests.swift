import Foundation
import PostcardReceivingSupport
import PostcardTestSupport
import Testing

@testable import PostcardReception

/// Random histories of what addresses take, enlarge, wait for and return. `POSTCARD_SHARE_HISTORIES=100000` runs many.
@Suite(.timeLimit(.minutes(60)))
struct ShareModelTests {
    /// One history. The model only knows who holds what.
    private struct History {
        private struct Item {
            let number: Int
            let peer: PeerAddress
            var amount: Int
        }

        private var random: SeededGenerator
        private let share: Double
        private var pool: SharePool<Int>
        private var items: [Item] = []
        private var held: [PeerAddress: Int] = [:]
        private var sum = 0
        private var waiting: [(number: Int, peer: PeerAddress, amounts: ClosedRange<Int>)] = []
        private let now = ContinuousClock.now
        /// What the first rule that was broken says.
        private(set) var failure: String?

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            let total = [1, 2, 7, 64, 1000, 100_000].randomElement(using: &random) ?? 1
            share = [0.01, 0.25, 0.5, 0.9, 1].randomElement(using: &random) ?? 1
            pool = SharePool(total: total, share: share, unit: [1, 64].randomElement(using: &random) ?? 1)
        }

        mutating func run(steps: Int) {
            let peers = TestPeers.all.prefix([1, 4, 16, 64, 200].randomElement(using: &random) ?? 1)
            for _ in 0..<steps {
                guard let peer = peers.randomElement(using: &random) else { return }
                switch Int.random(in: 0..<8, using: &random) {
                case 0...3: take(for: peer)
                case 4: grow()
                case 5: wait(peer)
                case 6 where !waiting.isEmpty: leave()
                default: giveBack()
                }
                check()
            }
            while !items.isEmpty || !waiting.isEmpty {
                // Whatever waits has its turn when all is returned.
                guard !items.isEmpty else { return fail("requests wait although nothing is held") }
                giveBack()
                check()
            }
            if !pool.isEmpty || held.values.contains(where: { $0 != 0 }) { fail("something is left") }
        }

        private mutating func fail(_ text: String) { failure = failure ?? text }

        private mutating func take(for peer: PeerAddress) {
            let amount = Int.random(
                in: 1...max(1, [pool.firstAmount, pool.total / 3].randomElement(using: &random) ?? 1), using: &random)
            let (before, had) = (pool.free, held[peer] ?? 0)
            if let grant = try? pool.take(amount...amount, for: peer, by: 0, at: now) {
                add(Item(number: grant.number, peer: peer, amount: grant.amount), before, had)
            } else if had == 0, amount <= min(pool.firstAmount, before), waiting.isEmpty {
                fail("a newcomer was refused although \(before) are free")
            }
        }

        private mutating func add(_ item: Item, _ before: Int, _ had: Int) {
            let has = had + item.amount
            if share < 1, has > pool.firstAmount, before - item.amount < pool.reserve {
                fail("an address with \(has) has used the reserve")
            }
            items.append(item)
            held[item.peer] = has
            sum += item.amount
        }

        private mutating func grow() {
            guard let index = items.indices.randomElement(using: &random) else { return }
            let amount = Int.random(in: 1...max(1, pool.total / 10), using: &random)
            let (before, had) = (pool.free, held[items[index].peer] ?? 0)
            guard (try? pool.grow(items[index].number, by: amount)) != nil else { return }
            items[index].amount += amount
            held[items[index].peer] = had + amount
            sum += amount
            if share < 1, had + amount > pool.firstAmount, before - amount < pool.reserve {
                fail("an item has grown into the reserve")
            }
        }

        private mutating func wait(_ peer: PeerAddress) {
            let amounts = 1...Int.random(in: 1...pool.firstAmount, using: &random)
            let number = pool.nextNumber()
            pool.wait(number, for: amounts, peer: peer, owner: 0)
            waiting.append((number, peer, amounts))
            serve()
        }

        private mutating func leave() {
            pool.leave(waiting.remove(at: Int.random(in: waiting.indices, using: &random)).number)
            serve()
        }

        private mutating func giveBack() {
            guard let index = items.indices.randomElement(using: &random) else { return }
            let item = items.remove(at: index)
            held[item.peer, default: 0] -= item.amount
            sum -= item.amount
            pool.giveBack(item.number)
            serve()
        }

        private mutating func serve() {
            for grant in pool.serve(at: now) {
                guard let place = waiting.firstIndex(where: { $0.number == grant.number }) else {
                    return fail("something was served that did not wait")
                }
                let (number, peer, amounts) = waiting.remove(at: place)
                if waiting[..<place].contains(where: { $0.peer == peer }) { fail("an address was served out of order") }
                if !amounts.contains(grant.amount) { fail("a request was served with \(grant.amount)") }
                items.append(Item(number: number, peer: peer, amount: grant.amount))
                held[peer, default: 0] += grant.amount
                sum += grant.amount
            }
        }

        private mutating func check() {
            if sum + pool.free != pool.total || pool.free < 0 { fail("\(sum) are held, and \(pool.free) are free") }
            if pool.waitingCount != waiting.count { fail("\(pool.waitingCount) requests wait") }
            // Nothing waits that a newcomer could have.
            if pool.free >= pool.firstAmount, let first = waiting.first(where: { held[$0.peer] ?? 0 == 0 }) {
                fail("a newcomer waits for \(first.amounts) although \(pool.free) are free")
            }
        }
    }

    @Test func `a newcomer is served if there is room, sums never exceed the limit, and all returns to zero`() {
        let count = ProcessInfo.processInfo.environment["POSTCARD_SHARE_HISTORIES"].flatMap(UInt64.init) ?? 1000
        for seed in 1...count {
            var history = History(seed: seed)
            history.run(steps: 60)
            #expect(history.failure == nil, "seed \(seed)")
        }
    }
}
