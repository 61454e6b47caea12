import Foundation
import HTTPTypes
import PostcardWire
import PostcardSendingSupport
import Testing

@testable import PostcardClient

/// Forms of 100 bytes that are resumed.
extension DeliveryMachineTests {
    /// A form of 100 bytes that is resumed.
    struct ResumedSequence: CustomTestStringConvertible, Sendable {
        let testDescription: String
        var resource: String?
        /// The maximum number of attempts of an ordinary upload.
        var attempts = 1
        /// Whether a form is sent again that the server may have.
        var repeatsUnclear = true
        /// What servers may have of the form from earlier processes.
        var delivery = PossibleDelivery.neverArrived
        /// How often interceptors may retry; `nil` if there are none.
        var interceptorRetries: Int?
        /// The size of the appends that have passed in other uploads.
        var appendBytes: Int64?
        /// What other uploads have shown of the server.
        var support = ResumptionSupport.unknown
        /// The version that the origin has accepted.
        var version: ResumptionVersion?
        /// The versions that are asked for, and named in the descriptions; `nil` for 8 and 6, without names.
        var versions: [ResumptionVersion]?
        /// The size of the appends that have passed after larger ones had failed.
        var passed: Int64?
        /// The size of the smallest form that is resumed.
        var minimumBytes: Int64 = 0
        /// The sizes of appends once one has failed for no known reason.
        var cautiousAppendBytes: ClosedRange<Int64> = 10...60
        let steps: [Step]

