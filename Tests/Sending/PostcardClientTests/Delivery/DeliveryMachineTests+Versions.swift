import Foundation
import HTTPTypes
import PostcardWire
import PostcardSendingSupport
import Testing

@testable import PostcardClient

/// Forms of 100 bytes to servers that know one version of the draft or another, and what version 9 has changed.
extension DeliveryMachineTests {
    private static let offer: Event = .answered(204, [.uploadLimit: "min-size=0"])
    private static let unknown: Event = .answered(400, [.uploadComplete: "?0"])
    private static let created: Event = .answered(201, [.location: "/uploads/1", .uploadComplete: "?0"])
    private static let appended: Event = .answered(201, [.uploadComplete: "?1"])
    private static let lost: Event = .failed(.connectionLost, .neverArrived)
    private static let named: HTTPFields = [.location: "/uploads/1"]

    private static func located(_ offset: Int) -> Event {
        .answered(204, [.uploadOffset: "\(offset)", .uploadComplete: "?0"])
    }

    private static let begun = [Step(.started, "prepare"), Step(.prepared, "adapt 1")]
    private static let asked = begun + [Step(.adapted, "OPTIONS / in 9")]
    private static let creating = asked + [Step(offer, "POST / 0–0 in 9")]
    private static let sending =
        creating + [Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–100 in 9")]
    private static let locating =
        sending + [Step(lost, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1 in 9")]
    /// A server without OPTIONS.
    private static let invited =
        asked + [
            Step(.answered(405, [:]), "OPTIONS / in 8"), Step(.answered(405, [:]), "OPTIONS / in 6"),
            Step(.answered(405, [:]), "send 1 in 9"),
        ]
    private static let deleted = Step(.answered(204, [:]), "fail refused")

    private static func resumed(in version: String) -> [Step] {
        [
            Step(.interrupted(.connectionLost, named), "wait 0 seconds"), Step(.waited, "adapt 2"),
            Step(.adapted, "HEAD /uploads/1\(version)"), Step(located(40), "check"),
            Step(.checked, "PATCH /uploads/1 40–100\(version)"), Step(appended, "finish after 2"),
        ]
    }

    static let versionedSequences = [
        negotiationSequences, invitationSequences, interimSequences, retrySequences, refusedInvitationSequences,
        repetitionSequences,
    ].flatMap(\.self).map { sequence in
        var sequence = sequence
        sequence.versions = [.interop9, .interop8, .interop6]
        return sequence
    }

    private static let negotiationSequences = [
        ResumedSequence(
            testDescription: "a server that speaks the newest version is asked once",
            steps: sending + [Step(appended, "finish after 1")]),
        ResumedSequence(
            testDescription: "a server that refuses a version is asked in the next one",
            steps: creating + [
                Step(unknown, "POST / 0–0 in 8"), Step(unknown, "POST / 0–0 in 6"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 0–100 in 6"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that accepts a creation and names no resource gets an ordinary form",
            steps: creating + [Step(.answered(201, [:]), "send 1"), Step(.succeeded, "finish after 1")]),
        ResumedSequence(
            testDescription: "a server that offers resumption and refuses every version ends the upload",
            steps: creating + [
                Step(unknown, "POST / 0–0 in 8"), Step(unknown, "POST / 0–0 in 6"), Step(unknown, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a refusal of the form itself is none of the version",
            steps: creating + [Step(.answered(400, [.uploadComplete: "?1"]), "fail refused")]),
        ResumedSequence(
            testDescription: "an origin is asked in the version that it has accepted before", version: .interop6,
            steps: begun + [Step(.adapted, "OPTIONS / in 6"), Step(offer, "POST / 0–0 in 6"), Step(created, "check")]),
        ResumedSequence(
            testDescription: "an origin that does not accept that version any more is asked in all",
            version: .interop6,
            steps: begun + [
                Step(.adapted, "OPTIONS / in 6"), Step(offer, "POST / 0–0 in 6"), Step(unknown, "POST / 0–0 in 9"),
                Step(created, "check"),
            ]),
        ResumedSequence(
            testDescription: "a server that changes its version within an upload is left",
            steps: locating + [
                Step(
                    .answered(204, [.uploadOffset: "40", .uploadDraftInteropVersion: "6"]),
                    "DELETE /uploads/1 in 9"), deleted,
            ]),
        ResumedSequence(
            testDescription: "the success of the last append is that of the form, whatever its version",
            steps: sending + [Step(.answered(201, [.uploadDraftInteropVersion: "8"]), "finish after 1")]),
        ResumedSequence(
            testDescription: "a complete upload is not left because of its version",
            steps: locating + [
                Step(
                    .answered(
                        204, [.uploadOffset: "100", .uploadComplete: "?1", .uploadDraftInteropVersion: "8"]),
                    "check"), Step(.checked, "PATCH /uploads/1 100–100 in 9"), Step(appended, "finish after 2"),
            ]),
        ResumedSequence(
            testDescription: "a server that creates an upload in its own version is followed",
            steps: creating + [
                Step(.answered(201, [.location: "/uploads/1", .uploadDraftInteropVersion: "8"]), "check"),
                Step(.checked, "PATCH /uploads/1 0–100 in 8"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that creates an upload in a version that the client does not speak is left",
            steps: creating + [
                Step(
                    .answered(201, [.location: "/uploads/1", .uploadDraftInteropVersion: "10"]),
                    "DELETE /uploads/1 in 9"), deleted,
            ]),
    ]

    private static let invitationSequences = [
        ResumedSequence(
            testDescription: "a server without OPTIONS that names a resource in a 104 is resumed",
            steps: invited + resumed(in: " in 9")),
        ResumedSequence(
            testDescription: "a form that a server without OPTIONS has accepted is not sent again",
            steps: invited + [Step(.succeeded, "finish after 1")]),
        ResumedSequence(
            testDescription: "a server without OPTIONS that fails after a 104 is resumed",
            steps: invited + [
                Step(.interrupted(.timedOut, named), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1 in 9"),
            ]),
        ResumedSequence(
            testDescription: "a server without OPTIONS that loses what it had gets the whole form again",
            steps: invited + [
                Step(.interrupted(.connectionLost, named), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1 in 9"),
                Step(.answered(404, [:]), "send 2, accepting early responses in 9"),
            ]),
        ResumedSequence(
            testDescription: "a server that has named nothing in one version is invited in the next", attempts: 4,
            steps: invited + [
                Step(lost, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS / in 9"),
                Step(.answered(405, [:]), "OPTIONS / in 8"), Step(.answered(405, [:]), "OPTIONS / in 6"),
                Step(.answered(405, [:]), "send 2 in 8"),
            ]),
        ResumedSequence(
            testDescription: "a server without OPTIONS is invited in the version in which it has named a resource",
            support: .unlisted(inviting: .interop6),
            steps: begun + [Step(.adapted, "send 1 in 6")] + resumed(in: " in 6")),
        ResumedSequence(
            testDescription: "a server without versions is invited without one", support: .unlisted(inviting: .newest),
            steps: begun + [Step(.adapted, "send 1")] + resumed(in: "")),
        ResumedSequence(
            testDescription: "the resource of an earlier process is used although nothing is known of the server",
            resource: "http://example.org/uploads/1", support: .unlisted(inviting: nil),
            steps: begun + [
                Step(.adapted, "HEAD /uploads/1 in 9"), Step(located(40), "check, reading 40"),
                Step(.checked, "PATCH /uploads/1 40–100 in 9"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that has named nothing in any version gets an ordinary form",
            support: .unlisted(inviting: nil),
            steps: begun + [Step(.adapted, "send 1"), Step(lost, "fail connection-lost")]),
        ResumedSequence(
            testDescription: "a server without OPTIONS that refuses the form is not resumed",
            steps: invited + [Step(.refused(422, .refused), "fail refused")]),
        ResumedSequence(
            testDescription: "a server without OPTIONS that has all bytes and waits for more is asked",
            steps: invited + [
                Step(
                    .announced(named, 201, [.uploadComplete: "?0", .location: "/uploads/1"]),
                    "HEAD /uploads/1 in 9"), Step(located(100), "check"),
                Step(.checked, "PATCH /uploads/1 100–100 in 9"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server without OPTIONS that waits for more and does not say where has not the form",
            steps: invited + [
                Step(.answered(201, [.uploadComplete: "?0"]), "fail refused, response-lost")
            ]),
        ResumedSequence(
            testDescription: "a server without OPTIONS that always waits for more and forgets it is left",
            steps: invited
                + [[Step]](
                    repeating: [Step(waiting, "HEAD /uploads/1 in 9"), Step(.answered(404, [:]), "send 1 in 9")],
                    count: 4
                ).flatMap(\.self) + [Step(waiting, "fail refused, response-lost")]),
    ]

    private static let waiting: Event = .answered(201, [.uploadComplete: "?0", .location: "/uploads/1"])
    private static let wrongVersion: Event = .turnedDown(400, [.uploadComplete: "?0"])

    private static let refusedInvitationSequences = [
        ResumedSequence(
            testDescription: "a server without OPTIONS that refuses the versions gets an ordinary form",
            steps: invited + [
                Step(wrongVersion, "send 1 in 8"), Step(wrongVersion, "send 1 in 6"), Step(wrongVersion, "send 1"),
                Step(wrongVersion, "send 1"), Step(.succeeded, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that may have refused the draft's fields gets an ordinary form",
            steps: invited + [Step(.refused(400, .refused), "send 1"), Step(.refused(400, .refused), "fail refused")]),
        ResumedSequence(
            testDescription: "a 400 that is the form's own ends the upload",
            steps: invited + [Step(.turnedDown(400, [.uploadComplete: "?1"]), "fail refused")]),
        ResumedSequence(
            testDescription: "the resource of a 104 is used after a creation that came too often",
            steps: creating + [
                Step(.announced(named, 429), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1 in 9"),
            ]),
        ResumedSequence(
            testDescription: "a server that is busy when it is asked for a limit is asked again",
            cautiousAppendBytes: 60...60,
            steps: sending + tooLarge + [
                Step(.answered(503, [:]), "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1 in 9"), Step(located(0), "check"),
                Step(.checked, "PATCH /uploads/1 0–60 in 9"), Step(.refused(413, .refused), "OPTIONS / in 9"),
                Step(lost, "wait 0 seconds"),
            ]),
        ResumedSequence(
            testDescription: "an empty append that repeats the response to the form ends the upload",
            steps: locating + [
                Step(.answered(405, [:]), "PATCH /uploads/1 0–0 in 9"),
                Step(.answered(201, [.uploadComplete: "?1"]), "check"),
                Step(.checked, "PATCH /uploads/1 100–100 in 9"), Step(appended, "finish after 2"),
            ]),
    ]

    /// The whole form and its first 60 bytes are refused, without a limit.
    private static let tooLarge = [
        Step(.refused(413, .refused), "HEAD /uploads/1 in 9"), Step(located(0), "check"),
        Step(.checked, "PATCH /uploads/1 0–60 in 9"), Step(.refused(413, .refused), "OPTIONS / in 9"),
    ]

    private static let unclear = [
        Step(.failed(.connectionLost, .responseLost), "wait 0 seconds"), Step(.waited, "adapt 2"),
        Step(.adapted, "HEAD /uploads/1 in 9"),
    ]

    private static let repetitionSequences: [ResumedSequence] =
        [404, 410].map { status in
            ResumedSequence(
                testDescription: "what may have become a form is not sent again after a \(status)", attempts: 3,
                repeatsUnclear: false,
                steps: sending + unclear + [Step(.answered(status, [:]), "fail refused, response-lost")])
        } + [
            ResumedSequence(
                testDescription: "a server that has only a part of the form gets it again once that is gone",
                repeatsUnclear: false,
                steps: sending + unclear + [
                    Step(located(40), "check"), Step(.checked, "PATCH /uploads/1 40–100 in 9"),
                    Step(.refused(404, .refused), "POST / 0–0 in 9"),
                ]),
            ResumedSequence(
                testDescription: "a server that had all bytes does not get them again", repeatsUnclear: false,
                steps: sending + unclear + [
                    Step(located(100), "check"), Step(.checked, "PATCH /uploads/1 100–100 in 9"),
                    Step(.refused(404, .refused), "fail refused, response-lost"),
                ]),
            ResumedSequence(
                testDescription: "what may have become a form is asked for, although its time is over",
                repeatsUnclear: false,
                steps: creating + [
                    Step(
                        .answered(201, [.location: "/uploads/1", .uploadLimit: "max-age=10"]), "check"),
                    Step(.checked, "PATCH /uploads/1 0–100 in 9"),
                    Step(.failed(.connectionLost, .responseLost), "wait 0 seconds"), Step(.waited, "adapt 2"),
                    Step(.adapted, "HEAD /uploads/1 in 9", elapsed: .seconds(20)),
                ]),
            ResumedSequence(
                testDescription: "an invitation that may have become a form is not sent again", repeatsUnclear: false,
                steps: invited + [
                    Step(.interrupted(.connectionLost, named), "wait 0 seconds"), Step(.waited, "adapt 2"),
                    Step(.adapted, "HEAD /uploads/1 in 9"),
                    Step(.answered(404, [:]), "fail refused, response-lost"),
                ]),
            ResumedSequence(
                testDescription: "what an earlier process may have delivered is not sent again",
                resource: "http://example.org/uploads/1", repeatsUnclear: false,
                delivery: .responseLost(resource: nil),
                steps: begun + [
                    Step(.adapted, "OPTIONS / in 9"), Step(offer, "HEAD /uploads/1 in 9"),
                    Step(.answered(404, [:]), "fail refused, response-lost"),
                ]),
        ]

    @Test(
        arguments: [
            (.failed(.connectionLost, .responseLost), .interop9), (.failed(.timedOut, .responseLost), .interop9),
            (.refused(503, .refused), .interop9), (.turnedDown(422, [.uploadComplete: "?1"]), .interop9),
            (.refused(422, .refused), .interop8), (.succeeded, .interop8),
        ] as [(Event, ResumptionVersion)])
    func `only a response teaches in which version other forms invite the server`(
        event: Event, version: ResumptionVersion
    ) throws {
        var policy = ResumptionPolicy(retryPolicy: .withoutDelays(maximumAttempts: 10), minimumBytes: 0)
        policy.versions = [.interop9, .interop8, .interop6]
        var player = try Player(resuming: policy)
        for step in Self.invited { player.play(step.event) }
        player.play(event)
        #expect(player.machine.support == .unlisted(inviting: version))
    }

    private static let interimSequences = [
        ResumedSequence(
            testDescription: "a 104 in another version is ignored, with its resource",
            steps: creating + [
                Step(
                    .interrupted(.connectionLost, [.location: "/uploads/1", .uploadDraftInteropVersion: "8"]),
                    "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "POST / 0–0 in 9"),
            ]),
        ResumedSequence(
            testDescription: "a 104 in another version is ignored, with its limits",
            steps: sending + [
                Step(
                    .announced([.uploadLimit: "max-size=1", .uploadDraftInteropVersion: "8"], 201),
                    "finish after 1")
            ]),
        ResumedSequence(
            testDescription: "a 104 with a resource that accepts less than the form deletes it",
            steps: creating + [
                Step(
                    .interrupted(.refused, [.location: "/uploads/1", .uploadLimit: "max-size=99"]),
                    "DELETE /uploads/1 in 9"), deleted,
            ]),
        ResumedSequence(
            testDescription: "limits in a 104 to an append count, and end the upload if the form is larger",
            steps: sending + [
                Step(.interrupted(.refused, [.uploadLimit: "max-size=99"]), "DELETE /uploads/1 in 9"), deleted,
            ]),
        ResumedSequence(
            testDescription: "limits in a 104 to an append that breaks count for the next one",
            steps: sending + [
                Step(.interrupted(.connectionLost, [.uploadLimit: "max-append-size=50"]), "wait 0 seconds"),
                Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1 in 9"), Step(located(10), "check"),
                Step(.checked, "PATCH /uploads/1 10–60 in 9"),
            ]),
        ResumedSequence(
            testDescription: "limits that contradict each other end the upload",
            steps: creating + [
                Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–100 in 9"),
                Step(lost, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1 in 9"),
                Step(
                    .answered(
                        204, [.uploadOffset: "40", .uploadLimit: "min-append-size=60, max-append-size=50"]),
                    "DELETE /uploads/1 in 9"), deleted,
            ]),
    ]

    private static let retrySequences = [
        ResumedSequence(
            testDescription: "an upload that is locked is asked again later",
            steps: locating + [
                Step(.answered(423, [:]), "wait 0 seconds"), Step(.waited, "adapt 3"),
                Step(.adapted, "HEAD /uploads/1 in 9"), Step(.answered(409, [:]), "wait 0 seconds"),
                Step(.waited, "adapt 4"), Step(.adapted, "HEAD /uploads/1 in 9"), Step(located(40), "check"),
                Step(.checked, "PATCH /uploads/1 40–100 in 9"), Step(appended, "finish after 4"),
            ]),
        ResumedSequence(
            testDescription: "an upload that stays locked fails after as many attempts as the policy says",
            steps: locating
                + (3...10).flatMap { number in
                    [
                        Step(.answered(423, [:]), "wait 0 seconds"), Step(.waited, "adapt \(number)"),
                        Step(.adapted, "HEAD /uploads/1 in 9"),
                    ]
                } + [Step(.answered(423, [:]), "fail refused")]),
        ResumedSequence(
            testDescription: "a conflict without an offset asks for it",
            steps: sending + [
                Step(.turnedDown(409, [.uploadComplete: "?0"]), "HEAD /uploads/1 in 9"), Step(located(40), "check"),
                Step(.checked, "PATCH /uploads/1 40–100 in 9"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a conflict that does not say whose response it is ends the upload",
            steps: sending + [Step(.turnedDown(409, [:]), "fail refused")]),
        ResumedSequence(
            testDescription: "a success that completes the upload at its creation is the response to the form",
            steps: creating + [Step(.answered(200, [.uploadComplete: "?1"]), "finish after 1")]),
        ResumedSequence(
            testDescription: "a creation has no content in version 9, whatever the smallest append is",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-append-size=20"]), "POST / 0–0 in 9"),
                Step(unknown, "POST / 0–20 in 8"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 20–100 in 8"),
            ]),
        ResumedSequence(
            testDescription: "a server that accepts no append without a limit is asked for one",
            cautiousAppendBytes: 60...60,
            steps: sending + [
                Step(.refused(413, .refused), "HEAD /uploads/1 in 9"), Step(located(0), "check"),
                Step(.checked, "PATCH /uploads/1 0–60 in 9"), Step(.refused(413, .refused), "OPTIONS / in 9"),
                Step(.answered(204, [.uploadLimit: "max-append-size=50"]), "HEAD /uploads/1 in 9"),
                Step(located(0), "check"), Step(.checked, "PATCH /uploads/1 0–50 in 9"),
            ]),
    ]
}
