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

    private static let empty = [Event.woken(.init()), .done, .compared(carried: [:], recorded: [:], events: [])]
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
    func `each event leads to one action, or is a mistake and changes nothing but the state`(
        state: String, events: [Event], actions: [String: String]
    ) {
        let machine = Self.machine(after: events)
        #expect(Self.name(machine.state) == state)
        let failure = state == "resting" ? nil : "callHandlers"
        for event in Self.events {
            var next = machine
            let expected = actions[Self.name(event)] ?? (Self.name(event) == "failed" ? failure : nil)
            #expect(next.handle(event, at: QueueWorld.start).name == expected ?? "fault", "\(state), \(event)")
            if expected == nil { #expect(next.play([.woken(.init())]).first != "fault", "\(state), \(event)") }
        }
    }

    @Test func `each state has a row`() {
        #expect(Set(Self.states.map(\.name)).count == 11)
    }

    @Test func `a mistake stops a debug build with the names of the event and the state`() async throws {
        let result = await #expect(processExitsWith: .failure, observing: [\.standardErrorContent]) {
            throw ImpossibleEvent(Event.done, in: QueueMachine.State.claiming).stoppingDebugBuilds()
        }
        let output = String(decoding: try #require(result).standardErrorContent, as: UTF8.self)
        #expect(output.contains("The event done cannot happen in the state claiming."), "\(output)")
    }
}
