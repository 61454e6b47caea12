import Foundation
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
            QueueMachine.Rules(retryPolicy: .never, concurrency: 1, endsWhenEmpty: true, pollInterval: poll))
        world.enqueue(notBefore: 500)
        world.enqueue(notBefore: 9000)
        #expect(world.wake().seconds(after: world.now) == seconds)
        world.advance(to: world.now + 500)
        world.wake()
        #expect(world.begins == [500])
    }

    @Test func `no round is due for uploads that wait for others, or for a paused queue`() {
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: .never, concurrency: 1))
        world.seconds = 10
        for _ in 0..<3 { world.enqueue() }
        #expect(world.wake() == .rest(until: nil) && world.begins == [0])
        world.pauseAll(true)
        #expect(world.wake() == .rest(until: nil))
        #expect(world.wake() == .rest(until: nil))
    }

    /// The app enqueues the second one while the attempts that the system has are listed.
    @Test func `no round is due for an upload that waits until another one is sent`() {
        var world = QueueWorld(QueueMachine.Rules(session: "session", retryPolicy: .never, concurrency: 1))
        world.seconds = 10
        world.enqueue(notBefore: 500)
        #expect(world.wake().seconds(after: world.now) == 500.001)
        world.report(.deliveredAll)
        world.wake()
        world.enqueuesWhileListing = true
        #expect(world.wake(handlers: 1) == .rest(until: nil) && world.begins == [0], "\(world.trace)")
    }

    @Test func `no round is further away than a day, because the clock may be changed`() {
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: .never, concurrency: 1))
        world.enqueue(notBefore: 1_000_000)
        #expect(world.wake().seconds(after: world.now) == 86_400.001)
    }

    @Test func `a run ends when no upload is left that can be sent`() {
        var world = QueueWorld(QueueMachine.Rules(retryPolicy: .never, concurrency: 1, endsWhenEmpty: true))
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
        var machine = QueueMachine(QueueMachine.Rules(session: "session", retryPolicy: .exact, concurrency: 4))
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
}

extension QueueWorld.Ending {
    /// When the next round is due, in seconds after a time.
    fileprivate func seconds(after time: Date) -> Double? {
        guard case .rest(let until?) = self else { return nil }
        return (until.timeIntervalSince(time) * 1000).rounded() / 1000
    }
}
