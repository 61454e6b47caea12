import Foundation
import HTTPTypes
import PostcardSendingSupport
import PostcardTestSupport
import PostcardWire
import Testing

@testable import PostcardClient

extension StateChange {
    /// The change of a delivery's state, and that of the step of its resumable upload, if it has one.
    static func all(
        _ before: DeliveryMachine.State, _ event: DeliveryMachine.Event, _ action: DeliveryMachine.Action,
        _ after: DeliveryMachine.State
    ) -> [(machine: String, change: StateChange)] {
        let change = ("DeliveryMachine", StateChange(before, event, after))
        var step: ResumableUpload.Step?
        if case .resuming(_, let upload) = before { step = upload.step }
        if case .adapting = before, case .resuming = after { step = .new }
        guard let step else { return [change] }
        let next: Any =
            switch (after, action) {
            case (.resuming(_, let upload), _): upload.step
            case (.sending, _): "sendWhole"
            case (_, .finish), (_, .verify): "finish"
            default: "fail"
            }
        let result: Any = if case .new = step { "begin" } else { event }
        return [change, ("ResumableUpload", StateChange(step, result, next))]
    }
}

/// The tables in the documentation of the machines.
@Suite struct StateTableTests {
    /// A random result of an action; `nil` if the action has none.
    private static func result(
        of action: DeliveryMachine.Action?, using random: inout SeededGenerator
    ) -> DeliveryMachineTests.Event? {
        switch action {
        case nil: return .started
        case .prepare: return .prepared
        case .adapt: return .adapted
        case .wait: return .waited
        case .check: return odds(5, &random) ? .failed(.form, .neverArrived) : .checked
        case .verify: return odds(5, &random) ? .failed(.decoding, .accepted) : .verified
        case .decide:
            let decisions: [UploadDecision] = [.passOn, .giveUp, .retry(after: .zero)]
            return .decided(decisions.randomElement(using: &random) ?? .passOn)
        case .send(_, let statuses, _, _): return answer(accepting: statuses, using: &random)
        case .finish, .fail, .fault: return nil
        }
    }

    private static func odds(_ count: Int, _ random: inout SeededGenerator) -> Bool {
        Int.random(in: 0..<count, using: &random) == 0
    }

    /// A random result of a request.
    private static func answer(
        accepting statuses: Set<Int>, using random: inout SeededGenerator
    ) -> DeliveryMachineTests.Event {
        if odds(10, &random) { return .tooLarge(limit: 90) }
        var fields: HTTPFields = [:]
        if odds(2, &random) { fields[.location] = "/uploads/1" }
        if odds(3, &random) {
            let limits = ["max-append-size=60", "min-size=0", "max-size=90", "min-append-size=50"]
            fields[.uploadLimit] = limits.randomElement(using: &random)
        }
        if odds(6, &random) {
            let code: UploadError.Code = odds(2, &random) ? .connectionLost : .timedOut
            return odds(2, &random) ? .interrupted(code, fields) : .failed(code, .responseLost)
        }
        if odds(2, &random) { fields[.uploadOffset] = "\([0, 40, 60, 100].randomElement(using: &random) ?? 0)" }
        if odds(2, &random) { fields[.uploadComplete] = odds(2, &random) ? "?1" : "?0" }
        let codes = [200, 201, 201, 204, 204, 400, 401, 404, 405, 409, 410, 413, 501, 502, 503]
        let status = codes.randomElement(using: &random) ?? 200
        if odds(5, &random) { return .announced([.location: "/uploads/1"], status, fields) }
        return statuses.contains(status) ? .answered(status, fields) : .turnedDown(status, fields)
    }

    /// The machines of all sequences of the other tests, and more.
    private static func players() throws -> [(Player, steps: [DeliveryMachineTests.Step])] {
        let request = try Player.request()
        let more = [true, false].map { verifies in
            var rules = DeliveryMachine.Rules(url: request.url, retryPolicy: .withoutDelays(maximumAttempts: 3))
            (rules.hasInterceptors, rules.verifies, rules.followsServerLimit) = (verifies, verifies, true)
            let policy = ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 3), minimumBytes: 0)
            return [
                Player(DeliveryMachine(rules), request),
                Player(DeliveryMachine(rules, resumption: Resumption(policy)), request),
            ]
        }
        return try DeliveryMachineTests.sequences.map { (try $0.player(), $0.steps) }
            + DeliveryMachineTests.allResumedSequences.map { (try $0.player(), $0.steps) }
            + more.joined().map { ($0, []) }
    }

    /// Plays the beginning of each sequence of the other tests, and then events at random.
    private static func changes() throws -> [String: Set<StateChange>] {
        let players = try players()
        var random = SeededGenerator(seed: 1)
        var changes: [String: Set<StateChange>] = [:]
        for (player, steps) in players {
            for _ in 0..<200 {
                var player = player
                for step in steps.prefix(Int.random(in: 0...steps.count, using: &random)) {
                    player.play(step.event, elapsed: step.elapsed)
                }
                for _ in 0..<20 {
                    guard let event = result(of: player.action, using: &random) else { break }
                    player.play(event)
                }
                changes.merge(player.changes) { $0.union($1) }
            }
        }
        return changes
    }

    @Test func `the tables of the machines have all changes of their states, and no others`() throws {
        for (machine, changes) in try Self.changes() {
            let file = "Sources/Sending/PostcardClient/Delivery/\(machine).swift"
            let table = try StateChange.table(inDocumentationOf: file)
            #expect(changes.subtracting(table) == [], "The table of \(machine) lacks these.")
            #expect(table.subtracting(changes) == [], "These never happened to \(machine).")
        }
    }
}
