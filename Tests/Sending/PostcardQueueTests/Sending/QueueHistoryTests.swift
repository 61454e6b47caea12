import Foundation
import PostcardTestSupport
import Testing

@testable import PostcardClient
@testable import PostcardQueue

/// Queues in this process and in the background, in a world in which everything is left to chance: what servers, the
/// system and the user do, when the database fails, and when a process is killed.
@Suite(.timeLimit(.minutes(10))) struct QueueHistoryTests {
    /// The number of histories. For a large run, set POSTCARD_QUEUE_HISTORIES=100000.
    private static let count =
        ProcessInfo.processInfo.environment["POSTCARD_QUEUE_HISTORIES"].flatMap(Int.init) ?? 2_000

    /// What happened to the uploads of a queue.
    struct History: Equatable {
        let trace: [String]
        let states: [String]
        /// How often a form that was stored was sent again.
        let repetitions: Int
        let changes: Set<StateChange>
    }

    /// Plays a history. The world checks each step, and this checks the end.
    static func play(seed: UInt64) -> History {
        var chance = SeededGenerator(seed: seed)
        var policy = RetryPolicy(maximumAttempts: Int.random(in: 1...8, using: &chance))
        policy.maximumDelay = .seconds(60)
        policy.maximumConflicts = Int.random(in: 1...4, using: &chance)
        if Bool.random(using: &chance) { policy.deadline = .seconds(Int.random(in: 1...200, using: &chance)) }
        let isHere = Bool.random(using: &chance)
        let rules = QueueMachine.Rules(
            session: isHere ? nil : "session", retryPolicy: policy,
            maximumConcurrentUploads: Int.random(in: 1...(isHere ? 3 : 10), using: &chance))
        var world = QueueWorld(rules, chance: chance)
        var passed = 0
        for _ in 0..<20 {
            step(&world, &passed)
            if world.wake() == .gaveUp, isHere { world.close() }
            #expect(world.calls + world.handlers <= passed, "seed \(seed)")
        }
        // From here on, everything works, and the user opens the app twice.
        world.chance = nil
        world.pauseAll(false)
        for index in world.uploads.indices { world.change(index, to: "resume") }
        // What the system forgets after the first launch is found by the second one.
        for _ in 0..<2 {
            world.kill()
            world.wake(handlers: 1)
            world.report(.deliveredAll)
            world.rest(rounds: 200)
            world.wake()
        }
        let states = world.uploads.map(\.state.name)
        #expect(states.allSatisfy { ["done", "failed", "cancelled"].contains($0) }, "seed \(seed): \(world.trace)")
        #expect(isHere || world.handlers == 0, "seed \(seed): \(world.trace)")
        return History(trace: world.trace, states: states, repetitions: world.repetitions, changes: world.changes)
    }

    /// Lets something happen between two rounds.
    private static func step(_ world: inout QueueWorld, _ passed: inout Int) {
        switch world.random(0...12) {
        case 0...2: if world.uploads.count < 5 { world.enqueue(notBefore: world.odds(4) ? world.random(1...50) : 0) }
        case 3...6: if let end = world.nextEnd { world.advance(to: end) }
        case 7: world.advance(to: world.now + Double(world.random(0...100)))
        case 8:
            let actions = ["pause", "resume", "cancel", "retry"]
            if !world.uploads.isEmpty {
                world.change(world.random(0...(world.uploads.count - 1)), to: actions[world.random(0...3)])
            }
        case 9: world.pauseAll(world.odds(2))
        case 10: if world.odds(2) { world.kill() } else { world.close() }
        case 11:
            if world.rules.session != nil, world.isConnected, world.odds(3) { world.invalidate(.invalid("it broke")) }
        default:
            guard world.rules.session != nil else { return }
            if world.odds(2) { world.report(.deliveredAll) }
            passed += 1
            world.wake(handlers: 1)
            world.report(.deliveredAll)
        }
    }

    @Test(arguments: 0..<4)
    func `no history sends a form without its key, forgets it, or retries it too late`(part: Int) {
        var states: [String: Int] = [:]
        var repetitions = 0
        for seed in UInt64(part * Self.count / 4)..<UInt64((part + 1) * Self.count / 4) {
            let history = Self.play(seed: seed)
            for state in history.states { states[state, default: 0] += 1 }
            repetitions += history.repetitions
            if seed % 50 == 0 { #expect(Self.play(seed: seed) == history, "seed \(seed)") }
        }
        // The histories are of many kinds.
        let isVaried = states.count == 3 && states.values.allSatisfy { $0 > 20 } && repetitions > 50
        #expect(isVaried, "\(states) \(repetitions)")
    }
}
