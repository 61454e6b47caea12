import Foundation
import PostcardReceivingSupport
import PostcardServer
import PostcardTestSupport
import Testing

@testable import PostcardReceiver

private func id(_ number: Int) -> UploadID { UploadID(earliestAt: Int64(number)) }

/// An outbox with a seeded generator, and numbers instead of identifiers.
private struct Bench {
    private(set) var outbox = WebhookOutbox()
    private var random = SeededGenerator(seed: 1)

    /// - Returns: The records that are sent.
    mutating func handle(_ event: WebhookOutbox.Event, at seconds: Double) -> [UploadID] {
        outbox.handle(event, at: .seconds(seconds), using: &random).compactMap { action in
            if case .send(let id) = action { id } else { nil }
        }
    }

    mutating func found(_ numbers: some Sequence<Int>, of peer: PeerAddress? = nil, at seconds: Double) -> [UploadID] {
        handle(.found(numbers.map { id($0) }, of: peer), at: seconds)
    }

    mutating func ended(_ number: Int, _ delivery: WebhookOutbox.AttemptEnd, at seconds: Double) -> [UploadID] {
        handle(.ended(id(number), delivery), at: seconds)
    }
}

@Suite struct WebhookOutboxTests {
    private enum Step {
        case found([Int])
        case delivered(Int)
        case failed(Int)
        case gone(Int)
        case unreadable(Int)
        case due
    }

    /// Steps with their times in seconds, and the records that are sent then. Waits vary by a fifth.
    private static let stories: [(name: String, steps: [(at: Double, step: Step, sent: [Int])])] = [
        ("a record is sent at once, and once", [(0, .found([1]), [1]), (1, .found([1]), []), (2, .delivered(1), [])]),
        (
            "an end that nothing began changes nothing",
            [(0, .delivered(1), []), (1, .found([1]), [1]), (2, .delivered(1), []), (3, .failed(1), []), (9, .due, [])]
        ),
        ("eight are sent at a time", [(0, .found(Array(1...9)), Array(1...8)), (1, .delivered(3), [9])]),
        (
            "a record that fails waits for longer each time",
            [
                (0, .found([1]), [1]), (0, .failed(1), []), (3.9, .due, []), (6.1, .due, [1]), (7, .failed(1), []),
                (22, .due, []), (32, .due, [1]), (32, .failed(1), []), (95, .due, []), (129, .due, [1]),
            ]
        ),
        (
            "one that fails does not hold up others",
            [(0, .found([1]), [1]), (0, .failed(1), []), (1, .found([2, 3]), [2, 3]), (2, .delivered(2), [])]
        ),
        (
            "after three different ones the endpoint is down: one at a time is sent",
            [
                (0, .found([1, 2, 3]), [1, 2, 3]), (0, .failed(1), []), (0, .failed(2), []), (0, .failed(3), []),
                (1, .found([4, 5]), []), (4.9, .due, []), (5, .due, [4]), (6, .failed(4), []), (13, .due, []),
                (18.1, .due, [5]), (19, .failed(5), []), (43.1, .due, [1]),
            ]
        ),
        (
            "once one is accepted the others follow, two for each that is accepted",
            [
                (0, .found([1, 2, 3]), [1, 2, 3]), (0, .failed(1), []), (0, .failed(2), []), (0, .failed(3), []),
                (5, .due, [1]), (6, .delivered(1), [2, 3]), (7, .delivered(2), []), (7, .delivered(3), []),
            ]
        ),
        (
            "one after the other follows in any case",
            [
                (0, .found([1, 2, 3, 4, 5]), [1, 2, 3, 4, 5]), (0, .failed(1), []), (0, .failed(2), []),
                (0, .failed(3), []), (0, .failed(4), []), (0, .failed(5), []), (5, .due, [1]),
                (6, .delivered(1), [2, 3]), (6, .failed(2), []), (6, .failed(3), []), (10.9, .due, []),
                (11, .due, [4]),
            ]
        ),
        (
            "the same one three times is no outage",
            [
                (0, .found([1]), [1]), (0, .failed(1), []), (6, .due, [1]), (6, .failed(1), []), (30, .due, [1]),
                (30, .failed(1), []), (31, .found([2]), [2]),
            ]
        ),
        (
            "a success in between is no outage",
            [
                (0, .found([1, 2, 3, 4]), [1, 2, 3, 4]), (0, .failed(1), []), (0, .failed(2), []),
                (0, .delivered(3), []), (0, .failed(4), []), (1, .found([5]), [5]),
            ]
        ),
        (
            "a success of one that was under way ends an outage",
            [
                (0, .found([1, 2, 3, 4]), [1, 2, 3, 4]), (0, .failed(1), []), (0, .failed(2), []),
                (0, .failed(3), []), (1, .delivered(4), [1, 2]),
            ]
        ),
        (
            "nothing is probed before those that were under way have ended",
            [
                (0, .found([1, 2, 3, 4]), [1, 2, 3, 4]), (0, .failed(1), []), (0, .failed(2), []),
                (0, .failed(3), []), (9, .due, []), (10, .failed(4), [1]),
            ]
        ),
        (
            "a deleted record is not a failure, and another one is probed instead",
            [
                (0, .found([1, 2, 3]), [1, 2, 3]), (0, .gone(1), []), (0, .failed(2), []), (0, .failed(3), []),
                (1, .found([4]), [4]), (1, .failed(4), []), (7, .due, [2]), (7, .gone(2), [3]),
            ]
        ),
        (
            "records that the store cannot read wait, and are no outage of the endpoint",
            [
                (0, .found([1, 2, 3, 4]), [1, 2, 3, 4]), (0, .unreadable(1), []), (0, .unreadable(2), []),
                (0, .unreadable(3), []), (0, .failed(4), []), (1, .found([5]), [5]), (6.1, .due, [1, 2, 3, 4]),
            ]
        ),
        (
            "one that cannot be read as a probe leaves the endpoint down, and is not probed at once",
            [
                (0, .found([1, 2, 3]), [1, 2, 3]), (0, .failed(1), []), (0, .failed(2), []), (0, .failed(3), []),
                (1, .found([4]), []), (5, .due, [4]), (6, .unreadable(4), []), (10.9, .due, []), (11, .due, [1]),
                (12.1, .delivered(1), [4, 2, 3]),
            ]
        ),
    ]

