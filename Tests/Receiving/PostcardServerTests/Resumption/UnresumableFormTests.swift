import Foundation
import PostcardForm
import PostcardReceiver
import PostcardReceivingSupport
import PostcardWire
import PostcardServer
import Testing

/// Forms whose clients ask to resume them, and that are received as forms that cannot be.
@Suite(.timeLimit(.minutes(10)))
struct UnresumableFormTests {
    struct Case: Sendable, CustomTestStringConvertible {
        let testDescription: String
        let fields: [String]
        /// The fields of the draft in the response.
        let version: String?
        var completeField = "upload-complete"
        /// What the client must send to resume the form; `nil` if its fields are right.
        var advice: String?
        /// Whether there is room for an unfinished upload.
        var hasRoom = true
    }

    private static func named(_ version: Int) -> String { "Upload-Draft-Interop-Version: \(version)" }

    private static let cases = [
        Case(
            testDescription: "a version that is too old", fields: [named(2), "Upload-Complete: ?1"], version: "9",
            advice: "send 3 to 9 in Upload-Draft-Interop-Version, or leave it out."),
        Case(
            testDescription: "a version that is no number", fields: [named(8) + "a", "Upload-Complete: ?1"],
            version: "9", advice: "send 3 to 9 in Upload-Draft-Interop-Version, or leave it out."),
        Case(
            testDescription: "the field of a later version", fields: [named(3), "Upload-Complete: ?0"], version: "3",
            completeField: "upload-incomplete", advice: "send ?0 or ?1 in Upload-Incomplete."),
        Case(
            testDescription: "the field of an earlier version", fields: [named(9), "Upload-Incomplete: ?1"],
            version: "9", advice: "send ?0 or ?1 in Upload-Complete."),
        Case(
            testDescription: "a completeness that is no boolean", fields: [named(8), "Upload-Complete: 0"],
            version: "8", advice: "send ?0 or ?1 in Upload-Complete."),
        Case(
            testDescription: "two values of the completeness", fields: ["Upload-Complete: ?0", "Upload-Complete: ?0"],
            version: nil, advice: "send ?0 or ?1 in Upload-Complete."),
        Case(
            testDescription: "no room, in version 3", fields: [named(3), "Upload-Incomplete: ?0"], version: "3",
            completeField: "upload-incomplete", hasRoom: false),
        Case(
            testDescription: "no room, in version 9", fields: [named(9), "Upload-Complete: ?1"], version: "9",
            hasRoom: false),
        Case(
            testDescription: "no room, without a version", fields: ["Upload-Complete: ?1"], version: nil,
            hasRoom: false),
    ]

    @Test(arguments: cases)
    func `the response names the version and the completeness, and a refusal says what would resume the form`(
        row: Case
    ) async throws {
        try await withCurlSender(
            .newest,
            {
                $0.uploads.limits.maximumBodyBytes = 300_000
                guard !row.hasRoom else { return }
                $0.uploads.resumption?.maximumUnfinished = 1
                $0.uploads.clientShare = 1
            }
        ) { sender, receiver in
            // Its bytes are worth keeping for longer than the test takes.
            let other = LargeForm(bytes: 250_000).bytes
            if !row.hasRoom { #expect(try await sender.create(other, isComplete: false).status == 201) }
            let large = Form.part("Content-Disposition: form-data; name=a", String(repeating: "x", count: 300_001))
            for (form, status) in [("--b\r\nno form", 400), (large, 413), (Form.small, 201)] {
                let response = try await sender.create(form.utf8, isComplete: nil, fields: row.fields)
                #expect(response.status == status, "\(response.body)")
                #expect(response.head.fields["upload-draft-interop-version"] == row.version)
                // A smaller form may be accepted.
                let isFinal = status != 413
                let value = row.completeField == "upload-complete" ? isFinal : !isFinal
                #expect(response.head.fields[row.completeField] == (value ? "?1" : "?0"))
                let hasLimits = status == 413 && row.version != "3"
                #expect((response.head.fields["upload-limit"] != nil) == hasLimits)
                guard status != 201 else { continue }
                let fix = try #require(response.problem?.fix)
                if let advice = row.advice {
                    #expect(fix.hasSuffix(" To resume the form, " + advice), "\(fix)")
                } else {
                    #expect(!fix.contains("resume"), "\(fix)")
                }
            }
            #expect(try receiver.records.count == 1)
            #expect(receiver.unfinished.count == (row.hasRoom ? 0 : 1))
        }
    }
}
