import NIOCore
import PostcardStore

/// A limited resource, such as connections or bytes of memory, divided among the addresses that use it.
///
/// The pool is a pure value: ``ShareAccount`` has the lock, and callers pass the time.
///
/// - An address may use a share of the free amount, by default a quarter. The free amount shrinks with each greedy
///   address, but a few such addresses never use it up: four addresses use two thirds of the total, and sixteen use 99
///   percent. An address with only one item may use half, because a single upload may be large.
/// - A tenth is reserved for addresses that use little. Each of them gets a 64th of the reserve, at least one item.
///   Only more than 64 addresses, each with its own connection or upload, can keep a new client waiting.
/// - If even the reserve is used up, the oldest item of the address that uses most makes room for a new client.
/// - Addresses with waiting requests are served in turn, and the requests of each address in order.
struct SharePool<Owner: Sendable>: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The reason why an address gets no more of the resource.
    enum Refusal: Error, Hashable {
        /// The address already uses its current maximum.
        case ofAddress(limit: Int)
        /// Too little of the resource is left, because of what other addresses use.
        case ofAll
    }

    struct Grant: Hashable {
        let number: Int
        let amount: Int
    }

    private struct Item {
        let peer: PeerAddress?
        var amount: Int
        let since: Instant
        let owner: Owner
        var isGivingWay = false
    }

    private struct Waiter {
        let peer: PeerAddress?
        let amounts: ClosedRange<Int>
        let owner: Owner
    }

    private struct Holder {
        var held = 0
        var items = 0
        /// The numbers of the address's waiting requests in order. Some of the requests may have left.
        var queue = CircularBuffer<Int>()
        /// The number of requests in the queue that have not left.
        var waiting = 0
        /// Whether the address is in ``SharePool/turns``.
        var hasTurn = false

        var isIdle: Bool { items == 0 && waiting == 0 && !hasTurn }
    }

    private typealias Holders = [PeerAddress?: Holder]

    let total: Int
    /// The amount reserved for addresses that use little.
    let reserve: Int
    /// The amount of the reserve that each address may use.
    let firstAmount: Int
    private let share: Double
    /// The amount that no address uses; negative if ``restore(_:for:by:at:)`` has exceeded the total.
    private(set) var free: Int
    /// The addresses that use the resource. `nil` stands for clients that cannot be distinguished, which have no limit.
    private var holders: Holders = [:]
    private var items: [Int: Item] = [:]
    private var waiters: [Int: Waiter] = [:]
    /// The addresses with waiting requests, each once, in the order in which they are served.
    private var turns = CircularBuffer<PeerAddress?>()
    /// Whether the first address in `turns` waits until others give amounts back. No address is then served before it.
    private var isBlocked = false
    private var lastNumber = 0

    /// The minimum share of the free amount for an address with only one item, because a single upload may be large.
    private static var shareOfOnlyItem: Double { 0.5 }
    /// An item of variable size gets the amount that its address may still reserve, divided by this number.
    private static var pieces: Int { 8 }

    /// Makes a pool of `total`. `share` is the share of the free amount that one address may use, from 0 to 1. With 1,
    /// addresses have no limit, and nothing is reserved for new clients. `unit` is the smallest useful amount.
    init(total: Int, share: Double, unit: Int = 1) {
        self.total = max(total, 1)
        self.share = share
        reserve = share < 1 ? max(self.total / 10, 1) : 0
        firstAmount = max(reserve / 64, min(unit, reserve), 1)
        free = self.total
    }

    // MARK: - Reserving

    /// Reserves an amount for a new item. `amounts` are the minimum and the maximum that the item needs. An item of
    /// variable size gets an eighth of the amount that its address may still reserve, so that some is left for its next
    /// items.
    mutating func take(
        _ amounts: ClosedRange<Int>, for peer: PeerAddress?, by owner: Owner, at now: Instant
    ) throws(Refusal) -> Grant {
        guard !isBlocked else { throw .ofAll }
        let holder = holders.index(forKey: peer)
        if let holder, holders.values[holder].waiting > 0 { throw .ofAddress(limit: holders.values[holder].held) }
        let grant = Grant(number: nextNumber(), amount: try grant(amounts, to: peer, at: holder, isNewItem: true))
        add(grant, peer, at: holder, owner, now)
        return grant
    }

    /// Checks whether an amount could be reserved for a new item.
    func check(_ amount: Int, for peer: PeerAddress?) throws(Refusal) {
        _ = try grant(amount...amount, to: peer, at: holders.index(forKey: peer), isNewItem: true)
    }

    /// Checks whether an item could grow.
    func checkGrowth(_ number: Int, by amount: Int) throws(Refusal) {
        guard let item = items.index(forKey: number) else { throw .ofAll }
        let peer = items.values[item].peer
        _ = try grant(amount...amount, to: peer, at: holders.index(forKey: peer), isNewItem: false)
    }

    /// Increases the amount of an item. An item that was given back cannot grow.
    mutating func grow(_ number: Int, by amount: Int) throws(Refusal) {
        guard let item = items.index(forKey: number) else { throw .ofAll }
        let peer = items.values[item].peer
        guard let holder = holders.index(forKey: peer) else { throw .ofAll }
        _ = try grant(amount...amount, to: peer, at: holder, isNewItem: false)
        items.values[item].amount += amount
        holders.values[holder].held += amount
        free -= amount
    }

    /// Adds an existing item, even if it exceeds the total. A disk may report any size, so the sum is clamped to `Int`.
    mutating func restore(_ amount: Int, for peer: PeerAddress?, by owner: Owner, at now: Instant) -> Grant {
        let held = total - free
        let grant = Grant(number: nextNumber(), amount: min(amount, .max - held))
        add(grant, peer, at: holders.index(forKey: peer), owner, now)
        return grant
    }

    mutating func giveBack(_ number: Int) {
        guard let item = items.removeValue(forKey: number) else { return }
        free += item.amount
        guard let holder = holders.index(forKey: item.peer) else { return }
        holders.values[holder].held -= item.amount
        holders.values[holder].items -= 1
        if holders.values[holder].isIdle { holders.remove(at: holder) }
    }

    /// Decides how much of a requested amount an address gets. `holder` is the index of the address, looked up once per
    /// request; `nil` if the address uses nothing.
    private func grant(
        _ amounts: ClosedRange<Int>, to peer: PeerAddress?, at holder: Holders.Index?, isNewItem: Bool
    ) throws(Refusal) -> Int {
        let held = holder.map { holders.values[$0].held } ?? 0
        let items = (holder.map { holders.values[$0].items } ?? 0) + (isNewItem ? 1 : 0)
        // The maximum is computed as if the address used nothing.
        let limit = limit(of: peer, open: max(free - reserve, 0) + held, items: items) ?? held + max(free, 0)
        let rest = limit - held
        guard amounts.lowerBound <= free, amounts.lowerBound <= rest else {
            // The amount would exceed the limit even if all other addresses used nothing.
            let most = self.limit(of: peer, open: total - reserve, items: items)
            if let most, amounts.lowerBound > most { throw .ofAddress(limit: limit) }
            throw held == 0 || amounts.lowerBound > free ? .ofAll : .ofAddress(limit: limit)
        }
        return min(amounts.upperBound, max(min(rest, free) / Self.pieces, amounts.lowerBound))
    }

    /// The maximum amount for an address with a number of items; `nil` for no limit. `open` is the available amount.
    private func limit(of peer: PeerAddress?, open: Int, items: Int) -> Int? {
        guard peer != nil, share < 1 else { return nil }
        let part = items > 1 ? share : max(share, Self.shareOfOnlyItem)
        return max(Int((Double(open) * part).rounded(.up)), firstAmount)
    }

    private mutating func add(
        _ grant: Grant, _ peer: PeerAddress?, at holder: Holders.Index?, _ owner: Owner, _ now: Instant
    ) {
        items[grant.number] = Item(peer: peer, amount: grant.amount, since: now, owner: owner)
        free -= grant.amount
        if let holder {
            holders.values[holder].held += grant.amount
            holders.values[holder].items += 1
        } else {
            holders[peer] = Holder(held: grant.amount, items: 1)
        }
    }

    // MARK: - Waiting

    /// Returns an unused number for an item. A waiting request has the number of the item that it will get.
    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    /// Adds a request to the queue of its address. `number` is the number of the item that the request waits for.
    mutating func wait(_ number: Int, for amounts: ClosedRange<Int>, peer: PeerAddress?, owner: Owner) {
        waiters[number] = Waiter(peer: peer, amounts: amounts, owner: owner)
        var holder = holders[peer] ?? Holder()
        holder.queue.append(number)
        holder.waiting += 1
        if !holder.hasTurn { turns.append(peer) }
        holder.hasTurn = true
        holders[peer] = holder
    }

    /// Removes a request from its queue.
    mutating func leave(_ number: Int) {
        guard let waiter = waiters.removeValue(forKey: number), var holder = holders.removeValue(forKey: waiter.peer)
        else { return }
        holder.waiting -= 1
        // The numbers of requests that have left are removed together, because searching a long queue for each is slow.
        if holder.queue.count > 2 * holder.waiting + 16 {
            let waiters = waiters
            holder.queue.removeAll { waiters[$0] == nil }
        }
        holders[waiter.peer] = holder
        if waiters.isEmpty { isBlocked = false }
    }

    /// Serves waiting requests as long as the free amount allows.
    mutating func serve(at now: Instant) -> [Grant] {
        var served: [Grant] = []
        var unserved = 0
        isBlocked = false
        while unserved < turns.count, let peer = turns.first {
            guard let (number, waiter) = firstInQueue(of: peer) else {
                turns.removeFirst()
                holders[peer]?.hasTurn = false
                forgetIfIdle(peer)
                continue
            }
            do throws(Refusal) {
                let holder = holders.index(forKey: peer)
                let grant = Grant(
                    number: number, amount: try grant(waiter.amounts, to: peer, at: holder, isNewItem: true))
                waiters[number] = nil
                holders[peer]?.queue.removeFirst()
                holders[peer]?.waiting -= 1
                add(grant, peer, at: holder, waiter.owner, now)
                served.append(grant)
                unserved = 0
            } catch {
                guard case .ofAddress = error else {
                    isBlocked = true
                    return served
                }
                unserved += 1
            }
            turns.removeFirst()
            turns.append(peer)
        }
        return served
    }

    private mutating func firstInQueue(of peer: PeerAddress?) -> (number: Int, waiter: Waiter)? {
        while let number = holders[peer]?.queue.first {
            if let waiter = waiters[number] { return (number, waiter) }
            holders[peer]?.queue.removeFirst()
        }
        return nil
    }

    private mutating func forgetIfIdle(_ peer: PeerAddress?) {
        if holders[peer]?.isIdle == true { holders[peer] = nil }
    }

    // MARK: - Making room

    /// Returns the owner of the item that makes room for a new client: the oldest item of the address that uses most.
    /// Only items added before `start` are considered, and each item is chosen once. Clients that cannot be
    /// distinguished never make room. Returns `nil` if there is no such item, or if addresses have no limit.
    mutating func giveWay(takenBefore start: Instant) -> Owner? {
        guard share < 1 else { return nil }
        let old = items.filter { $0.value.since <= start && !$0.value.isGivingWay && $0.value.peer != nil }
        let chosen = old.max { first, second in
            let (one, other) = (holders[first.value.peer]?.held ?? 0, holders[second.value.peer]?.held ?? 0)
            return one == other ? first.key > second.key : one < other
        }
        guard let number = chosen?.key else { return nil }
        items[number]?.isGivingWay = true
        return items[number]?.owner
    }

    // MARK: - For status and tests

    func held(by peer: PeerAddress?) -> Int { holders[peer]?.held ?? 0 }

    var waitingCount: Int { waiters.count }

    /// Whether nothing is reserved and no request waits.
    var isEmpty: Bool { items.isEmpty && waiters.isEmpty && free == total }
}