    @Test(arguments: stories.indices) func `what is sent, and when`(index: Int) {
        let (name, steps) = Self.stories[index]
        var bench = Bench()
        for (at, step, sent) in steps {
            let actual =
                switch step {
                case .found(let numbers): bench.found(numbers, at: at)
                case .delivered(let number): bench.ended(number, .delivered, at: at)
                case .failed(let number): bench.ended(number, .failed("503"), at: at)
                case .unreadable(let number): bench.ended(number, .unreadable("disk"), at: at)
                case .gone(let number): bench.ended(number, .gone, at: at)
                case .due: bench.handle(.due, at: at)
                }
            #expect(Set(actual) == Set(sent.map { id($0) }), "\(name): \(at) s, \(step)")
        }
    }

    @Test func `the end of an attempt that was not made is a mistake`() {
        var outbox = WebhookOutbox()
        var random = SeededGenerator(seed: 1)
        let actions = outbox.handle(.ended(id(1), .delivered), at: .zero, using: &random)
        guard case .fault? = actions.first else {
            Issue.record("\(actions)")
            return
        }
    }

    @Test func `what is stuck is listed with the last failure, oldest first`() {
        var bench = Bench()
        _ = bench.found([3, 1, 2], at: 0)
        _ = bench.ended(3, .failed("404"), at: 0)
        _ = bench.ended(1, .failed("500"), at: 0)
        let stuck = bench.outbox.stuck(limit: 10)
        #expect(stuck.map(\.id) == [id(1), id(3)])
        #expect(stuck.map(\.failure) == ["500", "404"])
        #expect(stuck.map(\.attempts) == [1, 1])
        #expect(stuck.allSatisfy { ($0.next ?? .zero) > .seconds(3.9) })
        #expect(bench.outbox.pendingCount == 3)
        #expect(bench.outbox.stuckCount == 2)
        #expect(bench.outbox.stuck(limit: 1).map(\.id) == [id(1)])
        _ = bench.ended(2, .failed("503"), at: 1)
        #expect(bench.outbox.isDown)
        #expect(bench.outbox.stuck(limit: 10).map(\.next) == [nil, nil, nil])
    }

