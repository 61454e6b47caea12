import NIOCore
import PostcardFoundation
import PostcardServer

/// Decides when the message about each record is sent to the endpoint of a webhook.
///
/// The type is a pure value: it receives events and the time, and returns actions.
///
/// - After a failure, a record waits from seconds to an hour, and does not delay others. At most half of the messages
///   in flight are repeated messages.
/// - If the messages of several records fail in succession, the endpoint counts as down. Single messages, called
///   probes, then test whether the endpoint works again, after waits from seconds to five minutes. Once a message is
///   accepted, the endpoint is up. The records that failed meanwhile follow: two for each accepted message. Two
///   failures are not an outage, so an endpoint that refuses only these records stays up for others.
///
/// | state of a record | event | next state |
/// | --- | --- | --- |
/// | `absent` | `found` | `new`, `inFlight` |
/// | `new`: its message was not sent yet | `ended`, `due` | `inFlight` |
/// | `inFlight`: its message is being sent | `ended` | `absent`, `failed` |
/// | `failed`: its message waits to be sent again | `ended`, `due` | `inFlight` |
///
/// Every event, not only `due`, also sends the messages that are due.
struct WebhookOutbox: Sendable {
    /// The time since any fixed moment.
    typealias Instant = Duration

    enum Event: Sendable, Hashable {
        /// Records are in the outbox of the store, and some may already be known. All are from the same client; `nil`
        /// if the client is unknown.
        case found([UploadID], of: PeerAddress?)
        /// An attempt to send the message about a record has ended.
        case ended(UploadID, AttemptEnd)
        /// The time ``wakeTime`` was reached.
        case due
    }

    /// The outcome of an attempt.
    enum AttemptEnd: Sendable, Hashable {
        case delivered
        /// The record was deleted, so that no message is needed.
        case gone
        /// The endpoint did not accept the message, for this reason.
        case failed(String)
        /// The store could not read the record. This says nothing about the endpoint.
        case unreadable(String)
    }

    enum Action: Sendable, Hashable {
        /// Send the message about a record, and report the outcome.
        case send(UploadID)
        /// Remove a record from the outbox of the store.
        case settle(UploadID)
        /// Log the end of an attempt that was never made, which is impossible.
        case fault(ImpossibleEvent)
    }

    /// Limits and waiting times.
    struct Options: Sendable {
        var maximumInFlight = 8
        var firstWait = Duration.seconds(5)
        var longestWait = Duration.seconds(3600)
        /// The factor by which the wait grows with each failed attempt.
        var factor = 4
        /// The number of different records whose messages must fail in succession before the endpoint counts as down.
        var failuresOfOutage = 3
        var firstProbe = Duration.seconds(5)
        var longestProbe = Duration.seconds(300)
    }

    /// The state of a record whose message failed, for `GET /webhooks`.
    struct Stuck: Sendable, Hashable {
        let id: UploadID
        let attempts: Int
        let failure: String
        /// The time of the next attempt; `nil` if the record waits until the endpoint accepts messages.
        let next: Instant?
    }

    /// What has happened to the message about a record.
    private enum Entry {
        /// The message was not sent yet. The record is in ``fresh``.
        case new
        /// The message is being sent.
        ///
        /// - Parameter after: The last failed attempt; `nil` if this is the first attempt.
        case inFlight(after: Failure?)
        /// The message has failed. The record is in ``waiting`` or ``held``.
        case failed(Failure)

        var failure: Failure? {
            switch self {
            case .new: nil
            case .inFlight(let failure): failure
            case .failed(let failure): failure
            }
        }
    }

    private struct Failure {
        let attempts: Int
        let reason: String
    }

    private enum Health {
        /// The endpoint works.
        ///
        /// - Parameter failed: The records that have failed since the last success.
        case up(failed: Set<UploadID>)
        /// The endpoint is down.
        ///
        /// - Parameters:
        ///   - failures: The number of failed probes.
        ///   - next: The time of the next probe.
        ///   - probe: The record whose message is the probe in flight.
        case down(failures: Int, next: Instant, probe: UploadID?)
    }

