import Foundation
import HTTPTypes
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// When a queue looks at its uploads, and what a round does besides sending them.
@Suite struct QueueRoundTests {
    @Test(arguments: [(nil, 500.001), (.seconds(30), 30), (.seconds(600), 500.001)] as [(Duration?, Double)])
    func `the next round is due with the next upload, or when other processes may have changed the queue`(
        poll: Duration?, seconds: Double
    ) {
        var world = QueueWorld(
            QueueMachine.Rules(
                retryPolicy: .never, maximumConcurrentUploads: 1, endsWhenEmpty: true, pollInterval: poll))
        world.enqueue(notBefore: 500)
        world.enqueue(notBefore: 9000)
        #expect(world.wake().seconds(after: world.now) == seconds)
        world.advance(to: world.now + 500)
        world.wake()
        #expect(world.begins == [500])
    }

    @Test func `no round is due for uploads that wait for others, or for a paused queue`() {
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: .never, maximumConcurrentUploads: 1))
        world.seconds = 10
        for _ in 0..<3 { world.enqueue() }
        #expect(world.wake() == .rest(until: nil) && world.begins == [0])
        world.pauseAll(true)
        #expect(world.wake() == .rest(until: nil))
        #expect(world.wake() == .rest(until: nil))
    }

    /// The app enqueues the second one while the attempts that the system has are listed.
    @Test func `no round is due for an upload that waits until another one is sent`() {
        var world = QueueWorld(QueueMachine.Rules(session: "session", retryPolicy: .never, maximumConcurrentUploads: 1))
        world.seconds = 10
        world.enqueue(notBefore: 500)
        #expect(world.wake().seconds(after: world.now) == 500.001)
        world.report(.deliveredAll)
        world.wake()
        world.enqueuesWhileListing = true
        #expect(world.wake(handlers: 1) == .rest(until: nil) && world.begins == [0], "\(world.trace)")
    }

    @Test func `no round is further away than a day, because the clock may be changed`() {
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: .never, maximumConcurrentUploads: 1))
        world.enqueue(notBefore: 1_000_000)
        #expect(world.wake().seconds(after: world.now) == 86_400.001)
    }

    @Test func `a run ends when no upload is left that can be sent`() {
        var world = QueueWorld(
            QueueMachine.Rules(retryPolicy: .never, maximumConcurrentUploads: 1, endsWhenEmpty: true))
        world.enqueue()
        world.enqueue()
        world.change(1, to: "pause")
        #expect(world.wake() == .rest(until: nil))
        world.advance(to: world.now)
        #expect(world.wake() == .ended && world.uploads[0].state.name == "done")
    }

    @Test func `an upload that was not handed over is claimed in time after the clock was set back`() {
        var world = QueueWorld.withUpload(session: "session")
        world.script = [.refusedToBegin]
        world.wake()
        world.now -= 1_000_000
        world.wake()
        #expect(world.begins.count == 1)
    }

    // MARK: - What rounds do

    /// An upload that is being sent for the first time in an attempt is listed as such.
    @Test(arguments: [nil, "session"])
    func `the first bytes of each attempt are recorded as the first`(session: String?) {
        var world = QueueWorld.withUpload(session: session)
        world.script = [.cut, .accepted]
        for number in 1...2 {
            world.wake()
            let attempt = world.uploads[0].attempt
            #expect(attempt.number == number)
            for bytes in [10, 20] as [Int64] { world.report(.sent(attempt, bytes: bytes)) }
            world.wake()
            world.report(.sent(attempt, bytes: 30))
            world.wake()
            world.advance(to: world.now + 10)
            world.wake()
            // Too late: it has ended.
            world.report(.sent(attempt, bytes: 40))
            world.wake()
            world.advance(to: world.now + 1)
        }
        #expect(world.progress.map(\.bytesSent) == [10, 20, 30, 10, 20, 30])
        #expect(world.progress.map(\.isFirst) == [true, false, false, true, false, false])
    }

    // MARK: - Completion handlers

    enum WakeUpStep: Sendable {
        case handler, deliveredAll, ends, wake, fault
    }

    /// The system passes a handler, reports the ends of attempts, and says when it has reported all.
    static let wakeUps: [(steps: [WakeUpStep], calls: [Int])] = [
        ([.handler, .ends, .wake, .deliveredAll, .wake], [0, 0, 0, 0, 1]),
        ([.ends, .deliveredAll, .wake, .handler], [0, 0, 0, 1]),
        ([.deliveredAll, .wake, .ends, .handler, .wake], [0, 0, 0, 0, 1]),
        ([.handler, .handler, .deliveredAll, .wake], [0, 0, 0, 2]),
        ([.handler, .deliveredAll, .wake, .handler, .wake, .deliveredAll, .wake], [0, 0, 1, 1, 1, 1, 2]),
        ([.handler, .ends, .fault, .wake, .wake], [0, 0, 0, 1, 1]),
        ([.handler, .deliveredAll, .wake, .deliveredAll, .wake, .handler], [0, 0, 1, 1, 1, 2]),
    ]

    @Test(arguments: wakeUps)
    func `handlers are called when all ends are settled, in whichever order they come`(
        steps: [WakeUpStep], calls: [Int]
    ) {
        var world = QueueWorld.withUpload(session: "session")
        world.wake()
        var found: [Int] = []
        for step in steps {
            switch step {
            case .handler: world.wake(handlers: 1)
            case .deliveredAll: world.report(.deliveredAll)
            case .ends: world.advance(to: world.now + 10)
            case .wake: world.wake()
            case .fault: world.faults = ["settle"]
            }
            found.append(world.calls)
        }
        #expect(found == calls, "\(world.trace)")
    }

    @Test func `a queue is closed also if its session could not be compared`() {
        let now = Date(timeIntervalSince1970: 0)
        var machine = QueueMachine(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 4))
        guard case .connect = machine.handle(.woken(QueueMachine.News()), at: now),
            case .compare = machine.handle(.done, at: now),
            case .callHandlers = machine.handle(.failed(mayPass: true), at: now),
            case .giveUp = machine.handle(.done, at: now)
        else {
            Issue.record("The session is connected and compared first.")
            return
        }
        guard case .callHandlers = machine.handle(.closed([]), at: now),
            case .end = machine.handle(.done, at: now)
        else {
            Issue.record("The queue is not closed.")
            return
        }
    }

    @Test func `handlers are called when the queue is closed`() {
        var world = QueueWorld.withUpload(session: "session")
        world.wake(handlers: 1)
        world.close()
        #expect(world.calls == 1)
    }

    // MARK: - One action after the other

    private let id = AttemptID(upload: UUID(), number: 1)
    private let end = AttemptEnd.response(status: 201, headerFields: [:], url: nil, method: nil)

    /// A machine that rests while the system has an attempt.
    private func resting() -> QueueMachine {
        var machine = QueueMachine(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 2))
        let actions = machine.play([
            .woken(.init(hasChanges: true)), .done, .compared(carried: [id: false], recorded: [id: 1], events: []),
            .recorded([id: 1]), .exhausted(nextDue: nil),
        ])
        #expect(actions == ["connect", "compare", "read", "claim", "rest"])
        return machine
    }

    /// A machine whose handlers wait for the end of the attempt, which the system has still to report.
    private func waiting() -> QueueMachine {
        var machine = resting()
        let actions = machine.play([
            .woken(.init(events: [.deliveredAll])), .recorded([id: 1]), .exhausted(nextDue: nil),
            .woken(.init(hasHandlers: true)), .recorded([id: 1]), .exhausted(nextDue: nil),
            .listed([id: true], events: []), .recorded([id: 1]), .exhausted(nextDue: nil),
        ])
        #expect(actions == ["read", "claim", "rest", "read", "claim", "list", "read", "claim", "rest"])
        return machine
    }

    /// Progress is reported often, and each look at the database takes time.
    @Test func `a round about nothing but progress records it, and looks for nothing else`() {
        var machine = resting()
        #expect(machine.play([.woken(.init(events: [.sent(id, bytes: 5)])), .done]) == ["settle", "rest"])
        let events: [AttemptEvent] = [.sent(id, bytes: 9), .ended(id, end)]
        #expect(machine.play([.woken(.init(events: events)), .done]) == ["settle", "claim"])
    }

    @Test func `a write concerns at most 50 uploads, and the next one the others`() {
        var machine = QueueMachine(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 120))
        #expect(machine.play([.woken(.init(hasChanges: true)), .done]) == ["connect", "compare"])
        var counts: [Int] = []
        var action = machine.handle(.compared(carried: [:], recorded: [:], events: []), at: QueueWorld.start)
        if case .claim(let claim) = action { counts.append(claim.count) }
        _ = machine.handle(.exhausted(nextDue: nil), at: QueueWorld.start)
        let events = (1...51).map { AttemptEvent.ended(AttemptID(upload: UUID(), number: $0), end) }
        action = machine.handle(.woken(.init(events: events)), at: QueueWorld.start)
        while case .settle(let ended, _) = action {
            counts.append(ended.count)
            action = machine.handle(.done, at: QueueWorld.start)
        }
        #expect(counts == [50, 50, 1])
    }

    @Test func `the system is asked what it has still to report only when handlers wait for that`() {
        var machine = resting()
        for news in [QueueMachine.News(events: [.deliveredAll]), QueueMachine.News(hasChanges: true)] {
            let actions = machine.play([.woken(news), .recorded([id: 1]), .exhausted(nextDue: nil)])
            #expect(actions == ["read", "claim", "rest"])
        }
        let actions = machine.play([
            .woken(.init(hasHandlers: true)), .recorded([id: 1]), .exhausted(nextDue: nil),
            .listed([id: false], events: []), .recorded([id: 1]), .exhausted(nextDue: nil), .done,
        ])
        #expect(actions == ["read", "claim", "list", "read", "claim", "callHandlers", "rest"])
    }

    @Test func `what is reported while the system is asked is recorded before the handlers are called`() {
        var machine = resting()
        let events: [AttemptEvent] = [.ended(id, end), .invalidated(.invalid("it broke"))]
        let actions = machine.play([
            .woken(.init(events: [.deliveredAll])), .recorded([id: 1]), .exhausted(nextDue: nil),
            .woken(.init(hasHandlers: true)), .recorded([id: 1]), .exhausted(nextDue: nil),
            .listed([id: true], events: events), .done, .exhausted(nextDue: nil), .done,
        ])
        #expect(actions.suffix(4) == ["settle", "claim", "callHandlers", "rest"], "\(actions)")
        // The session has ended as well.
        #expect(machine.play([.woken(.init())]) == ["connect"])
    }

    @Test func `handlers wait for an end until the system says that it has reported all`() {
        var machine = waiting()
        let all = QueueMachine.News(events: [.deliveredAll])
        let actions = machine.play([.woken(all), .recorded([id: 1]), .exhausted(nextDue: nil)])
        #expect(actions == ["read", "claim", "callHandlers"])
    }

    @Test func `handlers do not wait for an end that a session which has ended would have reported`() {
        var machine = waiting()
        let actions = machine.play([
            .woken(.init(events: [.invalidated(.invalid("it broke"))])), .done,
            .compared(carried: [id: false], recorded: [id: 1], events: []), .recorded([id: 1]),
            .exhausted(nextDue: nil),
        ])
        #expect(actions == ["connect", "compare", "read", "claim", "callHandlers"])
    }

    @Test func `a session that could not be compared stays connected, and what it reported is recorded at the end`() {
        var machine = QueueMachine(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 4))
        let failures = machine.play([
            .woken(.init()), .done, .failed(mayPass: true), .done, .woken(.init()), .failed(mayPass: true), .done,
        ])
        #expect(failures == ["connect", "compare", "callHandlers", "giveUp", "compare", "callHandlers", "giveUp"])
        #expect(machine.play([.closed([.ended(id, end)]), .done, .done]) == ["settle", "callHandlers", "end"])
    }

    /// The claim fails, so that the next round looks for what was claimed.
    @Test func `a response keeps its body if attempts are compared again before its end`() {
        var machine = resting()
        let news = QueueMachine.News(events: [.sent(id, bytes: 5), .received(id, Data("sto".utf8))], hasChanges: true)
        let actions = machine.play([
            .woken(news), .done, .recorded([id: 1]), .failed(mayPass: true), .done, .woken(.init()),
        ])
        #expect(actions == ["settle", "read", "claim", "callHandlers", "giveUp", "compare"])
        let events: [AttemptEvent] = [.sent(id, bytes: 9), .received(id, Data("red".utf8)), .ended(id, end)]
        let action = machine.handle(
            .compared(carried: [id: false], recorded: [id: 1], events: events), at: QueueWorld.start)
        guard case .settle(let ended, let progress) = action else { Issue.record("\(action)"); return }
        #expect(ended.map(\.body) == [Data("stored".utf8)])
        #expect(progress.map(\.isFirst) == [false])
    }

    @Test func `an end that could not be recorded is recorded once, also if its session ends then`() {
        var machine = resting()
        let actions = machine.play([
            .woken(.init(events: [.ended(id, end)])), .failed(mayPass: true), .done,
            .woken(.init(events: [.invalidated(.invalid("it broke"))])), .done,
            .compared(carried: [:], recorded: [id: 1], events: []), .done,
        ])
        #expect(actions == ["settle", "callHandlers", "giveUp", "connect", "compare", "settle", "claim"])
    }

    /// This process did not begin it, but the system has it at first.
    @Test func `an attempt that the system loses may have delivered its form, also one of an earlier process`() {
        var machine = resting()
        let other = AttemptID(upload: UUID(), number: 1)
        let recorded: [AttemptID: QueuedUpload.ID] = [id: 1, other: 2]
        let invalidated = QueueMachine.News(events: [.invalidated(.invalid("it broke"))])
        let actions = machine.play([
            .woken(invalidated), .done, .compared(carried: [id: false, other: false], recorded: recorded, events: []),
            .recorded(recorded), .woken(invalidated), .done,
        ])
        #expect(actions == ["connect", "compare", "read", "rest", "connect", "compare"])
        let action = machine.handle(.compared(carried: [:], recorded: recorded, events: []), at: QueueWorld.start)
        guard case .settle(let ended, _) = action else { Issue.record("\(action)"); return }
        #expect(ended.map(\.hasBegun) == [true, true])
    }
}

extension QueueWorld.Ending {
    /// When the next round is due, in seconds after a time.
    fileprivate func seconds(after time: Date) -> Double? {
        guard case .rest(let until?) = self else { return nil }
        return (until.timeIntervalSince(time) * 1000).rounded() / 1000
    }
}