    @Test func `a client with many records does not hold up another's`() {
        var bench = Bench()
        _ = bench.found(1...1000, of: TestPeers.all[0], at: 0)
        _ = bench.found([2000, 2001], of: TestPeers.all[1], at: 1)
        let sent = (1...4).flatMap { bench.ended($0, .delivered, at: 2) }
        #expect(sent == [9, 2000, 10, 2001].map { id($0) })
        #expect(bench.ended(5, .delivered, at: 2) == [id(11)])
    }

    @Test func `repeated ones leave half of the places to new ones`() {
        var bench = Bench()
        for number in 1...6 {
            _ = bench.found([number, number + 10], at: 0)
            _ = bench.ended(number, .failed("500"), at: 0)
            _ = bench.ended(number + 10, .delivered, at: 0)
        }
        #expect(bench.handle(.due, at: 7).count == 4)
        #expect(bench.found([7, 8, 9, 10, 11], at: 8) == [7, 8, 9, 10].map { id($0) })
        #expect(bench.outbox.wakeTime == nil)
    }

    @Test func `no wait is longer than an hour and a fifth`() {
        var bench = Bench()
        _ = bench.found([1], at: 0)
        var now = 0.0
        for _ in 0..<20 {
            _ = bench.ended(1, .failed("500"), at: now)
            guard let wake = bench.outbox.wakeTime else {
                Issue.record("It is never sent again.")
                return
            }
            #expect(wake - .seconds(now) <= .seconds(4320))
            // Whole seconds, because a number may be a little less than the time that it stands for.
            now = (wake / .seconds(1)).rounded(.up)
            #expect(bench.handle(.due, at: now) == [id(1)])
        }
    }
}

/// Plays histories of an endpoint that fails in many ways against an outbox.
@Suite(.timeLimit(.minutes(10)))
struct WebhookOutboxHistoryTests {
    /// An endpoint, and what is on the way to it.
    private struct History {
        var random: SeededGenerator
        var outbox = WebhookOutbox()
        var now = 0.0
        /// Attempts in flight, and when they end.
        var inFlight: [(id: UploadID, ends: Double)] = []
        var found: Set<UploadID> = []
        var settled: Set<UploadID> = []
        var arrivals: [Double] = []
        /// When the endpoint works, in turns with when it does not.
        var turns: [Double] = []
        var poisoned: Set<UploadID> = []
        var isHealed = false
        var lastFound = 0
        var problems: [String] = []
        /// The changes of the records' states, if they are noted.
        var changes: Set<StateChange> = []
        var notesChanges = false

        init(seed: UInt64) {
            random = SeededGenerator(seed: seed)
            arrivals = (0..<Int.random(in: 1...120, using: &random)).map { _ in
                Double.random(in: 0...20_000, using: &random)
            }.sorted()
            var time = Double.random(in: 0...3000, using: &random)
            while time < 25_000 {
                turns.append(time)
                time += pow(10, Double.random(in: 0...4, using: &random))
            }
        }

        private var isUp: Bool { isHealed || turns.count { $0 <= now }.isMultiple(of: 2) }

        private mutating func note(_ before: WebhookOutbox, _ event: WebhookOutbox.Event) {
            let (before, after) = (Self.states(of: before), Self.states(of: outbox))
            for id in Set(before.keys).union(after.keys) {
                let change = StateChange(before[id] ?? "absent", event, after[id] ?? "absent")
                if change != StateChange(before[id] ?? "absent", event, before[id] ?? "absent") {
                    changes.insert(change)
                }
            }
        }

        /// The states of all records, which the outbox does not show.
        private static func states(of outbox: WebhookOutbox) -> [UploadID: Any] {
            let entries = Mirror(reflecting: outbox).descendant("entries") ?? [:]
            let pairs = Mirror(reflecting: entries).children.compactMap { entry in
                let pair = Mirror(reflecting: entry.value).children.map(\.value)
                return (pair.first as? UploadID).map { ($0, pair[1]) }
            }
            return Dictionary(uniqueKeysWithValues: pairs)
        }