        /// The player of a machine with these settings.
        func player() throws -> Player {
            var policy = ResumptionPolicy(
                retryPolicy: .withoutDelays(maximumAttempts: 10), minimumBytes: minimumBytes)
            policy.versions = versions ?? [.interop8, .interop6]
            policy.cautiousAppendBytes = cautiousAppendBytes
            var ordinary = RetryPolicy.withoutDelays(maximumAttempts: attempts)
            ordinary.repeatsUnclear = repeatsUnclear
            if let interceptorRetries { ordinary.maximumInterceptorRetries = interceptorRetries }
            var player = try Player(
                resuming: policy, resource.flatMap { URL(string: $0) },
                KnownServer(support: support, version: version, appendBytes: appendBytes),
                ordinary: ordinary, hasInterceptors: interceptorRetries != nil, after: delivery)
            player.namesVersions = versions != nil
            return player
        }
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
    private static let lost: Event = .failed(.connectionLost, .neverArrived)
    private static let cut =
        sending + [Step(lost, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1")]
    /// The same, when an interceptor retries.
    private static let decided =
        sending + [
            Step(lost, "decide"), Step(.decided(.retry(after: .zero)), "wait 0 seconds"), Step(.waited, "adapt 2"),
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
            steps: asked + [Step(lost, "send 1")]),
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
            testDescription: "a server may have more than was sent, as long as the form has it",
            steps: asked + [
                Step(limited, "POST / 0–0"), Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–60"),
                Step(lost, "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1"), Step(located(61), "check"),
                Step(.checked, "PATCH /uploads/1 61–100"), Step(appended, "finish after 2"),
            ]),
        ResumedSequence(
            testDescription: "a server that claims more than the form has is not believed",
            steps: cut + [Step(located(101), "DELETE /uploads/1"), Step(.answered(204, [:]), "fail refused")]),
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
                Step(lost, "wait 0 seconds"), Step(.waited, "adapt 3"),
                Step(.adapted, "PATCH /uploads/1 40–40"), Step(.mismatch(expected: 70), "check"),
                Step(.checked, "PATCH /uploads/1 70–100"), Step(appended, "finish after 3"),
            ]),
        ResumedSequence(
            testDescription: "a server that accepts an empty append has the offset of that append",
            steps: cut + [
                Step(.answered(501, [:]), "PATCH /uploads/1 0–0"), Step(.answered(204, [:]), "check"),
                Step(.checked, "PATCH /uploads/1 0–60"), Step(.answered(204, [:]), "PATCH /uploads/1 60–100"),
                Step(appended, "finish after 2"),
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
            testDescription: "a server without HEAD that is complete is asked for its response",
            steps: cut + [
                Step(.answered(405, [:]), "PATCH /uploads/1 0–0"),
                Step(.answered(400, [.uploadComplete: "?1"]), "check"), Step(.checked, "PATCH /uploads/1 100–100"),
                Step(appended, "finish after 2"),
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
                Step(.checked, "PATCH /uploads/1 40–100"), Step(.conflict(offset: 60), "HEAD /uploads/1"),
                Step(located(60), "check"),
            ]),
        ResumedSequence(
            testDescription: "a busy proxy is no reason to give up what an earlier process has sent",
            resource: "http://example.org/uploads/1",
            steps: asked + [Step(.answered(503, [:]), "wait 0 seconds")]),
        ResumedSequence(
            testDescription: "interceptors retry a resumed upload as often as an ordinary one", interceptorRetries: 1,
            steps: decided + [Step(lost, "decide"), Step(.decided(.retry(after: .zero)), "fail connection-lost")]),
        ResumedSequence(
            testDescription: "interceptors may retry as often again when an upload has made progress",
            interceptorRetries: 1,
            steps: decided + [
                Step(located(40), "check"), Step(.checked, "PATCH /uploads/1 40–100"), Step(lost, "decide"),
                Step(.decided(.retry(after: .zero)), "wait 0 seconds"), Step(.waited, "adapt 3"),
            ]),
        ResumedSequence(
            testDescription: "progress counts for interceptors, although the server has rejected something since",
            interceptorRetries: 1,
            steps: decided + [
                Step(located(40), "check"), Step(.checked, "PATCH /uploads/1 40–100"),
                Step(.conflict(offset: 40), "HEAD /uploads/1"), Step(located(40), "check"),
                Step(.checked, "PATCH /uploads/1 40–100"), Step(lost, "decide"),
                Step(.decided(.retry(after: .zero)), "wait 0 seconds"), Step(.waited, "adapt 3"),
            ]),
        ResumedSequence(
            testDescription: "an upload that comes no further fails after as many attempts as the policy says",
            steps: sending
                + (2...10).flatMap { number in
                    [
                        Step(lost, "wait 0 seconds"), Step(.waited, "adapt \(number)"),
                        Step(.adapted, "HEAD /uploads/1"),
                    ]
                } + [Step(lost, "fail connection-lost")]),
        ResumedSequence(
            testDescription: "a file that has changed fails the upload",
            steps: cut + [Step(located(40), "check"), Step(.failed(.form, .neverArrived), "fail form")]),
    ]

    static let allResumedSequences = resumedSequences + limitedSequences + completedSequences + versionedSequences

    @Test(arguments: allResumedSequences)
    func `each event of a resumable upload leads to the next action`(sequence: ResumedSequence) throws {
        var player = try sequence.player()
        for step in sequence.steps {
            #expect(player.play(step.event, elapsed: step.elapsed) == step.action)
            player.expectNoOtherEvents()
        }
        #expect(player.machine.passedAppendBytes == sequence.passed)
    }

