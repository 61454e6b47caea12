package import Logging
package import NIOCore
package import PostcardStore
import Synchronization

/// Counts the resources that each client of a server uses: connections, requests, memory and others. A ``SharePool``
/// for each resource decides which client gets more of the resource.
package final class ShareAccount: Sendable {
    private typealias Pool = SharePool<(any Channel)?>

    /// A request that waits for an item of a resource.
    private struct Ticket: Hashable {
        let resource: SharedResource
        let number: Int
    }

    private struct State {
        var pools: [Pool]
        var waiting: [Ticket: CheckedContinuation<Int, any Error>] = [:]
        /// For each connection that has had a waiting request, the latest such request. A connection has a single
        /// callback for its end, because a callback for each request would accumulate while a connection is kept alive.
        var connections: [ObjectIdentifier: Ticket] = [:]
        /// The log lines about refusals, by the codes of the refusals.
        var lines: [String: RepeatedLine] = [:]
    }

    package let limits: ShareLimits
    private let state: Mutex<State>
    private let meter: UploadMeter?
    private let logger: Logger?
    /// The minimum time that a client keeps its items when new clients find a resource used up.
    private let patience: Duration

    /// `meter` counts refusals. `logger` logs them, at most one line a minute for each code. `patience` is the minimum
    /// time that a client keeps its items when new clients find a resource used up.
    package init(
        _ limits: ShareLimits, meter: UploadMeter? = nil, logger: Logger? = nil, patience: Duration = .seconds(10)
    ) {
        self.limits = limits
        self.meter = meter
        state = Mutex(State(pools: SharedResource.allCases.map { limits.pool(of: $0) }))
        self.logger = logger
        self.patience = patience
    }

    /// A reserved amount of a resource, which is given back when this object is released.
    package final class Hold: Sendable {
        private let account: ShareAccount
        private let resource: SharedResource
        private let number: Int
        private let peer: PeerAddress?

        fileprivate init(_ account: ShareAccount, _ resource: SharedResource, _ number: Int, _ peer: PeerAddress?) {
            self.account = account
            self.resource = resource
            self.number = number
            self.peer = peer
        }

        deinit { account.giveBack(number, of: resource) }

        /// Reserves more of the resource for the same item. Throws ``UploadProblem`` if the amount exceeds a limit, and
        /// then reserves nothing.
        package func grow(by amount: Int) throws(UploadProblem) {
            try use { pool throws(Pool.Refusal) in try pool.grow(number, by: amount) }
        }

        /// Throws ``UploadProblem`` if the item could not reserve more of the resource.
        func check(_ amount: Int) throws(UploadProblem) {
            try use { pool throws(Pool.Refusal) in try pool.checkGrowth(number, by: amount) }
        }

        private func use(_ body: (inout Pool) throws(Pool.Refusal) -> Void) throws(UploadProblem) {
            do throws(Pool.Refusal) {
                try account.state.withLock { state throws(Pool.Refusal) in try body(&state.pools[resource.rawValue]) }
            } catch {
                throw account.refusal(error, of: resource, for: peer)
            }
        }
    }

    // MARK: - Reserving

    /// Reserves an amount of a resource. Throws ``UploadProblem``: 429 if the address has used up its share, or 503 if
    /// the resource is used up. If this client must later make room for a new one, `channel` is closed.
    package func take(
        _ amount: Int = 1, of resource: SharedResource, for peer: PeerAddress?, on channel: (any Channel)? = nil
    ) throws(UploadProblem) -> Hold {
        do throws(Pool.Refusal) {
            let grant = try state.withLock { state throws(Pool.Refusal) in
                try state.pools[resource.rawValue].take(amount...amount, for: peer, by: channel, at: .now)
            }
            return Hold(self, resource, grant.number, peer)
        } catch {
            throw refusal(error, of: resource, for: peer)
        }
    }

    /// Throws ``UploadProblem`` if an amount of a resource could not be reserved.
    func check(_ amount: Int = 1, of resource: SharedResource, for peer: PeerAddress?) throws(UploadProblem) {
        do throws(Pool.Refusal) {
            try state.withLock { state throws(Pool.Refusal) in
                try state.pools[resource.rawValue].check(amount, for: peer)
            }
        } catch {
            throw refusal(error, of: resource, for: peer)
        }
    }

    /// Counts an amount that is already in use, even if it exceeds the limit.
    func restore(_ amount: Int, of resource: SharedResource, for peer: PeerAddress?) -> Hold {
        let grant = state.withLock { $0.pools[resource.rawValue].restore(amount, for: peer, by: nil, at: .now) }
        return Hold(self, resource, grant.number, peer)
    }

    /// The refusal of a request that has waited too long for a resource.
    package func usedUp(_ resource: SharedResource) -> UploadProblem {
        let problem = resource.usedUp(total: limits[resource])
        note(problem)
        return problem
    }

    private func giveBack(_ number: Int, of resource: SharedResource) {
        let served = state.withLock { state in
            state.pools[resource.rawValue].giveBack(number)
            return Self.serve(resource, &state)
        }
        Self.resume(served)
    }

    // MARK: - Waiting

    /// Waits for an amount of a resource, and reserves it. `amounts` are the minimum and the maximum useful amount.
    /// Addresses are served in turn, and the requests of each address in order. Throws `CancellationError` if the task
    /// is cancelled, or if the connection `channel` ends.
    package func wait(
        for amounts: ClosedRange<Int>, of resource: SharedResource, for peer: PeerAddress?,
        on channel: (any Channel)? = nil
    ) async throws -> (hold: Hold, amount: Int) {
        if let taken = takeNow(amounts, of: resource, for: peer) { return taken }
        let ticket = Ticket(
            resource: resource, number: state.withLock { $0.pools[resource.rawValue].nextNumber() })
        let amount = try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { continuation in
                let isNew = state.withLock { state in
                    state.waiting[ticket] = continuation
                    state.pools[resource.rawValue].wait(ticket.number, for: amounts, peer: peer, owner: nil)
                    guard let channel else { return false }
                    return state.connections.updateValue(ticket, forKey: ObjectIdentifier(channel)) == nil
                }
                // The request of a client that disconnects leaves the queue.
                if let channel, isNew { channel.closeFuture.whenComplete { [self] _ in closed(channel) } }
                if Task.isCancelled || channel?.isActive == false { leave(ticket) }
                Self.resume(state.withLock { Self.serve(resource, &$0) })
            }
        } onCancel: {
            leave(ticket)
        }
        return (Hold(self, resource, ticket.number, peer), amount)
    }

    /// Reserves an amount of a resource; `nil` if the request would have to wait.
    package func takeNow(
        _ amounts: ClosedRange<Int>, of resource: SharedResource, for peer: PeerAddress?
    ) -> (hold: Hold, amount: Int)? {
        let grant = state.withLock { state in
            try? state.pools[resource.rawValue].take(amounts, for: peer, by: nil, at: .now)
        }
        return grant.map { (Hold(self, resource, $0.number, peer), $0.amount) }
    }

    /// Ends the wait of a closed connection. `channel` is retained so that no other channel gets its identifier.
    private func closed(_ channel: any Channel) {
        let ticket = state.withLock { $0.connections.removeValue(forKey: ObjectIdentifier(channel)) }
        if let ticket { leave(ticket) }
    }

    private func leave(_ ticket: Ticket) {
        let (continuation, served) = state.withLock { state in
            // Without a continuation, the request is not waiting yet, or no longer.
            let continuation = state.waiting.removeValue(forKey: ticket)
            state.pools[ticket.resource.rawValue].leave(ticket.number)
            return (continuation, Self.serve(ticket.resource, &state))
        }
        continuation?.resume(throwing: CancellationError())
        Self.resume(served)
    }

    private typealias Served = [(continuation: CheckedContinuation<Int, any Error>, amount: Int)]

    private static func serve(_ resource: SharedResource, _ state: inout State) -> Served {
        guard state.pools[resource.rawValue].waitingCount > 0 else { return [] }
        return state.pools[resource.rawValue].serve(at: .now).compactMap { grant in
            state.waiting.removeValue(forKey: Ticket(resource: resource, number: grant.number)).map {
                ($0, grant.amount)
            }
        }
    }

    private static func resume(_ served: Served) {
        for (continuation, amount) in served { continuation.resume(returning: amount) }
    }

    // MARK: - Refusing

    private func refusal(_ refusal: Pool.Refusal, of resource: SharedResource, for peer: PeerAddress?) -> UploadProblem
    {
        let problem: UploadProblem
        switch refusal {
        // All addresses wait for the same removal of uploads, so the refusal does not name a share.
        case .ofAddress where resource == .excessBytes: problem = resource.usedUp(total: limits[resource])
        case .ofAddress(let limit): problem = resource.shareUsedUp(limit: limit)
        case .ofAll:
            problem = resource.usedUp(total: limits[resource])
            let isNewcomer = state.withLock { $0.pools[resource.rawValue].held(by: peer) == 0 }
            if isNewcomer { makeRoom(in: resource) }
        }
        note(problem)
        return problem
    }

    /// Closes the connection or stream that must make room for a new client, if there is one.
    package func makeRoom(in resource: SharedResource) {
        let start = ContinuousClock.now - patience
        let channel = state.withLock { $0.pools[resource.rawValue].giveWay(takenBefore: start) }
        channel??.close(promise: nil)
    }

    /// Counts a refusal. Refusals with the same code are logged at most once a minute.
    private func note(_ problem: UploadProblem) {
        meter?.refused(problem)
        guard let logger else { return }
        let count = state.withLock { $0.lines[problem.code.rawValue, default: RepeatedLine()].count(at: .now) }
        guard let count else { return }
        logger.warning(
            "Refused clients that hold too much", metadata: ["code": "\(problem.code)", "count": "\(count)"])
    }

    // MARK: - For status and tests

    /// How much of a resource all clients use.
    package struct Usage: Sendable {
        package let resource: SharedResource
        package let used: Int
        package let total: Int
        /// The number of requests that wait for the resource.
        package let waiting: Int
    }

    /// The use of each limited resource.
    package var usage: [Usage] {
        state.withLock { state in
            SharedResource.allCases.filter { limits[$0] < .max }.map { resource in
                let pool = state.pools[resource.rawValue]
                return Usage(
                    resource: resource, used: pool.total - pool.free, total: pool.total, waiting: pool.waitingCount)
            }
        }
    }

    /// The amount of a resource that no client uses.
    package func free(of resource: SharedResource) -> Int { state.withLock { $0.pools[resource.rawValue].free } }

    /// The number of requests that wait for a resource.
    func waitingCount(for resource: SharedResource) -> Int {
        state.withLock { $0.pools[resource.rawValue].waitingCount }
    }
}

/// Limits the log lines about a repeated event: the first event is logged at once, later ones at most once a minute.
package struct RepeatedLine: Sendable {
    private static let interval = Duration.seconds(60)

    private var written: ContinuousClock.Instant?
    private var unwritten = 0

    package init() {}

    /// Counts an event. Returns the number of events since the last log line if a line must be written now, and
    /// otherwise `nil`.
    package mutating func count(at now: ContinuousClock.Instant) -> Int? {
        unwritten += 1
        if let written, written.duration(to: now) < Self.interval { return nil }
        defer { unwritten = 0 }
        written = now
        return unwritten
    }
}
