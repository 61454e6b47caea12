import Foundation
import HTTPTypes
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// A queue, a carrier and a server without a database, a network or a clock, for a ``QueueMachine``.
///
/// What becomes of attempts is written in a script or left to chance. Whatever happens, the machine must keep its
/// promises, which the world checks.
struct QueueWorld {
    struct Upload {
        let id: QueuedUpload.ID
        var state = QueuedUpload.State.waiting
        var due: Date
        var session: String?
        var attempts = 0
        var failures = 0
        var conflicts = 0
        var interruptions = 0
        var hasFreshFields = false
        var started: Date?
        var possibleDelivery: Int64?
        /// Whether the server has the form.
        var isStored = false

        var uuid: UUID { UUID(uuid: (0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, UInt8(truncatingIfNeeded: id))) }
        var attempt: AttemptID { AttemptID(upload: uuid, number: max(attempts, 1)) }
        var key: String { "\"\(id)\"" }
        /// Whether the upload waits, and has no sender.
        var isDelayed: Bool {
            switch state {
            case .waiting, .retrying: session == nil
            default: false
            }
        }
    }

    struct CarriedAttempt {
        let upload: QueuedUpload.ID
        let fate: Fate
        var end: Date
        /// What the queue knew when it began.
        let delivery: PossibleDelivery
        /// Whether the attempt was cancelled. In this process, it takes a moment to stop.
        var isStopping = false
    }

    enum Ending: Equatable {
        case rest(until: Date?)
        case gaveUp, ended, killed
    }

    static let start = Date(timeIntervalSince1970: 1_000_000)
    static let url = URL(string: "http://example.org/uploads") ?? URL(filePath: "/")

    let rules: QueueMachine.Rules
    var now = Self.start
    var uploads: [Upload] = []
    var isPaused = false
    private(set) var machine: QueueMachine
    /// The changes of the machine's state so far.
    private(set) var changes: Set<StateChange> = []
    var carried: [AttemptID: CarriedAttempt] = [:]
    /// Events that no process has received, and those of this process that the machine has not taken in.
    var unreported: [AttemptEvent] = []
    var inbox: [AttemptEvent] = []
    var isConnected = false
    /// The system's completion handlers that were passed and not called, and those that were called.
    private(set) var handlers = 0
    private(set) var calls = 0
    private(set) var connections = 0
    /// What was recorded of attempts that were being sent.
    private(set) var progress: [QueueMachine.Progress] = []
    /// Why the system carried nothing when the last round was given up.
    private(set) var problem: SessionProblem?

    /// The fates of the next attempts; those after them are accepted, or left to chance.
    var script: [Fate] = []
    /// How many seconds an attempt takes.
    var seconds = 0
    /// The names of actions that fail the next time.
    var faults: [String] = []
    /// Whether the app enqueues an upload the next time that the carrier's attempts are listed.
    var enqueuesWhileListing = false
    /// Leaves to chance what is not scripted.
    var chance: SeededGenerator?
    var trace: [String] = []
    /// When attempts began, in seconds.
    var begins: [Int] = []
    /// How often a form that was stored was sent again.
    var repetitions = 0

    var isHere: Bool { rules.session == nil }

    init(_ rules: QueueMachine.Rules, chance: SeededGenerator? = nil) {
        self.rules = rules
        self.chance = chance
        machine = QueueMachine(rules)
    }

    /// A world with an upload, whose attempts take 10 seconds.
    static func withUpload(session: String?) -> QueueWorld {
        var world = QueueWorld(
            QueueMachine.Rules(
                session: session, retryPolicy: .exact, maximumConcurrentUploads: session == nil ? 3 : 100))
        world.seconds = 10
        world.enqueue()
        return world
    }

    mutating func odds(_ count: Int) -> Bool {
        guard var generator = chance else { return false }
        defer { chance = generator }
        return Int.random(in: 0..<count, using: &generator) == 0
    }

