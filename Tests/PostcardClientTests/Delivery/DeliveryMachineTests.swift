import Foundation
import HTTPTypes
import PostcardForm
import PostcardResumption
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
        case started, prepared, adapted, waited, checked, succeeded
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
        case announced(HTTPFields, Int)
        case decided(UploadDecision)
    }

    struct Sequence: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var attempts = 1
        var interceptorRetries: Int?
        var totalTimeout: Duration?
        var deadline: Duration?
        var delivery = Delivery.neverArrived
        var isReplayable = true
        let steps: [Step]
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
            testDescription: "an event that does not fit the state leads to nothing",
            steps: [
                Step(.adapted, "nothing"), Step(.started, "prepare"), Step(.waited, "nothing"),
                Step(.prepared, "adapt 1"), Step(.checked, "nothing"), Step(.adapted, "send 1"),
                Step(.checked, "nothing"), Step(.succeeded, "finish after 1"), Step(.succeeded, "nothing"),
            ]),
    ]

    @Test(arguments: sequences)
    func `each event leads to the next action`(sequence: Sequence) throws {
        let url = try #require(URL(string: "http://example.org/"))
        var form = MultipartForm()
        if !sequence.isReplayable {
            form.append(FormStream(AsyncStream<Data> { $0.finish() }), named: "log", filename: "log")
        }
        let request = try UploadRequest(
            url: url, method: .post, headerFields: HTTPFields(), body: UploadBody(try form.layout()),
            maximumResponseBytes: 1)
        var retry = RetryPolicy(maximumAttempts: sequence.attempts)
        retry.firstDelay = .seconds(1)
        retry.jitter = 0
        retry.maximumInterceptorRetries = sequence.interceptorRetries ?? 0
        retry.deadline = sequence.deadline
        var player = Player(
            DeliveryMachine(
                DeliveryMachine.Rules(
                    url: url, retry: retry, hasInterceptors: sequence.interceptorRetries != nil,
                    totalTimeout: sequence.totalTimeout, delivery: sequence.delivery)), request)
        for step in sequence.steps {
            #expect(player.play(step.event, elapsed: step.elapsed) == step.action)
        }
    }

    // MARK: - Resumed

    /// A form of 100 bytes that is resumed.
    struct ResumedSequence: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var resource: String?
        /// The size of the appends that have passed in other uploads.
        var appendBytes: Int64?
        /// The size of the appends that have passed after larger ones had failed.
        var passed: Int64?
        let steps: [Step]
    }

    private static let offer: Event = .answered(204, [.uploadLimit: "min-size=0"])
    private static let limited: Event = .answered(204, [.uploadLimit: "max-append-size=60"])
    private static let created: Event = .answered(201, [.location: "/uploads/1"])
    private static let appended: Event = .answered(201, [:])

    private static func located(_ offset: Int, isComplete: Bool = false) -> Event {
        .answered(204, [.uploadOffset: "\(offset)", .uploadComplete: isComplete ? "?1" : "?0"])
    }

    private static let asked = [
        Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"),
    ]
    private static let creating = asked + [Step(offer, "POST / 0–0")]
    private static let sending =
        asked + [
            Step(offer, "POST / 0–0"), Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–100"),
        ]
    private static let cut =
        sending + [
            Step(.failed(.connectionLost, .neverArrived), "wait 0 seconds"), Step(.waited, "adapt 2"),
            Step(.adapted, "HEAD /uploads/1"),
        ]

    static let resumedSequences = [
        ResumedSequence(
            testDescription: "a form in one append", steps: sending + [Step(appended, "finish after 1")]),
        ResumedSequence(
            testDescription: "a form in two appends, as the server wants it",
            steps: asked + [
                Step(limited, "POST / 0–0"), Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–60"),
                Step(.answered(204, [:]), "PATCH /uploads/1 60–100"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that does not resume gets an ordinary upload",
            steps: asked + [
                Step(.answered(404, [:]), "OPTIONS /"), Step(.answered(200, [:]), "send 1"),
                Step(.succeeded, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that closes the connection at OPTIONS gets an ordinary upload",
            steps: asked + [Step(.failed(.connectionLost, .neverArrived), "send 1")]),
        ResumedSequence(
            testDescription: "a server that offers resumption and makes no resource gets an ordinary upload",
            steps: asked + [Step(offer, "POST / 0–0"), Step(.answered(404, [:]), "send 1")]),
        ResumedSequence(
            testDescription: "a creation that was interrupted after a 104 with the resource is not made again",
            steps: creating + [
                Step(.interrupted(.connectionLost, [.location: "uploads/1"]), "wait 0 seconds"),
                Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"), Step(located(0), "check"),
                Step(.checked, "PATCH /uploads/1 0–100"), Step(appended, "finish after 2"),
            ]),
        ResumedSequence(
            testDescription: "a creation that a server fails after a 104 with the resource is not made again",
            steps: creating + [
                Step(.announced([.location: "/uploads/1"], 500), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1"),
            ]),
        ResumedSequence(
            testDescription: "a creation that a server refuses after a 104 is not resumed",
            steps: creating + [Step(.announced([.location: "/uploads/1"], 422), "fail refused")]),
        ResumedSequence(
            testDescription: "after two creations that are lost without a resource, the upload is an ordinary one",
            steps: creating + [
                Step(.failed(.connectionLost, .responseLost), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "POST / 0–0"), Step(.interrupted(.timedOut, [:]), "wait 0 seconds"),
                Step(.waited, "adapt 3"), Step(.adapted, "send 3"),
                Step(.succeeded, "finish after 3"),
            ]),
        ResumedSequence(
            testDescription: "a server that cannot be reached loses no creation",
            steps: creating + [
                Step(.failed(.connectionFailed, .neverArrived), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "POST / 0–0"), Step(.failed(.connectionFailed, .neverArrived), "wait 0 seconds"),
                Step(.waited, "adapt 3"), Step(.adapted, "POST / 0–0"),
            ]),
        ResumedSequence(
            testDescription: "an upload that was cut continues from what the server has",
            steps: cut + [
                Step(located(40), "check"), Step(.checked, "PATCH /uploads/1 40–100"),
                Step(appended, "finish after 2"),
            ]),
        ResumedSequence(
            testDescription: "a server that has lost what it had gets the form from the start",
            steps: cut + [
                Step(.answered(404, [:]), "POST / 0–0"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 0–100"),
            ]),
        ResumedSequence(
            testDescription: "a server that claims more than was sent is not believed",
            steps: asked + [
                Step(limited, "POST / 0–0"), Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–60"),
                Step(.failed(.connectionLost, .neverArrived), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1"), Step(located(61), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a conflict with an offset is followed at once",
            steps: sending + [
                Step(.conflict(offset: 0), "HEAD /uploads/1"), Step(located(0), "check"),
                Step(.checked, "PATCH /uploads/1 0–100"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that rejects what it asked for is left after five times",
            steps: sending
                + [[Step]](
                    repeating: [
                        Step(.conflict(offset: 0), "HEAD /uploads/1"), Step(located(0), "check"),
                        Step(.checked, "PATCH /uploads/1 0–100"),
                    ], count: 4
                ).flatMap(\.self) + [Step(.conflict(offset: 0), "fail refused")]),
        ResumedSequence(
            testDescription: "a server that does not answer HEAD says its offset when it refuses an empty append",
            steps: cut + [
                Step(.answered(405, [:]), "PATCH /uploads/1 0–0"),
                Step(.answered(409, [.uploadOffset: "40"]), "check"), Step(.checked, "PATCH /uploads/1 40–100"),
                Step(.failed(.connectionLost, .neverArrived), "wait 0 seconds"), Step(.waited, "adapt 3"),
                Step(.adapted, "PATCH /uploads/1 40–40"), Step(.mismatch(expected: 70), "check"),
                Step(.checked, "PATCH /uploads/1 70–100"), Step(appended, "finish after 3"),
            ]),
        ResumedSequence(
            testDescription: "a server that accepts an empty append has the offset of that append",
            steps: cut + [
                Step(.answered(501, [:]), "PATCH /uploads/1 0–0"), Step(.answered(204, [:]), "check"),
                Step(.checked, "PATCH /uploads/1 0–100"), Step(appended, "finish after 2"),
            ]),
        ResumedSequence(
            testDescription: "a server that answers neither HEAD nor an empty append is not asked again",
            steps: cut + [
                Step(.answered(405, [:]), "PATCH /uploads/1 0–0"), Step(.answered(405, [:]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a conflict without an offset ends the upload",
            steps: cut + [
                Step(.answered(405, [:]), "PATCH /uploads/1 0–0"), Step(.answered(409, [:]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a server without HEAD that has the whole form is asked for its response",
            steps: cut + [
                Step(.answered(405, [:]), "PATCH /uploads/1 0–0"),
                Step(.answered(409, [.uploadOffset: "100"]), "check"), Step(.checked, "PATCH /uploads/1 100–100"),
                Step(.refused(404, .refused), "fail refused, response-lost"),
            ]),
        ResumedSequence(
            testDescription: "a server that has the whole form is asked for its response",
            steps: sending + [
                Step(.failed(.connectionLost, .responseLost), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1"), Step(located(100, isComplete: true), "check"),
                Step(.checked, "PATCH /uploads/1 100–100"), Step(appended, "finish after 2"),
            ]),
        ResumedSequence(
            testDescription: "a response that the server no longer has is lost",
            steps: sending + [
                Step(.failed(.connectionLost, .responseLost), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1"), Step(located(100, isComplete: true), "check"),
                Step(.checked, "PATCH /uploads/1 100–100"),
                Step(.refused(410, .refused), "fail refused, response-lost"),
            ]),
        ResumedSequence(
            testDescription: "what an earlier process has sent is checked and read for its digests",
            resource: "http://example.org/uploads/1",
            steps: asked + [
                Step(offer, "HEAD /uploads/1"), Step(located(40), "check, reading 40"),
                Step(.checked, "PATCH /uploads/1 40–100"), Step(.conflict(offset: 20), "HEAD /uploads/1"),
                Step(located(20), "check"),
            ]),
        ResumedSequence(
            testDescription: "a busy proxy is no reason to give up what an earlier process has sent",
            resource: "http://example.org/uploads/1",
            steps: asked + [Step(.answered(503, [:]), "wait 0 seconds")]),
        ResumedSequence(
            testDescription: "a file that has changed fails the upload",
            steps: cut + [Step(located(40), "check"), Step(.failed(.form, .neverArrived), "fail form")]),
    ]

    @Test(arguments: resumedSequences + limitedSequences)
    func `each event of a resumable upload leads to the next action`(sequence: ResumedSequence) throws {
        var policy = ResumptionPolicy(
            retry: .withoutDelays(maximumAttempts: 10), minimumBytes: 0)
        policy.versions = [.interop8, .interop6]
        policy.cautiousAppendBytes = 10...60
        var player = try Player(
            resuming: policy, sequence.resource.flatMap { URL(string: $0) },
            KnownServer(appendBytes: sequence.appendBytes))
        for step in sequence.steps { #expect(player.play(step.event, elapsed: step.elapsed) == step.action) }
        #expect(player.machine.passedAppendBytes == sequence.passed)
    }

    @Test(arguments: ["/uploads/1", "/uploads/2"])
    func `only the upload resource that a form was sent to can say that it did not arrive`(second: String) throws {
        let policy = ResumptionPolicy(retry: .withoutDelays(maximumAttempts: 10), minimumBytes: 0)
        var player = try Player(resuming: policy)
        for step in Self.sending { player.play(step.event) }
        player.play(.failed(.connectionLost, .responseLost))
        player.play(.waited)
        player.play(.adapted)
        if second == "/uploads/2" {
            player.play(.answered(404, [:]))
            player.play(.answered(201, [.location: second]))
            player.play(.checked)
            player.play(.failed(.connectionLost, .neverArrived))
            player.play(.waited)
            player.play(.adapted)
        }
        #expect(player.play(Self.located(40)) == "check")
        player.play(.checked)
        player.play(.failed(.connectionLost, .neverArrived))
        #expect(player.machine.lastError?.delivery == (second == "/uploads/1" ? .neverArrived : .responseLost))
    }

    // MARK: - Prepared again

    @Test func `a refused form is prepared for each smaller limit that the server reports, up to five times`() throws {
        let url = try #require(URL(string: "http://example.org/"))
        let request = try Player.request()
        var player = Player(
            DeliveryMachine(
                DeliveryMachine.Rules(url: url, retry: .never, followsServerLimit: true)), request)
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
                DeliveryMachine.Rules(url: url, retry: .never, followsServerLimit: true)), try Player.request())
        for event in [Event.started, .prepared, .adapted] { player.play(event) }
        #expect(player.play(.tooLarge(limit: 100_000)) == "fail refused")
    }
}
