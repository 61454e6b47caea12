import Foundation
import HTTPTypes
import PostcardForm
import PostcardWire
import Testing

@testable import PostcardClient

/// Forms of 100 bytes through limits, announced or not.
extension DeliveryMachineTests {
    private static let created: Event = .answered(201, [.location: "/uploads/1"])
    private static let appended: Event = .answered(201, [:])
    private static let asked = [
        Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"),
    ]
    private static let sending =
        asked + [
            Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"), Step(created, "check"),
            Step(.checked, "PATCH /uploads/1 0–100"),
        ]

    /// An ordinary form, because the server was busy when it was asked.
    private static let busy = asked + [Step(.answered(503, [:]), "OPTIONS /"), Step(.answered(503, [:]), "send 1")]

    private static func located(_ offset: Int, _ limits: String? = nil) -> Event {
        var fields: HTTPFields = [.uploadOffset: "\(offset)", .uploadComplete: "?0"]
        fields[.uploadLimit] = limits
        return .answered(204, fields)
    }

    /// An append fails, and the next one begins at an offset.
    private static func again(_ failure: Event, at offset: Int, _ append: String) -> [Step] {
        [Step(failure, "HEAD /uploads/1"), Step(located(offset), "check"), Step(.checked, append)]
    }

    /// An attempt is interrupted, and the next one begins at an offset.
    private static func interrupted(_ failure: Event, by number: Int, at offset: Int, _ append: String) -> [Step] {
        [
            Step(failure, "wait 0 seconds"), Step(.waited, "adapt \(number)"), Step(.adapted, "HEAD /uploads/1"),
            Step(located(offset), "check"), Step(.checked, append),
        ]
    }

    private static let cap: Event = .refused(413, .refused)
    private static let cut: Event = .failed(.connectionLost, .neverArrived)

