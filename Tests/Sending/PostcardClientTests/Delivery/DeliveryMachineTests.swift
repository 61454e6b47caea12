import Foundation
import HTTPTypes
import PostcardForm
import PostcardWire
import PostcardSendingSupport
import Testing

@testable import PostcardClient

@Suite struct DeliveryMachineTests {
    /// An event, and the action that it must lead to.
    struct Step: Sendable {
        let event: Event
        let action: String

        /// How long the upload has taken when it happens.
        let elapsed: Duration

        init(_ event: Event, _ action: String, elapsed: Duration = .zero) {
            self.event = event
            self.action = action
            self.elapsed = elapsed
        }
    }

    enum Event: Sendable {
        case started, prepared, adapted, waited, checked, succeeded, verified
        /// A response that is handed on as a success, whatever its status.
        case answered(Int, HTTPFields)
        case refused(Int, UploadError.Delivery)
        /// A refusal with header fields.
        case turnedDown(Int, HTTPFields)
        case conflict(offset: Int)
        /// A 409 whose problem has the offset, and no header field.
        case mismatch(expected: Int)
        case tooLarge(limit: Int)
        case failed(UploadError.Code, UploadError.Delivery)
        /// A request that failed after a 104 with these fields.
        case interrupted(UploadError.Code, HTTPFields)
        /// A 104 with these fields, and a response with this status after it.
        case announced(HTTPFields, Int, HTTPFields = [:])
        case decided(UploadDecision)
    }

    struct Sequence: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var attempts = 1
        var interceptorRetries: Int?
        var totalTimeout: Duration?
        var deadline: Duration?
        var delivery = PossibleDelivery.neverArrived
        var isReplayable = true
        let steps: [Step]

