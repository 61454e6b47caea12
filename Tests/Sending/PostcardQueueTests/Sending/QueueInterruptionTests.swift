import Foundation
import HTTPTypes
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Attempts and sessions that the system ends without a response.
@Suite struct QueueInterruptionTests {
    typealias Fate = QueueWorld.Fate

    @Test(arguments: [
        (Fate.interrupted(.cancelled), false, [0, 15]), (.interrupted(.disconnected), false, [0, 15]),
        (.interrupted(.forceQuit), false, [0, 10]), (.interrupted(.updatesDisabled), false, [0, 310]),
        (.interrupted(.insufficientResources), false, [0, 70]), (.forgotten, true, [0, 15]),
    ])
    func `an attempt that the system cancelled or lost begins again after a few seconds`(
        fate: Fate, isKilled: Bool, begins: [Int]
    ) {
        var world = QueueWorld.withUpload(session: "session")
        world.script = [fate]
        world.wake()
        world.advance(to: world.now + 10)
        if isKilled { world.kill() }
        world.rest()
        #expect(world.begins == begins && world.uploads[0].state.name == "done", "\(world.trace)")
        // It was not the upload's fault.
        #expect(world.uploads[0].failures == 0 && world.uploads[0].possibleDelivery == 1)
    }

    @Test func `an upload that the system cancels over and over is sent again later and later, and then fails`() {
        var world = QueueWorld.withUpload(session: "session")
        world.script = Array(repeating: .interrupted(.insufficientResources), count: 60)
        world.rest(rounds: 500)
        #expect(Array(world.begins.prefix(6)) == [0, 70, 200, 450, 940, 1910])
        #expect(world.begins.count == Interruption.maximumCount)
        guard case .failed(let failure) = world.uploads[0].state else { Issue.record("\(world.trace)"); return }
        #expect(failure.code == .insufficientResources && failure.message.contains("50 times in a row"))
    }

    @Test(arguments: [Interruption.updatesDisabled, .forceQuit])
    func `an upload waits as long as the user does not let the system send it`(interruption: Interruption) {
        var world = QueueWorld.withUpload(session: "session")
        world.script = Array(repeating: .interrupted(interruption), count: 200)
        world.rest(rounds: 1500)
        #expect(world.begins.count == 201 && world.uploads[0].state.name == "done")
    }

    @Test func `a response of the server ends a row of interruptions`() {
        var world = QueueWorld.withUpload(session: "session")
        for _ in 0..<3 {
            world.script += Array(repeating: .interrupted(.cancelled), count: 30) + [.refused(503)]
        }
        world.rest(rounds: 1500)
        #expect(world.begins.count == 94 && world.uploads[0].state.name == "done", "\(world.begins.count)")
    }