    mutating func random(_ range: ClosedRange<Int>) -> Int {
        guard var generator = chance else { return range.lowerBound }
        defer { chance = generator }
        return Int.random(in: range, using: &generator)
    }

    // MARK: - The user and the system

    mutating func enqueue(notBefore seconds: Int = 0) {
        uploads.append(Upload(id: Int64(uploads.count + 1), due: now.addingTimeInterval(Double(seconds))))
    }

    /// Changes an upload by hand. Does nothing if that is not possible now.
    mutating func change(_ index: Int, to action: String) {
        let upload = uploads[index]
        switch (action, upload.state) {
        case ("pause", .waiting), ("pause", .sending), ("pause", .retrying): uploads[index].state = .paused
        case ("cancel", let state) where state.name != "done": uploads[index].state = .cancelled
        case ("resume", .paused), ("retry", .failed), ("retry", .cancelled), ("retry", .retrying):
            uploads[index].state = .waiting
            uploads[index].due = Self.start
            uploads[index].started = nil
            uploads[index].failures = 0
            uploads[index].conflicts = 0
            uploads[index].interruptions = 0
            uploads[index].hasFreshFields = false
        default: return
        }
        uploads[index].session = nil
        trace.append("\(action) \(upload.id)")
    }

    mutating func pauseAll(_ isPaused: Bool) {
        self.isPaused = isPaused
        guard isPaused else { return }
        for index in uploads.indices where uploads[index].state == .sending || uploads[index].session != nil {
            if uploads[index].state == .sending { uploads[index].state = .waiting }
            uploads[index].session = nil
        }
    }

    /// Ends the process at once, and starts the next one.
    mutating func kill() {
        trace.append("kill")
        if isHere {
            let attempts = carried.values.sorted { $0.upload < $1.upload }
            for attempt in attempts where attempt.end <= now || odds(2) { arrive(attempt) }
            carried = [:]
            unreported = []
        }
        inbox = []
        handlers = 0
        isConnected = false
        machine = QueueMachine(rules)
    }

    // MARK: - Time

    /// Plays a round with what was reported, and handlers that the system passes.
    @discardableResult mutating func wake(handlers count: Int = 0) -> Ending {
        // Handlers may come before the events that they are about.
        if isConnected, count == 0 { deliver() }
        handlers += count
        defer { if isConnected { deliver() } }
        return play(.woken(QueueMachine.News(events: takeInbox(), hasHandlers: count > 0, hasChanges: true)))
    }

    /// Ends the sender as when the run is cancelled, or the queue is closed.
    mutating func close() {
        if isHere {
            for id in carried.keys.sorted(by: { "\($0)" < "\($1)" }) { stop(id) }
            advance(to: carried.values.map(\.end).max() ?? now)
        }
        if isConnected { deliver() }
        isConnected = false
        _ = play(.closed(takeInbox()))
        #expect(handlers == 0)
        machine = QueueMachine(rules)
    }

    /// When the next attempt ends.
    var nextEnd: Date? { carried.values.map(\.end).min() }

    mutating func advance(to time: Date) {
        now = max(now, time)
        let due = carried.filter { $0.value.end <= now }
        for (id, attempt) in due.sorted(by: { ($0.value.end, $0.value.upload) < ($1.value.end, $1.value.upload) }) {
            carried[id] = nil
            if !attempt.isStopping || odds(3) { arrive(attempt) }
            if let end = end(of: attempt) { unreported.append(.ended(id, end)) }
        }
    }

    /// Plays rounds until nothing is left to do, at most for a number of rounds.
    mutating func rest(rounds: Int = 1000) {
        for _ in 0..<rounds {
            let ending = wake()
            if ending == .gaveUp, isHere { close() }
            if carried.isEmpty, unreported.isEmpty, inbox.isEmpty,
                uploads.allSatisfy({ !$0.isDelayed && $0.state != .sending })
            {
                return
            }
            var next = [nextEnd]
            if case .rest(let until) = ending { next.append(until) }
            // The app looks every second.
            advance(to: next.compactMap(\.self).min() ?? now.addingTimeInterval(1))
        }
    }