        mutating func handle(_ event: WebhookOutbox.Event) {
            let wasDown = outbox.isDown
            let free = inFlight.count
            let before = outbox
            let actions = outbox.handle(event, at: .seconds(now), using: &random)
            if notesChanges { note(before, event) }
            var sent: [UploadID] = []
            for action in actions {
                switch action {
                case .fault(let fault): problems.append("\(fault)")
                case .settle(let id):
                    if !settled.insert(id).inserted { problems.append("\(id) is settled twice") }
                case .send(let id):
                    sent.append(id)
                    if !found.contains(id) || settled.contains(id) { problems.append("\(id) is sent for nothing") }
                    if inFlight.contains(where: { $0.id == id }) { problems.append("\(id) is in flight twice") }
                    let duration = Bool.random(using: &random) ? 0.01 : Double.random(in: 0...15, using: &random)
                    inFlight.append((id, now + duration))
                }
            }
            if inFlight.count > 8 { problems.append("\(inFlight.count) are in flight") }
            if outbox.isDown, wasDown, sent.count > 1 || (free > 0 && !sent.isEmpty && inFlight.count > 1) {
                problems.append("more than one is sent while the endpoint is down")
            }
            if case .found(let ids, _) = event, !outbox.isDown, free + ids.count <= 4, !sent.contains(ids[0]) {
                problems.append("a new record waits although there is room")
            }
            // Else it is asked again and again, for nothing.
            if case .due = event, sent.isEmpty, let wake = outbox.wakeTime, wake <= .seconds(now) {
                problems.append("it is due, and nothing happens")
            }
        }

        /// Moves on to what happens next.
        ///
        /// - Returns: `false` if nothing will.
        mutating func step() -> Bool {
            let ends = inFlight.map(\.ends).min() ?? .infinity
            let arrival = arrivals.first ?? .infinity
            // A microsecond later, because a number may be a little less than the time that it stands for.
            let wake = outbox.wakeTime.map { max($0 / .seconds(1), now) + 1e-6 } ?? .infinity
            let next = min(ends, arrival, wake)
            guard next < .infinity else { return false }
            now = next
            if next == arrival {
                arrivals.removeFirst()
                lastFound += 1
                let new = id(lastFound)
                found.insert(new)
                if Int.random(in: 0..<4, using: &random) == 0 { poisoned.insert(new) }
                handle(.found([new], of: nil))
            } else if let index = inFlight.firstIndex(where: { $0.ends == next }) {
                let ended = inFlight.remove(at: index).id
                let isDelivered = isUp && (isHealed || !poisoned.contains(ended))
                switch Int.random(in: 0..<50, using: &random) {
                case 0: handle(.ended(ended, .gone))
                case 1...3 where !isHealed: handle(.ended(ended, .unreadable("no")))
                default: handle(.ended(ended, isDelivered ? .delivered : .failed("no")))
                }
            } else {
                handle(.due)
            }
            return true
        }
    }

    @Test func `the table has all changes of a record's state, and no others`() throws {
        var changes: Set<StateChange> = []
        for seed in 0..<6 {
            var history = History(seed: UInt64(seed))
            history.notesChanges = true
            while history.now < 30_000, history.step() {}
            changes.formUnion(history.changes)
        }
        let table = try StateChange.table(
            inDocumentationOf: "Sources/Receiving/PostcardReceiver/Webhooks/WebhookOutbox.swift")
        #expect(changes.subtracting(table) == [], "The table lacks these.")
        #expect(table.subtracting(changes) == [], "These never happened.")
    }

    @Test func `every record is delivered once the endpoint works, whatever happened before`() {
        let variable = ProcessInfo.processInfo.environment["POSTCARD_WEBHOOK_HISTORIES"]
        for seed in 0..<UInt64(variable.flatMap { UInt64($0) } ?? 300) {
            var history = History(seed: seed)
            while history.now < 30_000, history.problems.isEmpty, history.step() {}
            history.isHealed = true
            let healed = max(history.now, 30_000)
            var steps = 0
            while history.settled != history.found, steps < 20_000, history.problems.isEmpty, history.step() {
                steps += 1
            }
            #expect(history.problems.isEmpty, "seed \(seed): \(history.problems)")
            #expect(history.settled == history.found, "seed \(seed): some are never delivered")
            #expect(history.outbox.pendingCount == 0)
            // The longest wait, and the time of those that follow.
            #expect(history.now - healed < 5400, "seed \(seed)")
            if !history.problems.isEmpty || history.settled != history.found { return }
        }
    }
}