    /// The attempts take no time: each is cancelled at the moment at which the delay ends.
    @Test func `an upload that the system cancels as soon as it is due is delayed longer each time`() {
        var world = QueueWorld(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 100))
        world.script = Array(repeating: .interrupted(.insufficientResources), count: 3)
        world.enqueue()
        world.rest()
        #expect(world.begins == [0, 60, 180, 420] && world.uploads[0].state.name == "done", "\(world.trace)")
    }

    @Test(arguments: [(Interruption.forceQuit, 0), (.updatesDisabled, 300)])
    func `what the user has stopped does not count when the system cancels an upload`(
        interruption: Interruption, delay: Int
    ) {
        var world = QueueWorld.withUpload(session: "session")
        world.script = Array(repeating: .interrupted(interruption), count: 60) + [.interrupted(.cancelled)]
        world.rest(rounds: 500)
        // Each attempt takes ten seconds.
        let begins = (0...60).map { $0 * (10 + delay) }
        #expect(world.begins == begins + [begins[60] + 15], "\(world.trace)")
    }

    // MARK: - Sessions that end by themselves

    @Test func `a session that ends by itself is made again, and what it carried is sent again`() {
        var world = QueueWorld.withUpload(session: "session")
        world.wake()
        world.invalidate(.invalid("it broke"))
        #expect(world.wake() == .rest(until: nil))
        #expect(world.connections == 2)
        world.rest()
        #expect(world.begins == [0, 5] && world.uploads[0].state.name == "done", "\(world.trace)")
        #expect(world.connections == 2)
    }

    private let id = AttemptID(upload: UUID(), number: 1)
    private let body = Data("stored".utf8)
    private let end = AttemptEnd.response(status: 201, headerFields: [:], url: nil, method: nil)

    /// A machine that compares its attempts with those of the system next.
    private static func connected() -> QueueMachine {
        var machine = QueueMachine(
            QueueMachine.Rules(session: "session", retryPolicy: .exact, maximumConcurrentUploads: 1))
        _ = machine.handle(.woken(.init(hasChanges: true)), at: Date())
        _ = machine.handle(.done, at: Date())
        return machine
    }

    /// Its upload was paused when the body had arrived, and the session ended right after the response.
    @Test func `the response of a paused upload keeps its body if the session ends`() throws {
        var machine = Self.connected()
        func play(_ event: QueueMachine.Event) -> QueueMachine.Action { machine.handle(event, at: Date()) }
        _ = play(.compared(carried: [id: false], recorded: [id: 1], events: [.received(id, body)]))
        guard case .cancel(let cancelled, _) = play(.recorded([:])) else { throw CancellationError() }
        #expect(cancelled == [id])
        _ = play(.done)
        _ = play(.exhausted(nextDue: nil))
        guard case .connect = play(.woken(.init(events: [.ended(id, end), .invalidated(.invalid("it broke"))]))) else {
            throw CancellationError()
        }
        _ = play(.done)
        guard case .settle(let ended, _) = play(.compared(carried: [:], recorded: [:], events: [])) else {
            throw CancellationError()
        }
        #expect(ended.map(\.body) == [body])
    }

    /// The comparison misses the upload because its session has just ended. The end of its response is reported after
    /// that.
    @Test func `the response of an upload that the system no longer has keeps its body`() throws {
        var machine = Self.connected()
        func play(_ event: QueueMachine.Event) -> QueueMachine.Action { machine.handle(event, at: Date()) }
        guard
            case .settle(let lost, _) = play(
                .compared(carried: [:], recorded: [id: 1], events: [.received(id, body)]))
        else { throw CancellationError() }
        #expect(lost.map(\.id) == [id])
        _ = play(.done)
        _ = play(.exhausted(nextDue: nil))
        guard case .settle(let ended, _) = play(.woken(.init(events: [.ended(id, end)]))) else {
            throw CancellationError()
        }
        #expect(ended.map(\.body) == [body])
    }

    @Test func `a session that ends while it is compared is made again`() {
        var machine = Self.connected()
        let actions = machine.play([
            .compared(carried: [:], recorded: [:], events: [.invalidated(.invalid("it broke"))]),
            .exhausted(nextDue: nil), .woken(.init()),
        ])
        #expect(actions == ["claim", "rest", "connect"])
    }

    /// Nothing is known of its upload. The next session reports the response from its beginning.
    @Test func `nothing is kept of a response whose session ended in the middle of it`() throws {
        var machine = Self.connected()
        func play(_ event: QueueMachine.Event) -> QueueMachine.Action { machine.handle(event, at: Date()) }
        let half = AttemptEvent.received(id, Data("sto".utf8))
        guard case .cancel = play(.compared(carried: [id: false], recorded: [:], events: [half])) else {
            throw CancellationError()
        }
        _ = play(.done)
        _ = play(.exhausted(nextDue: nil))
        guard case .connect = play(.woken(.init(events: [.invalidated(.invalid("it broke"))]))) else {
            throw CancellationError()
        }
        _ = play(.done)
        let events: [AttemptEvent] = [.received(id, body), .ended(id, end)]
        guard case .settle(let ended, _) = play(.compared(carried: [:], recorded: [:], events: events)) else {
            throw CancellationError()
        }
        #expect(ended.map(\.body) == [body])
    }

    @Test func `a run ends with the reason if sessions end again and again`() {
        var world = QueueWorld.withUpload(session: "session")
        world.wake()
        world.wake(handlers: 1)
        #expect(world.calls == 0)
        for _ in 0..<3 {
            world.invalidate(.invalid("it broke"))
            #expect(world.wake() == .rest(until: nil))
            // A session that has ended reports nothing more.
            #expect(world.calls == 1)
        }
        world.invalidate(.invalid("it broke"))
        #expect(world.wake() == .gaveUp && world.problem == .invalid("it broke"))
        // The next run tries again, and a response ends the row.
        world.rest()
        #expect(world.uploads[0].state.name == "done", "\(world.trace)")
        world.enqueue()
        world.wake()
        for _ in 0..<3 {
            world.invalidate(.invalid("it broke"))
            #expect(world.wake() == .rest(until: nil))
        }
    }

    @Test func `a session that ends right after a response is the first of a row`() {
        var world = QueueWorld.withUpload(session: "session")
        world.wake()
        for _ in 0..<3 {
            world.invalidate(.invalid("it broke"))
            #expect(world.wake() != .gaveUp)
        }
        // The response and the end of its session are reported together.
        world.advance(to: world.now + 10)
        world.wake()
        world.advance(to: world.now + 10)
        world.invalidate(.invalid("it broke"))
        #expect(world.wake() != .gaveUp)
        #expect(world.uploads[0].state.name == "done", "\(world.trace)")
        for _ in 0..<2 {
            world.invalidate(.invalid("it broke"))
            #expect(world.wake() != .gaveUp)
        }
        world.invalidate(.invalid("it broke"))
        #expect(world.wake() == .gaveUp)
    }

    @Test(arguments: [SessionProblem.inUse, .requiresSharedContainer])
    func `a session that the system does not accept is reported at once`(problem: SessionProblem) {
        var world = QueueWorld.withUpload(session: "session")
        world.wake()
        world.advance(to: world.now + 10)
        world.enqueue()
        world.invalidate(problem)
        // What the session has reported is recorded, and no other session is made before the next run.
        #expect(world.wake() == .gaveUp && world.problem == problem)
        #expect(world.uploads.map(\.state.name) == ["done", "waiting"] && world.connections == 1, "\(world.trace)")
        // The same about a single task.
        world.wake()
        world.script = [.unavailable(problem)]
        world.enqueue()
        world.wake()
        world.advance(to: world.now + 10)
        #expect(world.wake() == .gaveUp && world.problem == problem)
        #expect(world.uploads.allSatisfy { $0.state.name != "failed" && $0.failures == 0 })
        world.rest()
        #expect(world.uploads.allSatisfy { $0.state.name == "done" }, "\(world.trace)")
    }
}