        /// The player of a machine with these settings.
        func player() throws -> Player {
            let url = try #require(URL(string: "http://example.org/"))
            var form = MultipartForm()
            if !isReplayable {
                form.append(FormStream(AsyncStream<Data> { $0.finish() }), named: "log", filename: "log")
            }
            let request = try UploadRequest(
                url: url, method: .post, headerFields: HTTPFields(), body: UploadBody(try form.layout()),
                maximumResponseBytes: 1)
            var retry = RetryPolicy(maximumAttempts: attempts)
            retry.firstDelay = .seconds(1)
            retry.jitter = 0
            retry.maximumInterceptorRetries = interceptorRetries ?? 0
            retry.deadline = deadline
            return Player(
                DeliveryMachine(
                    DeliveryMachine.Rules(
                        url: url, retryPolicy: retry, hasInterceptors: interceptorRetries != nil,
                        totalTimeout: totalTimeout, delivery: delivery)), request)
        }
    }

    private static let begin = [
        Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "send 1"),
    ]
    private static let again = [Step(.waited, "adapt 2"), Step(.adapted, "send 2")]

    static let sequences = [
        Sequence(testDescription: "success", steps: begin + [Step(.succeeded, "finish after 1")]),
        Sequence(
            testDescription: "a failure without retries",
            steps: begin + [Step(.failed(.connectionLost, .neverArrived), "fail connection-lost")]),
        Sequence(
            testDescription: "a retry after a delay", attempts: 3,
            steps: begin + [Step(.refused(503, .refused), "wait 1 second")] + again
                + [Step(.succeeded, "finish after 2")]),
        Sequence(
            testDescription: "delays double until there are no more attempts", attempts: 3,
            steps: begin + [Step(.refused(503, .refused), "wait 1 second")] + again
                + [
                    Step(.refused(503, .refused), "wait 2 seconds"), Step(.waited, "adapt 3"), Step(.adapted, "send 3"),
                    Step(.refused(503, .refused), "fail refused"),
                ]),
        Sequence(
            testDescription: "a refusal that does not pass", attempts: 3,
            steps: begin + [Step(.refused(422, .refused), "fail refused")]),
        Sequence(
            testDescription: "a form that was accepted is never sent again", attempts: 3, interceptorRetries: 3,
            steps: begin + [Step(.failed(.decoding, .accepted), "fail decoding")]),
        Sequence(
            testDescription: "after a lost response an early one counts, and later failures do not hide it",
            attempts: 3,
            steps: begin + [
                Step(.failed(.connectionLost, .responseLost), "wait 1 second"), Step(.waited, "adapt 2"),
                Step(.adapted, "send 2, accepting early responses"),
                Step(.failed(.connectionFailed, .neverArrived), "wait 2 seconds"), Step(.waited, "adapt 3"),
                Step(.adapted, "send 3, accepting early responses"),
                Step(.refused(422, .refused), "fail refused, response-lost"),
            ]),
        Sequence(
            testDescription: "a server that still processes the form is asked again", attempts: 3,
            steps: begin + [
                Step(.failed(.connectionLost, .responseLost), "wait 1 second"), Step(.waited, "adapt 2"),
                Step(.adapted, "send 2, accepting early responses"),
                Step(.refused(409, .refused), "wait 2 seconds"),
            ]),
        Sequence(
            testDescription: "an interceptor retries at once, as often as it may", interceptorRetries: 1,
            steps: begin + [
                Step(.refused(401, .refused), "decide"), Step(.decided(.retry(after: .zero)), "wait 0 seconds"),
                Step(.waited, "adapt 2"), Step(.adapted, "send 2"), Step(.refused(401, .refused), "decide"),
                Step(.decided(.retry(after: .zero)), "fail refused"),
            ]),
        Sequence(
            testDescription: "an interceptor gives up", attempts: 9, interceptorRetries: 1,
            steps: begin + [
                Step(.refused(503, .refused), "decide"), Step(.decided(.giveUp), "fail refused"),
            ]),
        Sequence(
            testDescription: "an interceptor passes on to the policy", attempts: 2, interceptorRetries: 1,
            steps: begin + [
                Step(.refused(503, .refused), "decide"), Step(.decided(.passOn), "wait 1 second"),
            ]),
        Sequence(
            testDescription: "a stream that can be read only once", attempts: 3, isReplayable: false,
            steps: begin + [Step(.refused(503, .refused), "fail refused")]),
        Sequence(
            testDescription: "an attempt after the total timeout is not waited for", attempts: 3,
            totalTimeout: .seconds(1), steps: begin + [Step(.refused(503, .refused), "fail deadline-passed")]),
        Sequence(
            testDescription: "the device slept until after the deadline", attempts: 3, deadline: .seconds(60),
            steps: begin + [
                Step(.refused(503, .refused), "wait 1 second"), Step(.waited, "fail refused", elapsed: .seconds(61)),
            ]),
        Sequence(
            testDescription: "the device slept until after the total timeout", attempts: 3, totalTimeout: .seconds(60),
            steps: begin + [
                Step(.refused(503, .refused), "wait 1 second"),
                Step(.waited, "fail deadline-passed", elapsed: .seconds(60)),
            ]),
        Sequence(
            testDescription: "an attempt may start at the deadline, and not after it", attempts: 9,
            deadline: .seconds(60),
            steps: begin + [
                Step(.refused(503, .refused), "wait 1 second", elapsed: .seconds(59)),
                Step(.waited, "adapt 2", elapsed: .seconds(60)), Step(.adapted, "send 2", elapsed: .seconds(60)),
                Step(.refused(503, .refused), "fail refused", elapsed: .seconds(60)),
            ]),
        Sequence(
            testDescription: "an earlier process may have delivered the form", attempts: 3,
            delivery: .responseLost(resource: nil),
            steps: [
                Step(.started, "prepare"), Step(.prepared, "adapt 1"),
                Step(.adapted, "send 1, accepting early responses"),
                Step(.refused(409, .refused), "wait 1 second"), Step(.waited, "adapt 2"),
                Step(.adapted, "send 2, accepting early responses"),
                Step(.refused(422, .refused), "fail refused, response-lost"),
            ]),
        Sequence(
            testDescription: "nothing follows once an upload has failed",
            steps: begin + [Step(.refused(422, .refused), "fail refused"), Step(.succeeded, "nothing")]),
    ]

    @Test(arguments: sequences)
    func `each event leads to the next action`(sequence: Sequence) throws {
        var player = try sequence.player()
        for step in sequence.steps {
            #expect(player.play(step.event, elapsed: step.elapsed) == step.action)
            player.expectNoOtherEvents()
        }
    }

    /// The events that lead to a state, and the actions that follow from the events that are possible there.
    static let states: [(name: String, events: [Event], actions: [String: String])] = [
        ("ready", [], ["started": "prepare"]),
        ("preparing", [.started], ["prepared": "adapt 1"]),
        ("adapting", [.started, .prepared], ["adapted": "send 1"]),
        (
            "sending", [.started, .prepared, .adapted],
            ["succeeded": "verify", "failed": "decide"]
        ),
        (
            "verifying", [.started, .prepared, .adapted, .succeeded],
            ["verified": "finish after 1", "failed": "decide"]
        ),
        (
            "deciding", [.started, .prepared, .adapted, .failed(.connectionLost, .neverArrived)],
            ["decided": "wait 1 second"]
        ),
        (
            "waiting",
            [.started, .prepared, .adapted, .failed(.connectionLost, .neverArrived), .decided(.passOn)],
            ["waited": "adapt 2"]
        ),
        ("over", [.started, .prepared, .adapted, .succeeded, .verified], [:]),
    ]

    static let events: [Event] = [
        .started, .prepared, .adapted, .checked, .succeeded, .verified, .failed(.connectionLost, .neverArrived),
        .decided(.passOn), .waited,
    ]

    @Test(arguments: states)
    func `each event leads to one action in a state, or is a mistake`(
        state: String, before: [Event], actions: [String: String]
    ) throws {
        let request = try Player.request()
        var retry = RetryPolicy(maximumAttempts: 3)
        retry.firstDelay = .seconds(1)
        retry.jitter = 0
        var player = Player(
            DeliveryMachine(
                DeliveryMachine.Rules(url: request.url, retryPolicy: retry, hasInterceptors: true, verifies: true)),
            request)
        for event in before { #expect(player.play(event) != "nothing") }
        for event in Self.events {
            var next = player
            let name = String("\(event)".prefix { $0 != "(" })
            #expect(next.play(event) == actions[name] ?? "nothing", "\(state), \(name)")
        }
    }

    @Test func `nothing is possible after an event that is a mistake`() throws {
        var generator = SystemRandomNumberGenerator()
        var machine = DeliveryMachine(
            DeliveryMachine.Rules(url: try Player.request().url, retryPolicy: .never))
        for event in [DeliveryMachine.Event.waited, .started] {
            guard case .fault = machine.handle(event, elapsed: .zero, using: &generator) else {
                Issue.record("\(event) leads to an action.")
                return
            }
        }
    }

    @Test func `any status from 200 to 299 accepts an ordinary form, whose address is no secret`() throws {
        let request = try Player.request()
        var player = Player(DeliveryMachine(DeliveryMachine.Rules(url: request.url, retryPolicy: .never)), request)
        for event in [Event.started, .prepared, .adapted] { player.play(event) }
        guard case .send(_, let statuses, _, let isSecret) = player.action else {
            Issue.record("Nothing is sent.")
            return
        }
        #expect(statuses == Set(200...299) && !isSecret)
    }

    // MARK: - Prepared again

    @Test func `a refused form is prepared for each smaller limit that the server reports, up to five times`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        let request = try Player.request()
        var player = Player(
            DeliveryMachine(
                DeliveryMachine.Rules(url: url, retryPolicy: .never, followsServerLimit: true)), request)
        player.play(.started)
        for preparation in 2...5 {
            player.play(.prepared)
            player.play(.adapted)
            let limit = Int(request.body?.contentLength ?? 0) - preparation
            #expect(player.play(.tooLarge(limit: limit)) == "prepare within \(limit)")
        }
        player.play(.prepared)
        player.play(.adapted)
        #expect(player.play(.tooLarge(limit: 1)) == "fail refused")
        #expect(player.machine.lastError?.attempts == 5)
    }

    @Test func `a limit that the form keeps is not the reason for a refusal`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        var player = Player(
            DeliveryMachine(
                DeliveryMachine.Rules(url: url, retryPolicy: .never, followsServerLimit: true)), try Player.request())
        for event in [Event.started, .prepared, .adapted] { player.play(event) }
        #expect(player.play(.tooLarge(limit: 100_000)) == "fail refused")
    }
}