    /// Ends the session with all that it carries, of which nothing is reported.
    mutating func invalidate(_ problem: SessionProblem) {
        trace.append("invalid")
        for attempt in carried.values.sorted(by: { $0.upload < $1.upload }) where odds(2) { arrive(attempt) }
        carried = [:]
        report(.invalidated(problem))
    }

    /// Reports an event that is not the end of an attempt.
    mutating func report(_ event: AttemptEvent) { unreported.append(event) }

    mutating func takeInbox() -> [AttemptEvent] {
        defer { inbox = [] }
        return inbox
    }

    /// Reports what has happened to the process.
    mutating func deliver() {
        for event in unreported {
            inbox.append(event)
            // Events may arrive twice.
            if odds(8) { inbox.append(event) }
        }
        unreported = []
    }

    // MARK: - Rounds

    private mutating func play(_ first: QueueMachine.Event) -> Ending {
        var event = first
        for _ in 0..<10_000 {
            let before = machine.state
            let action = machine.handle(event, at: now)
            changes.insert(StateChange(before, event, machine.state))
            switch action {
            case .rest(let until): return .rest(until: until)
            case .giveUp(let problem):
                self.problem = problem
                return .gaveUp
            case .fault(let fault):
                Issue.record(fault)
                return .ended
            case .end: return .ended
            default: break
            }
            if odds(200) {
                kill()
                return .killed
            }
            event = carryOut(action)
        }
        Issue.record("The round does not end: \(trace.suffix(20))")
        return .ended
    }

    private mutating func carryOut(_ action: QueueMachine.Action) -> QueueMachine.Event {
        if fails(action) { return .failed(mayPass: chance == nil || odds(2)) }
        switch action {
        case .connect:
            isConnected = true
            connections += 1
            for index in uploads.indices where isHere && uploads[index].state == .sending {
                uploads[index].state = .waiting
                uploads[index].due = Self.start
            }
        case .compare:
            let found = attempts
            if odds(2) { deliver() }
            return .compared(carried: found, recorded: recorded, events: takeInbox())
        case .settle(let ended, let progress):
            self.progress += progress
            for attempt in ended { settle(attempt) }
        case .cancel(let ids, _): for id in ids { stop(id) }
        case .read: return .recorded(recorded)
        case .claim(let request):
            let event = claim(request)
            // Several writes mark uploads as being sent, of which the last one may fail.
            guard let fault = faults.firstIndex(of: "claimed") else { return event }
            faults.remove(at: fault)
            return .failed(mayPass: true)
        case .begin(let row): return begin(row)
        case .list:
            let found = attempts
            if enqueuesWhileListing { enqueue() }
            enqueuesWhileListing = false
            if odds(2) { deliver() }
            return .listed(found, events: takeInbox())
        case .callHandlers:
            calls += handlers
            handlers = 0
        case .rest, .giveUp, .fault, .end: break
        }
        return .done
    }

    private mutating func fails(_ action: QueueMachine.Action) -> Bool {
        switch action {
        case .begin, .cancel, .callHandlers: return false
        default: break
        }
        guard !faults.isEmpty else { return odds(60) }
        guard let fault = faults.firstIndex(of: action.name) else { return false }
        faults.remove(at: fault)
        return true
    }
}

extension QueueMachine {
    /// The names of the actions that follow from events, one after the other.
    mutating func play(_ events: [Event]) -> [String] {
        events.map { handle($0, at: QueueWorld.start).name }
    }
}

extension QueueMachine.Action {
    /// The name of the action, such as `settle`.
    var name: String { String("\(self)".prefix { $0 != "(" }) }
}
