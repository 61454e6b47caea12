extension ConformanceSuite {
    /// The checks of offset retrieval (§4.3), numbered from 501.
    static let offsetChecks: [ConformanceCheck] = [
        offset(501, .create(.half), expecting: .offset(.half)),
        offset(502, .create(.none), expecting: .offset(.none)),
        offset(503, .create(.half), .append(.half, .most), expecting: .offset(.most)),
        offset(504, .create(.half), .append(.half, .half), expecting: .offset(.half)),
        offset(505, .create(.half).chunked, expecting: .offset(.half)),
        offset(506, .create(.half), .append(.half, .all, isComplete: true), expecting: .whenSuccessful, .offset(.all)),
        completeness(511, .create(.half), expecting: .completeness(false)),
        completeness(512, .create(.none), expecting: .completeness(false)),
        completeness(513, .create(.all), expecting: .completeness(false)),
        completeness(514, .create(.half), .append(.half, .most), expecting: .completeness(false)),
        completeness(
            515, .create(.half), .append(.half, .all, isComplete: true), expecting: .whenSuccessful,
            .completeness(true)),
        completeness(
            516, .create(.all, isComplete: true).paused().announced, expecting: .whenSuccessful, .completeness(true)),
        length(521, .create(.half).with("Upload-Length", "{all}"), expecting: .length(.all)),
        length(
            522, .create(.half).with("Upload-Length", "{all}"), .append(.half, .all, isComplete: true),
            expecting: .whenSuccessful, .length(.all)),
        length(
            523, .create(.half), .append(.half, .all, isComplete: true), expecting: .whenSuccessful, .length(.all)),
        length(524, .create(.half), .append(.half, .most).with("Upload-Length", "{all}"), expecting: .length(.all)),
        length(525, .create(.half).with("Upload-Length", "{all}"), .append(.half, .most), expecting: .length(.all)),
        limits(531, .create(.half)),
        limits(532, .create(.half), .append(.half, .most)),
        caching(541, .create(.half)),
        caching(542, .create(.half), .append(.half, .all, isComplete: true)),
        redirect(551, .create(.half), retrieving: .head),
        redirect(552, .create(.half), .append(.half, .all, isComplete: true), retrieving: .head),
        redirect(553, .create(.half), .delete.ignored, retrieving: .head),
        redirect(554, .create(.half), retrieving: .headOfUnknown),
        row(561, .must, offsetSentence, [.create(.half)], [.success, .offset(.half)], retrieving: .get),
        row(
            562, .must, offsetSentence, completeUpload, [.whenSuccessful, .offset(.all)], retrieving: .get),
        row(
            563, .must, "MUST indicate the limits in the Upload-Limit header field", completeUpload,
            [.whenSuccessful, .knownLimits], retrieving: .get),
        row(
            564, .must, "MUST indicate the limits in the Upload-Limit header field", completeUpload,
            [.whenSuccessful, .knownLimits]),
        row(
            565, .should,
            "SHOULD include the Cache-Control header field with the value no-store to prevent HTTP caching",
            completeUpload, [.whenSuccessful, .noStore], retrieving: .get),
    ]

    private static let offsetSentence = "MUST include the offset in the Upload-Offset header field"
    private static let completeUpload: [Step] = [.create(.half), .append(.half, .all, isComplete: true)]

    private static func row(
        _ number: Int, _ level: RequirementLevel, _ sentence: String, _ steps: [Step], _ expectations: [Expectation],
        retrieving head: Step = .head
    ) -> ConformanceCheck {
        ConformanceCheck(number, "4.3.2", level, sentence) { session in
            var head = head
            head.expectations = expectations
            return try await session.judge(steps + [head])
        }
    }

    private static func offset(
        _ number: Int, _ steps: Step..., expecting expectations: Expectation...
    ) -> ConformanceCheck {
        row(
            number, .must, offsetSentence, steps, expectations)
    }

    private static func completeness(
        _ number: Int, _ steps: Step..., expecting expectations: Expectation...
    ) -> ConformanceCheck {
        row(
            number, .must,
            "MUST include the Upload-Complete header field … indicating whether a final response was produced from processing "
                + "the uploaded representation", steps,
            expectations)
    }

    private static func length(
        _ number: Int, _ steps: Step..., expecting expectations: Expectation...
    ) -> ConformanceCheck {
        row(
            number, .must,
            "MUST include the representation's length in the Upload-Length header field, unless the client has not supplied "
                + "the representation's length", steps,
            expectations)
    }

    private static func limits(_ number: Int, _ steps: Step...) -> ConformanceCheck {
        row(
            number, .must, "MUST indicate the limits in the Upload-Limit header field", steps, [.success, .knownLimits])
    }

    private static func caching(_ number: Int, _ steps: Step...) -> ConformanceCheck {
        row(
            number, .should,
            "SHOULD include the Cache-Control header field with the value no-store to prevent HTTP caching", steps,
            [.whenSuccessful, .noStore])
    }

    private static func redirect(_ number: Int, _ steps: Step..., retrieving head: Step) -> ConformanceCheck {
        row(
            number, .shouldNot,
            "The server SHOULD NOT generate a response with the 301 (Moved Permanently), 302 (Found), or 303 (See Other) "
                + "status codes because clients might follow the redirect without preserving the HEAD method.",
            steps, [.noUnsafeRedirect], retrieving: head)
    }
}