    static let limitedSequences = [
        ResumedSequence(
            testDescription: "an append that is refused without a limit is followed by smaller ones, and then none",
            steps: sending + again(cap, at: 0, "PATCH /uploads/1 0–60") + again(cap, at: 0, "PATCH /uploads/1 0–30")
                + again(cap, at: 0, "PATCH /uploads/1 0–15") + again(cap, at: 0, "PATCH /uploads/1 0–10")
                + [
                    Step(cap, "OPTIONS /"), Step(.answered(204, [.uploadLimit: "min-size=0"]), "DELETE /uploads/1"),
                    Step(.answered(204, [:]), "fail refused"),
                ]),
        ResumedSequence(
            testDescription: "an ordinary form that a limit stops, while the server was busy, is sent in pieces later",
            steps: [
                Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"),
                Step(.answered(503, [:]), "OPTIONS /"), Step(.answered(503, [:]), "send 1"),
                Step(cap, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS /"),
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 0–60"),
            ]),
        ResumedSequence(
            testDescription: "an ordinary form that a limit stops is not sent again while the server stays busy",
            steps: [
                Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"),
                Step(.answered(503, [:]), "OPTIONS /"), Step(.answered(503, [:]), "send 1"),
                Step(cap, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS /"),
                Step(.answered(503, [:]), "wait 0 seconds"), Step(.waited, "adapt 3"), Step(.adapted, "OPTIONS /"),
                Step(.failed(.connectionLost, .neverArrived), "wait 0 seconds"), Step(.waited, "adapt 4"),
                Step(.adapted, "OPTIONS /"), Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"),
                Step(created, "check"), Step(.checked, "PATCH /uploads/1 0–60"),
            ]),
        ResumedSequence(
            testDescription: "an ordinary form that a limit stops is refused once the server resumes nothing",
            steps: [
                Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"),
                Step(.answered(503, [:]), "OPTIONS /"), Step(.answered(503, [:]), "send 1"),
                Step(cap, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS /"),
                Step(.answered(405, [:]), "OPTIONS /"), Step(.answered(405, [:]), "send 2"), Step(cap, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "an ordinary form that a limit stops is not sent again to a server that knows no pieces",
            steps: [
                Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "OPTIONS /"),
                Step(.answered(405, [:]), "OPTIONS /"), Step(.answered(405, [:]), "send 1"), Step(cap, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "an ordinary form that is refused for another reason than its size is not sent again",
            steps: busy + [Step(.refused(422, .refused), "fail refused")]),
        ResumedSequence(
            testDescription: "an ordinary form above a limit that a problem names is not sent again",
            steps: busy + [Step(.tooLarge(limit: 50), "fail refused")]),
        ResumedSequence(
            testDescription: "an ordinary form above a limit that a header field names is not sent again",
            steps: busy + [Step(.turnedDown(413, [.uploadLimit: "max-size=50"]), "fail refused")]),
        ResumedSequence(
            testDescription: "an ordinary form that is too small to be resumed is not sent again after a limit",
            minimumBytes: 101,
            steps: [
                Step(.started, "prepare"), Step(.prepared, "adapt 1"), Step(.adapted, "send 1"),
                Step(cap, "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "an ordinary form no larger than the smallest append is not sent again after a limit",
            appendBytes: 100, cautiousAppendBytes: 100...200, steps: busy + [Step(cap, "fail refused")]),
        ResumedSequence(
            testDescription: "an ordinary form above a size that has passed is sent in pieces of that size later",
            appendBytes: 40,
            steps: asked + [
                Step(.answered(401, [:]), "OPTIONS /"), Step(.answered(401, [:]), "send 1"),
                Step(cap, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS /"),
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 0–40"),
            ]),
        ResumedSequence(
            testDescription: "if the server takes no pieces after all, the policy of ordinary uploads decides",
            steps: busy + [
                Step(cap, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "OPTIONS /"),
                Step(.answered(405, [:]), "OPTIONS /"), Step(.answered(405, [:]), "send 2"),
                Step(cut, "fail connection-lost"),
            ]),
        ResumedSequence(
            testDescription: "an ordinary form that a limit stops, after two lost creations, is sent in pieces later",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"), Step(cut, "wait 0 seconds"),
                Step(.waited, "adapt 2"), Step(.adapted, "POST / 0–0"), Step(cut, "wait 0 seconds"),
                Step(.waited, "adapt 3"), Step(.adapted, "send 3"), Step(cap, "wait 0 seconds"),
                Step(.waited, "adapt 4"), Step(.adapted, "OPTIONS /"),
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 0–60"),
            ]),
        ResumedSequence(
            testDescription: "the size that passes a limit that no one announced is kept", passed: 60,
            steps: sending + again(cap, at: 0, "PATCH /uploads/1 0–60") + [
                Step(.answered(204, [:]), "PATCH /uploads/1 60–100"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a form above a size that has passed begins with appends of that size", appendBytes: 40,
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 0–40"), Step(.answered(204, [:]), "PATCH /uploads/1 40–80"),
                Step(.answered(204, [:]), "PATCH /uploads/1 80–100"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a limit on files is no limit on appends",
            steps: sending + [
                Step(.tooLarge(limit: 50), "DELETE /uploads/1"), Step(.answered(404, [:]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "an append in vain is followed by a cautious one, and a second by a smaller one",
            passed: 30,
            steps: sending + interrupted(cut, by: 2, at: 0, "PATCH /uploads/1 0–60")
                + interrupted(.refused(502, .neverArrived), by: 3, at: 0, "PATCH /uploads/1 0–30") + [
                    Step(.answered(204, [:]), "PATCH /uploads/1 30–60"),
                    Step(.answered(204, [:]), "PATCH /uploads/1 60–90"),
                    Step(.answered(204, [:]), "PATCH /uploads/1 90–100"), Step(appended, "finish after 3"),
                ]),
        ResumedSequence(
            testDescription: "a cautious append that is cut once keeps its size, and says nothing of other uploads",
            steps: sending + interrupted(cut, by: 2, at: 0, "PATCH /uploads/1 0–60")
                + [Step(.answered(204, [:]), "PATCH /uploads/1 60–100")]
                + interrupted(cut, by: 3, at: 60, "PATCH /uploads/1 60–100") + [Step(appended, "finish after 3")]),
        ResumedSequence(
            testDescription: "an append that was cut in the middle says nothing about sizes",
            steps: sending + interrupted(cut, by: 2, at: 20, "PATCH /uploads/1 20–100")
                + interrupted(cut, by: 3, at: 50, "PATCH /uploads/1 50–100")),
        ResumedSequence(
            testDescription: "limits in the response to the creation count",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "max-append-size=90"]), "POST / 0–0"),
                Step(.answered(201, [.location: "/uploads/1", .uploadLimit: "max-append-size=70"]), "check"),
                Step(.checked, "PATCH /uploads/1 0–70"),
            ]),
        ResumedSequence(
            testDescription: "limits in the response to HEAD and to an append count",
            steps: sending + [
                Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"), Step(.adapted, "HEAD /uploads/1"),
                Step(located(20, "max-append-size=50"), "check"), Step(.checked, "PATCH /uploads/1 20–70"),
                Step(.answered(204, [.uploadLimit: "max-append-size=20"]), "PATCH /uploads/1 70–90"),
                Step(.answered(204, [.uploadLimit: "max-append-size=0"]), "DELETE /uploads/1"),
                Step(.answered(204, [:]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a limit in a refusal counts, and no other size is tried",
            steps: sending + [
                Step(.turnedDown(413, [.uploadLimit: "max-append-size=80"]), "HEAD /uploads/1"),
                Step(located(0), "check"), Step(.checked, "PATCH /uploads/1 0–80"),
            ]),
        ResumedSequence(
            testDescription: "a server that lowers its limit with each refusal is left after five times",
            steps: sending
                + (1...4).flatMap { number in
                    [
                        Step(
                            .turnedDown(413, [.uploadLimit: "max-append-size=\(100 - number)"]), "HEAD /uploads/1"),
                        Step(located(0), "check"), Step(.checked, "PATCH /uploads/1 0–\(100 - number)"),
                    ]
                } + [Step(.turnedDown(413, [.uploadLimit: "max-append-size=90"]), "fail refused")]),
        ResumedSequence(
            testDescription: "a form that is larger than the server then says is not sent",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"),
                Step(.answered(201, [.location: "/uploads/1", .uploadLimit: "max-size=99"]), "DELETE /uploads/1"),
                Step(.failed(.connectionLost, .responseLost), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a server that then takes a few bytes at a time gets the form in one request",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"),
                Step(
                    .answered(201, [.location: "/uploads/1", .uploadLimit: "max-append-size=0"]), "DELETE /uploads/1"),
                Step(.answered(204, [:]), "send 1"), Step(.succeeded, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "a server that wants some of the form at least gets it with the creation",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-append-size=20, max-append-size=50"]), "POST / 0–20"),
                Step(created, "check"), Step(.checked, "PATCH /uploads/1 20–70"),
                Step(.answered(204, [:]), "PATCH /uploads/1 70–100"), Step(appended, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "no append is smaller than the server wants, whatever the limit of a proxy",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-append-size=40"]), "POST / 0–40"),
                Step(created, "check"), Step(.checked, "PATCH /uploads/1 40–100"),
            ] + again(cap, at: 40, "PATCH /uploads/1 40–80") + [
                Step(cap, "OPTIONS /"), Step(.answered(405, [:]), "DELETE /uploads/1"),
                Step(.answered(204, [:]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a server that wants some of the form at least gets no append without content",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-append-size=20"]), "POST / 0–20"), Step(created, "check"),
                Step(.checked, "PATCH /uploads/1 20–100"), Step(cut, "wait 0 seconds"), Step(.waited, "adapt 2"),
                Step(.adapted, "HEAD /uploads/1"), Step(.answered(405, [:]), "fail refused"),
            ]),
        ResumedSequence(
            testDescription: "a server that wants the whole form at once gets it in one request",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-append-size=100"]), "send 1"),
                Step(.succeeded, "finish after 1"),
            ]),
        ResumedSequence(
            testDescription: "an upload resource that has expired is not asked",
            steps: asked + [
                Step(.answered(204, [.uploadLimit: "min-size=0"]), "POST / 0–0"),
                Step(
                    .answered(201, [.location: "/uploads/1", .uploadLimit: "max-age=5"]), "check",
                    elapsed: .seconds(10)),
                Step(.checked, "PATCH /uploads/1 0–100", elapsed: .seconds(11)),
                Step(cut, "wait 0 seconds", elapsed: .seconds(14)), Step(.waited, "adapt 2", elapsed: .seconds(14)),
                Step(.adapted, "HEAD /uploads/1", elapsed: .seconds(14)),
                Step(located(40, "max-age=3"), "check", elapsed: .seconds(14)),
                Step(.checked, "PATCH /uploads/1 40–100", elapsed: .seconds(14)),
                Step(cut, "wait 0 seconds", elapsed: .seconds(16)), Step(.waited, "adapt 3", elapsed: .seconds(17)),
                Step(.adapted, "POST / 0–0", elapsed: .seconds(17)),
            ]),
    ]

    // MARK: - Limits of forms

    private static func limit(_ name: String, _ value: Int) -> String {
        #"{"name": "\#(name)", "value": \#(value)}"#
    }

    /// Problems with limits, and those of them that a form with files of 40 and 60 bytes exceeds.
    static let reportedLimits: [(String, FormSizeLimits?)] = [
        (#"{"limit": \#(limit("maximumFileBytes", 59))}"#, FormSizeLimits(maximumFileBytes: 59)),
        (#"{"limit": \#(limit("maximumFileBytes", 60))}"#, nil),
        (#"{"limit": \#(limit("maximumBytesOfAllFiles", 99))}"#, FormSizeLimits(maximumBytesOfAllFiles: 99)),
        (#"{"limit": \#(limit("maximumBytesOfAllFiles", 100))}"#, nil),
        (#"{"limit": \#(limit("files.image.maximumBytes", 59))}"#, FormSizeLimits(maximumBytesByName: ["image": 59])),
        // Not every rule on a file is a maximum of its bytes, and not every maximum of bytes is one of a file.
        (#"{"limit": \#(limit("files.image.minimumBytes", 10))}"#, nil),
        (#"{"limit": \#(limit("parts.image.maximumBytes", 10))}"#, nil),
        (#"{"limit": \#(limit("files.maximumBytes", 10))}"#, nil),
        (
            #"{"limits": [\#(limit("maximumBodyBytes", 100_000)), \#(limit("maximumFileBytes", 59))]}"#,
            FormSizeLimits(maximumFileBytes: 59)
        ),
        (
            #"{"limit": \#(limit("maximumFileBytes", 59)), "limits": [\#(limit("maximumFileBytes", 50))]}"#,
            FormSizeLimits(maximumFileBytes: 50)
        ),
    ]

    @Test(arguments: reportedLimits)
    func `of the limits that a refusal reports, those count that the form exceeds`(
        problem: String, expected: FormSizeLimits?
    ) throws {
        var form = MultipartForm()
        for count in [40, 60] { form.append(Data(count: count), named: "image", filename: "a.jpg") }
        let layout = try form.layout()
        let response = Player.response(413, [.contentType: "application/problem+json"], problem)
        #expect(UploadError(.refused, "refused", response: response).limits(exceededBy: layout) == expected)
    }
}