    private let options: Options
    private var entries: [UploadID: Entry] = [:]
    /// The records without any attempt. Clients are served in turn, so a client with many records delays no others.
    private var fresh = TurnQueue<UploadID>()
    /// The records whose message failed and is sent again at a known time. The record with the latest time is first.
    private var waiting: [(until: Instant, id: UploadID)] = []
    /// The records whose messages failed while the endpoint was down, or just before. Their next attempt has no set
    /// time.
    private var held = CircularBuffer<UploadID>()
    /// The number of records in `held` whose messages may be sent now.
    private var releases = 0
    /// The time at which the next held record may be sent regardless of `releases`, if the endpoint works.
    private var nextRelease = Instant.zero
    private var health = Health.up(failed: [])
    private var inFlightCount = 0
    private var repeatedInFlightCount = 0

    /// The number of accepted messages.
    private(set) var deliveredCount = 0
    private(set) var failedCount = 0

    init(_ options: Options = Options()) {
        self.options = options
    }

    /// The number of records whose message was not delivered yet.
    var pendingCount: Int { entries.count }

    /// The number of records whose message has failed.
    var stuckCount: Int { waiting.count + held.count + repeatedInFlightCount }

    /// Whether the endpoint accepts no messages at all.
    var isDown: Bool { if case .down = health { true } else { false } }

    /// The records whose message has failed, oldest first.
    func stuck(limit: Int) -> [Stuck] {
        let items = waiting.map { (id: $0.id, next: isDown ? nil : $0.until) } + held.map { (id: $0, next: nil) }
        return items.sorted { $0.id < $1.id }.prefix(limit).map { item in
            let failure = entries[item.id]?.failure
            return Stuck(
                id: item.id, attempts: failure?.attempts ?? 0, failure: failure?.reason ?? "", next: item.next)
        }
    }

    // MARK: - Events

    /// Handles an event. Returns the actions in the order to perform them.
    mutating func handle(
        _ event: Event, at now: Instant, using random: inout some RandomNumberGenerator
    ) -> [Action] {
        var actions: [Action] = []
        switch event {
        case .found(let ids, let peer):
            for id in ids where entries[id] == nil {
                entries[id] = .new
                fresh.append(id, of: peer)
            }
        case .ended(let id, let outcome):
            guard case .inFlight(let earlier)? = entries[id] else {
                return [.fault(ImpossibleEvent(event, in: entries[id].map { $0 as Any } ?? "absent"))]
            }
            inFlightCount -= 1
            if earlier != nil { repeatedInFlightCount -= 1 }
            let attempts = (earlier?.attempts ?? 0) + 1
            switch outcome {
            case .failed(let reason):
                entries[id] = .failed(Failure(attempts: attempts, reason: reason))
                failed(id, after: attempts, at: now, using: &random)
            case .unreadable(let reason):
                entries[id] = .failed(Failure(attempts: attempts, reason: reason))
                unreadable(id, after: attempts, at: now, using: &random)
            case .delivered, .gone:
                entries[id] = nil
                actions.append(.settle(id))
                if outcome == .delivered { delivered(at: now) } else { withdrawn(id, at: now) }
            }
        case .due: break
        }
        return actions + sends(at: now).map(Action.send)
    }

    private mutating func failed(
        _ id: UploadID, after attempts: Int, at now: Instant, using random: inout some RandomNumberGenerator
    ) {
        failedCount += 1
        switch health {
        case .up(var failed):
            failed.insert(id)
            guard failed.count < options.failuresOfOutage else {
                // Some records in `failed` are not in `waiting`, because another attempt for them is in flight.
                held.append(contentsOf: waiting.map(\.id).filter(failed.contains).sorted() + [id])
                waiting.removeAll { failed.contains($0.id) }
                health = .down(failures: 0, next: now + options.firstProbe, probe: nil)
                return
            }
            health = .up(failed: failed)
            wait(id, after: attempts, at: now, using: &random)
        case .down(let failures, _, id):
            held.append(id)
            let wait = Duration.growing(
                after: failures + 2, from: options.firstProbe, upTo: options.longestProbe, by: 2)
            health = .down(
                failures: failures + 1, next: now + wait * Double.random(in: 0.8...1.2, using: &random), probe: nil)
        case .down: held.append(id)
        }
    }