    @Test func `the address of an upload resource is a secret, and that of the server is none`() throws {
        let policy = ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 10), minimumBytes: 0)
        var player = try Player(resuming: policy)
        var requests: [String] = []
        for step in Self.cut {
            player.play(step.event)
            guard case .send(let request, _, _, let isSecret) = player.action else { continue }
            requests.append("\(request.method)\(isSecret ? ", secret" : "")")
        }
        #expect(requests == ["OPTIONS", "POST", "PATCH, secret", "HEAD, secret"])
    }

    /// What the server now accepts, and whether a form that it may have is sent again.
    @Test(
        arguments: [
            (UploadLimits(maximumBytes: 99), false), (UploadLimits(maximumBytes: 99), true),
            (UploadLimits(minimumBytes: 101), false), (UploadLimits(minimumAppendBytes: 100), false),
        ])
    func `limits that have changed do not make a form be sent twice`(limits: UploadLimits, repeats: Bool) throws {
        var ordinary = RetryPolicy.withoutDelays(maximumAttempts: 3)
        ordinary.repeatsUnclear = repeats
        var player = try Player(
            resuming: ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 10), minimumBytes: 0),
            URL(string: "http://example.org/uploads/1"),
            KnownServer(support: .offered(ResumptionOffer(version: .interop8, limits: limits))), ordinary: ordinary,
            after: .responseLost(resource: URL(string: "http://example.org/uploads/1")))
        for event in [.started, .prepared] as [Event] { player.play(event) }
        #expect(player.play(.adapted) == (repeats ? "send 1, accepting early responses" : "HEAD /uploads/1"))
        guard !repeats else { return }
        // The server has all of it: its response is asked for.
        #expect(player.play(Self.located(100, isComplete: true)).hasPrefix("check"))
    }

    // MARK: - Prepared again

    /// A form of 100 bytes that is resumed, and prepared again for a limit that the server reports.
    private static func prepared(minimumBytes: Int64) throws -> Player {
        var policy = ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 10), minimumBytes: minimumBytes)
        policy.cautiousAppendBytes = 10...60
        let request = try Player.request()
        let rules = DeliveryMachine.Rules(url: request.url, retryPolicy: .never, followsServerLimit: true)
        return Player(DeliveryMachine(rules, resumption: Resumption(policy)), request)
    }

    @Test func `a form that is prepared again is not sent to the upload resource of the larger one`() throws {
        var player = try Self.prepared(minimumBytes: 0)
        for step in Self.cut { player.play(step.event) }
        #expect(player.play(.answered(400, [.uploadLimit: "max-size=99"])) == "prepare within 99")
        player.request = try Player.request(bytes: 99)
        #expect(player.play(.prepared) == "adapt 3")
        #expect(player.play(.adapted) == "OPTIONS /")
    }

    @Test func `a form that is prepared again may be too small to be resumed`() throws {
        var player = try Self.prepared(minimumBytes: 100)
        for step in Self.creating { player.play(step.event) }
        #expect(player.play(.answered(400, [.uploadLimit: "max-size=99"])) == "prepare within 99")
        #expect(player.machine.support != nil)
        player.request = try Player.request(bytes: 99)
        #expect(player.play(.prepared) == "adapt 2")
        #expect(player.play(.adapted) == "send 2")
        // In this attempt the server has said nothing about resumption, and what stops the form is final.
        #expect(player.machine.support == nil)
        #expect(player.play(.refused(413, .refused)) == "fail refused")
    }

    @Test func `a form that is prepared again can be tried in pieces again`() throws {
        var player = try Self.prepared(minimumBytes: 0)
        let busy: [Event] = [.adapted, .answered(503, [:]), .answered(503, [:])]
        for event in [.started, .prepared] + busy { player.play(event) }
        #expect(player.play(.refused(413, .refused)) == "wait 0 seconds")
        player.play(.waited)
        for event in [.adapted, .answered(405, [:]), .answered(405, [:])] as [Event] { player.play(event) }
        #expect(player.play(.turnedDown(413, [.uploadLimit: "max-size=99"])) == "prepare within 99")
        player.request = try Player.request(bytes: 99)
        for event in [.prepared] + busy { player.play(event) }
        #expect(player.play(.refused(413, .refused)) == "wait 0 seconds")
    }

    // MARK: - Lost responses

    @Test(arguments: ["/uploads/1", "/uploads/2"])
    func `only the upload resource that a form was sent to can say that it did not arrive`(second: String) throws {
        let policy = ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 10), minimumBytes: 0)
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
}
