import Foundation
import PostcardFoundation
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// What each event leads to in each state of the machine.
@Suite struct QueueMachineEventsTests {
    typealias Event = QueueMachine.Event

    private static let id = AttemptID(upload: UUID(), number: 1)
    private static let other = AttemptID(upload: UUID(), number: 1)
    private static let row: UploadRow = {
        let world = QueueWorld.withUpload(session: "session")
        return world.row(world.uploads[0])
    }()

    /// One event of each kind.
    private static let events: [Event] = [
        .woken(.init()), .closed([]), .done, .compared(carried: [:], recorded: [:], events: []), .recorded([:]),
        .claimed([row]), .exhausted(nextDue: nil), .refused(.init(outcome: .interrupted(.lost), hasBegun: false)),
        .listed([:], events: []), .failed(mayPass: false),
    ]

    private static func name(_ event: Event) -> String { String("\(event)".prefix { $0 != "(" }) }

    /// The name of a state. A new state needs a row below.
    private static func name(_ state: QueueMachine.State) -> String {
        switch state {
        case .resting: "resting"
        case .connecting: "connecting"
        case .comparing: "comparing"
        case .settling: "settling"
        case .dropping: "dropping"
        case .reading: "reading"
        case .cancelling: "cancelling"
        case .claiming: "claiming"
        case .beginning: "beginning"
        case .listing: "listing"
        case .calling: "calling"
        }
    }

    private static let rules = QueueMachine.Rules(
        session: "session", retryPolicy: .exact, maximumConcurrentUploads: 2)

    private static let empty = [Event.woken(.init()), .done, .compared(carried: [:], recorded: [:], events: [])]
    /// One attempt has begun.
    private static let begun = empty + [.claimed([row]), .done, .exhausted(nextDue: nil)]
    private static let ended = AttemptEvent.ended(
        row.attempt, .response(status: 201, headerFields: [:], url: nil, method: nil))
    private static let one = [
        Event.woken(.init()), .done, .compared(carried: [id: false], recorded: [id: 1], events: []),
    ]

    /// The events that lead to a state, and the actions that follow from the results that are possible there. Any
    /// action may fail.
    static let states: [(name: String, events: [Event], actions: [String: String])] = [
        ("resting", [], ["woken": "connect", "closed": "callHandlers"]),
        ("connecting", [.woken(.init())], ["done": "compare"]),
        ("comparing", [.woken(.init()), .done], ["compared": "claim"]),
        (
            "dropping", empty.dropLast() + [.compared(carried: [other: false], recorded: [:], events: [])],
            ["done": "claim"]
        ),
        (
            "dropping",
            empty.dropLast() + [.compared(carried: [other: false, id: false], recorded: [id: 1], events: [])],
            ["done": "read"]
        ),
        ("reading", one, ["recorded": "cancel"]),
        ("cancelling", one + [.recorded([:])], ["done": "claim"]),
        ("claiming", empty, ["claimed": "begin", "exhausted": "rest"]),
        ("beginning", empty + [.claimed([row])], ["done": "claim", "refused": "settle"]),
        (
            "settling", empty + [.claimed([row]), .refused(.init(outcome: .interrupted(.lost), hasBegun: false))],
            ["done": "claim"]
        ),
        // Only progress is recorded.
        ("settling", begun + [.woken(.init(events: [.sent(row.attempt, bytes: 5)]))], ["done": "rest"]),
        (
            "settling", begun + [.woken(.init(events: [ended, .invalidated(.inUse)]))],
            ["done": "callHandlers"]
        ),
        ("settling", begun + [.closed([ended])], ["done": "callHandlers"]),
        (
            "settling",
            empty.dropLast() + [
                .compared(carried: [row.attempt: true], recorded: [row.attempt: 1], events: [ended])
            ],
            ["done": "claim"]
        ),
        (
            "listing",
            empty + [.exhausted(nextDue: nil), .woken(.init(events: [.deliveredAll], hasChanges: true))]
                + [.exhausted(nextDue: nil), .woken(.init(hasHandlers: true)), .exhausted(nextDue: nil)],
            ["listed": "claim"]
        ),
        ("calling", [.closed([])], ["done": "end"]),
    ]

    private static func machine(after events: [Event]) -> QueueMachine {
        var machine = QueueMachine(rules)
        _ = machine.play(events)
        return machine
    }

    @Test(arguments: states)
    func `each event leads to one action, or is a mistake that ends the round`(
        state: String, events: [Event], actions: [String: String]
    ) {
        let machine = Self.machine(after: events)
        #expect(Self.name(machine.state) == state)
        let failure = state == "resting" ? nil : "callHandlers"
        for event in Self.events {
            var next = machine
            let expected = actions[Self.name(event)] ?? (Self.name(event) == "failed" ? failure : nil)
            #expect(next.handle(event, at: QueueWorld.start).name == expected ?? "fault", "\(state), \(event)")
            guard expected == nil else { continue }
            #expect(Self.name(next.state) == "resting", "\(state), \(event)")
            #expect(next.play([.woken(.init())]) != ["fault"], "\(state), \(event)")
        }
    }

    @Test func `each state has a row`() {
        #expect(Set(Self.states.map(\.name)).count == 11)
    }

    @Test func `the table of the machine has all changes of its state, and no others`() throws {
        var changes: Set<StateChange> = []
        for (_, before, _) in Self.states {
            for event in Self.events + [.failed(mayPass: true)] {
                var machine = QueueMachine(Self.rules)
                for event in before + [event] {
                    let state = machine.state
                    if case .fault = machine.handle(event, at: QueueWorld.start) { continue }
                    changes.insert(StateChange(state, event, machine.state))
                }
            }
        }
        for seed in 0..<2_000 { changes.formUnion(QueueHistoryTests.play(seed: UInt64(seed)).changes) }
        var table = try StateChange.table(
            inDocumentationOf: "Sources/Sending/PostcardQueue/Sending/QueueMachine.swift")
        let failures = Self.states.map(\.name).filter { $0 != "resting" }.map { StateChange($0, "failed", "calling") }
        table.formUnion(failures + [StateChange("settling", "failed", "resting")])
        #expect(changes.subtracting(table) == [], "The table lacks these.")
        #expect(table.subtracting(changes) == [], "These never happened.")
    }

    @Test func `a mistake stops a debug build with the names of the event and the state`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            throw ImpossibleEvent(Event.done, in: QueueMachine.State.claiming).stoppingDebugBuilds()
        }
        let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(output.contains("The event done cannot happen in the state claiming."), "\(output)")
    }
}