    private mutating func unreadable(
        _ id: UploadID, after attempts: Int, at now: Instant, using random: inout some RandomNumberGenerator
    ) {
        wait(id, after: attempts, at: now, using: &random)
        // The next probe is delayed, because the store may be unable to read any record.
        if case .down(let failures, _, id) = health {
            health = .down(failures: failures, next: now + options.firstProbe, probe: nil)
        }
    }

    private mutating func delivered(at now: Instant) {
        deliveredCount += 1
        if isDown { nextRelease = now + options.firstProbe }
        health = .up(failed: [])
        releases = held.isEmpty ? 0 : min(releases + 2, options.maximumInFlight)
    }

    /// Removes a deleted record. The endpoint may be up or down.
    private mutating func withdrawn(_ id: UploadID, at now: Instant) {
        switch health {
        case .up(var failed):
            failed.remove(id)
            health = .up(failed: failed)
        case .down(let failures, _, id): health = .down(failures: failures, next: now, probe: nil)
        case .down: break
        }
    }

    // MARK: - Sending

    private mutating func sends(at now: Instant) -> [UploadID] {
        if case .down(let failures, let next, nil) = health {
            // Any record can be the probe. A record that has not failed yet is preferred.
            guard next <= now, inFlightCount == 0, let id = fresh.popFirst() ?? held.popFirst() ?? waiting.popLast()?.id
            else { return [] }
            health = .down(failures: failures, next: next, probe: id)
            begin(id)
            return [id]
        }
        guard !isDown else { return [] }
        var ids: [UploadID] = []
        while canRepeat, let id = nextRepeated(at: now) {
            begin(id)
            ids.append(id)
        }
        while inFlightCount < options.maximumInFlight, let id = fresh.popFirst() {
            begin(id)
            ids.append(id)
        }
        return ids
    }

    /// Whether the message about a failed record may be repeated now.
    private var canRepeat: Bool {
        inFlightCount < options.maximumInFlight && repeatedInFlightCount < max(options.maximumInFlight / 2, 1)
    }

    private mutating func nextRepeated(at now: Instant) -> UploadID? {
        if let next = waiting.last, next.until <= now { return waiting.popLast()?.id }
        guard !held.isEmpty else { return nil }
        if releases > 0 {
            releases -= 1
        } else if nextRelease <= now {
            nextRelease = now + options.firstProbe
        } else {
            return nil
        }
        return held.popFirst()
    }

    private mutating func begin(_ id: UploadID) {
        let failure = entries[id]?.failure
        entries[id] = .inFlight(after: failure)
        inFlightCount += 1
        if failure != nil { repeatedInFlightCount += 1 }
    }

    /// The time at which ``Event/due`` must be reported; `nil` if no record waits for a time.
    var wakeTime: Instant? {
        switch health {
        case .up:
            guard canRepeat else { return nil }
            return [waiting.last?.until, held.isEmpty ? nil : nextRelease].compactMap(\.self).min()
        case .down(_, let next, nil): return inFlightCount == 0 && !entries.isEmpty ? next : nil
        case .down: return nil
        }
    }

    // MARK: - Waiting

    /// Makes a record wait. The wait grows with each failed attempt.
    private mutating func wait(
        _ id: UploadID, after attempts: Int, at now: Instant, using random: inout some RandomNumberGenerator
    ) {
        let wait = Duration.growing(
            after: attempts, from: options.firstWait, upTo: options.longestWait, by: options.factor)
        insert(id, until: now + wait * Double.random(in: 0.8...1.2, using: &random))
    }

    private mutating func insert(_ id: UploadID, until: Instant) {
        var (lower, upper) = (0, waiting.count)
        while lower < upper {
            let middle = (lower + upper) / 2
            if waiting[middle].until > until { lower = middle + 1 } else { upper = middle }
        }
        waiting.insert((until, id), at: lower)
    }
}

/// A queue that serves clients in turn. The items of each client stay in order.
struct TurnQueue<Item: Sendable>: Sendable {
    private var queues: [PeerAddress?: CircularBuffer<Item>] = [:]
    /// The clients that have items, each once, in the order in which they are served.
    private var turns = CircularBuffer<PeerAddress?>()

    /// - Parameter peer: The client that the item belongs to; `nil` if the client is unknown.
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
