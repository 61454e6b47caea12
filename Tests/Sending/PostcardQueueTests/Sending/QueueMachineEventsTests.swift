import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// What each event leads to in each state of the machine.
@Suite struct QueueMachineEventsTests {
    typealias Event = QueueMachine.Event

    private static let id = AttemptID(upload: UUID(), number: 1)
    private static let other = AttemptID(upload: UUID(), number: 1)
    private static let end = AttemptEnd.response(status: 201, headerFields: [:], url: nil, method: nil)
    private static let row: UploadRow = {
        let world = QueueWorld.withUpload(session: "session")
        return world.row(world.uploads[0])
    }()

    /// The events that are results of actions. A round may begin, a queue may close, and an action may fail in any state.
    private static let results: [Event] = [
        .done, .compared(carried: [:], recorded: [:], events: []), .recorded([:]), .claimed([row]),
        .exhausted(nextDue: nil), .refused(.init(outcome: .interrupted(.lost), hasBegun: false)),
        .listed([:], events: []),
    ]

    private static func name(_ event: Event) -> String { String("\(event)".prefix { $0 != "(" }) }

    private static let empty = [Event.woken(.init()), .done, .compared(carried: [:], recorded: [:], events: [])]
    private static let one = [
        Event.woken(.init()), .done, .compared(carried: [id: false], recorded: [id: 1], events: []),
    ]

    /// The events that lead to a state, and the actions that follow from what may happen there.
    static let states: [(name: String, events: [Event], actions: [String: String])] = [
        ("resting", [], ["woken": "connect", "closed": "callHandlers"]),
        ("connecting", [.woken(.init())], ["done": "compare"]),
        ("comparing", [.woken(.init()), .done], ["compared": "claim"]),
        (
            "dropping", empty.dropLast() + [.compared(carried: [other: false], recorded: [:], events: [])],
            ["done": "claim"]
        ),
        ("reading", one, ["recorded": "cancel"]),
        ("cancelling", one + [.recorded([:])], ["done": "claim"]),
        ("claiming", empty, ["claimed": "begin", "exhausted": "rest"]),
        ("beginning", empty + [.claimed([row])], ["done": "claim", "refused": "settle"]),
        (
            "settling", empty + [.claimed([row]), .refused(.init(outcome: .interrupted(.lost), hasBegun: false))],
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
        var machine = QueueMachine(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 2))
        _ = machine.play(events)
        return machine
    }

    @Test(arguments: states)
    func `each event that a state expects leads to one action`(
        state: String, events: [Event], actions: [String: String]
    ) {
        let machine = Self.machine(after: events)
        for event in Self.results + [.woken(.init()), .closed([])] where actions[Self.name(event)] != nil {
            var next = machine
            #expect(next.handle(event, at: QueueWorld.start).name == actions[Self.name(event)], "\(state), \(event)")
        }
    }

    @Test(arguments: states.indices)
    func `an action that fails, and the end of the queue, are handled in each state`(index: Int) {
        for event in [Event.failed(mayPass: true), .failed(mayPass: false), .closed([.ended(Self.id, Self.end)])] {
            var machine = Self.machine(after: Self.states[index].events)
            #expect(machine.handle(event, at: QueueWorld.start).name != "fault", "\(Self.states[index].name), \(event)")
        }
    }

    /// Each state's first unexpected result. A debug build stops there and names both.
    @Test(arguments: states.indices)
    func `any other event stops a debug build with the names of the event and the state`(index: Int) async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) { [index] in
            let state = Self.states[index]
            for event in Self.results where state.actions[Self.name(event)] == nil {
                var machine = Self.machine(after: state.events)
                _ = machine.handle(event, at: QueueWorld.start)
            }
        }
        let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(output.contains("cannot happen in the state \(Self.states[index].name)."), "\(output)")
    }
}
