import Foundation
import HTTPTypes
import PostcardWire
import Testing

@testable import PostcardClient

/// Forms of 100 bytes whose server says that it has them, or how much of them it has.
extension DeliveryMachineTests {
    private static let created: Event = .answered(201, [.location: "/uploads/1"])
    private static let offer: Event = .answered(204, [.uploadLimit: "max-append-size=60"])
    private static let cut: Event = .failed(.connectionLost, .neverArrived)
    private static let busy: Event = .turnedDown(503, [.uploadComplete: "?1"])

    private static let creating = [
        Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"), Step(offer, "POST / 0–0"),
    ]
    private static let appending =
        creating + [
            // Nothing was sent to which a server could have responded.
            Step(created, "check"), Step(.succeeded, "nothing"), Step(.checked, "PATCH /uploads/1 0–60"),
            Step(.checked, "nothing"),
        ]
    private static let ending = appending + [Step(.answered(204, [:]), "PATCH /uploads/1 60–100")]
    /// An upload resource is given up.
    private static let cancelled = Step(.answered(204, [:]), "fail refused")

    private static func located(_ offset: Int, _ isComplete: String = "?0") -> Event {
        .answered(204, [.uploadOffset: "\(offset)", .uploadComplete: isComplete])
    }

    static let completedSequences = [
        ResumedSequence(
            testDescription: "a refusal of the form itself is not resumed", steps: ending + [Step(busy, "fail refused")]
        ),
        ResumedSequence(
            testDescription: "a refusal of the form itself is tried again as the ordinary policy says", attempts: 2,
            steps: ending + [
                Step(busy, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS /"),
                Step(offer, "POST / 0–0"), Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–60"),
                Step(.answered(204, [:]), "PATCH /uploads/1 60–100"), Step(busy, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "interruptions that were resumed do not count for the ordinary policy", attempts: 2,
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(located(80), "check"), Step(.checked, "PATCH /uploads/1 80–100"),
                Step(busy, "wait 0 seconds"), Step(.waited, "adapt 3"), Step(.adapted, "OPTIONS /"),
                Step(offer, "POST / 0–0"), Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–60"),
                Step(.answered(204, [:]), "PATCH /uploads/1 60–100"), Step(busy, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a form that is refused when it is announced is not sent",
            steps: creating + [Step(.answered(404, [.uploadComplete: "?1"]), "fail refused")]),
        ResumedSequence(
            testDescription: "a refusal in response to HEAD is not resumed",
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(.answered(503, [.uploadComplete: "?1"]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a complete upload that is gone is not sent again",
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(.answered(410, [.uploadComplete: "?1"]), "fail refused, response-lost"),
            ]),
        ResumedSequence(
            testDescription: "a busy server that has the whole form is asked for its response later",
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(located(100, "?1"), "check"), Step(.checked, "PATCH /uploads/1 100–100"),
                Step(.refused(503, .refused), "wait 0 seconds"), Step(.waited, "adapt 3"),
                Step(.adapted, "HEAD /uploads/1"),
            ]),
        ResumedSequence(
            testDescription: "a success that completes the upload before its end is the response to the form",
            steps: appending + [Step(.answered(204, [.uploadComplete: "?1"]), "finish after 1")]),
        ResumedSequence(
            testDescription: "a complete upload with fewer bytes is given up",
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(located(80, "?1"), "DELETE /uploads/1"), cancelled,
            ]),
        ResumedSequence(
            testDescription: "a server that loses what it had acknowledged is given up",
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(located(59), "DELETE /uploads/1"), cancelled,
            ]),
        ResumedSequence(
            testDescription: "a server that has more than was sent gets what it is missing",
            steps: appending + [Step(.answered(204, [.uploadOffset: "61"]), "PATCH /uploads/1 61–100")]),
        ResumedSequence(
            testDescription: "a server that has more than the form is given up after an append",
            steps: appending + [
                Step(.answered(204, [.uploadOffset: "101"]), "DELETE /uploads/1"), Step(cut, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "an append of which the server took a part continues after it",
            steps: appending + [Step(.answered(204, [.uploadOffset: "30"]), "PATCH /uploads/1 30–90")]),
        ResumedSequence(
            testDescription: "a server that accepts appends and takes nothing of them is left after five times",
            steps: appending
                + (1...4).flatMap { _ in
                    [
                        Step(.answered(204, [.uploadOffset: "0"]), "HEAD /uploads/1"), Step(located(0), "check"),
                        Step(.checked, "PATCH /uploads/1 0–60"),
                    ]
                } + [Step(.answered(204, [.uploadOffset: "0"]), "fail refused")]),
        ResumedSequence(
            testDescription: "a server that has all bytes and waits for more is told that these are all",
            steps: ending + [
                Step(.answered(204, [.uploadComplete: "?0"]), "PATCH /uploads/1 100–100"),
                Step(.answered(201, [.uploadComplete: "?1"]), "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that always waits for more is left after five times",
            steps: ending
                + [Step](
                    repeating: Step(.answered(204, [.uploadComplete: "?0"]), "PATCH /uploads/1 100–100"), count: 4)
                + [Step(.answered(204, [.uploadComplete: "?0"]), "fail refused, response-lost")]),
        ResumedSequence(
            testDescription: "a conflict with an incomplete upload that has all bytes is followed",
            steps: ending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(located(60), "check"), Step(.checked, "PATCH /uploads/1 60–100"),
                Step(.turnedDown(409, [.uploadOffset: "100", .uploadComplete: "?0"]), "HEAD /uploads/1"),
                Step(.answered(204, [.uploadOffset: "100", .uploadComplete: "?1"]), "check"),
            ]),
        ResumedSequence(
            testDescription: "two addresses for one upload are none",
            steps: creating + [
                Step(
                    .announced([.location: "/uploads/1"], 201, [.location: "/uploads/2"]), "DELETE /uploads/2"),
                cancelled,
            ]),
    ]
}
