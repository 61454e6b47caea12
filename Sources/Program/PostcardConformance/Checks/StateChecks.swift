import HTTPTypes

extension ConformanceSuite {
    /// The checks of offset, completeness and length (§4.1.1 to §4.1.3), numbered from 201.
    static let stateChecks: [ConformanceCheck] = offsetStateChecks + completenessChecks + lengthChecks

    private static let ignoredSentence = "Other values MUST cause the entire header field to be ignored."

    private static let offsetStateChecks: [ConformanceCheck] = [
        ConformanceCheck(
            201, "4.1.1", .mustNot, "the offset MUST NOT decrease",
            .create(.half), .head.expecting(.offset(.half)), .append(.half, .most),
            .head.expecting(.success, .offset(.most))),
        ConformanceCheck(
            202, "4.1.1", .mustNot, "the offset MUST NOT decrease",
            .create(.half), .append(.quarter, .quarter).ignored, .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            203, "4.1.1", .mustNot, "the offset MUST NOT decrease",
            .create(.half), .append(.none, .quarter).ignored, .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            204, "4.1.1", .mustNot, "the offset MUST NOT decrease",
            .create(.half), .append(.half, .all).cut(at: .most),
            .head.repeated.expecting(.success, .offsetAtLeast(.half))),
        ConformanceCheck(
            205, "4.1.1", .mustNot, "the offset MUST NOT decrease",
            .create(.all), .append(.all, .all, isComplete: true), .head.expecting(.whenSuccessful, .offset(.all))),
        ignoredOffset(211, "-{half}"),
        ignoredOffset(212, "{half}.0"),
        ignoredOffset(213, "\"{half}\""),
        ignoredOffset(214, "?1"),
        ignoredOffset(215, "+{half}"),
        ignoredOffset(216, "{half}, {half}"),
        ignoredOffset(217, "{half}", "{half}"),
        // An integer has at most 15 digits (RFC 9651 §3.3.1).
        ignoredOffset(218, "000000000000000{half}"),
        ignoredOffset(219, "{half} bytes"),
        ConformanceCheck(
            221, "4.1.1", .should, "Upload-Offset is an Item Structured Header Field",
            .create(.half),
            .append(.half, .most).with("Upload-Offset", "{half};note=1").expecting(.success),
            .head.expecting(.offset(.most))),
        ConformanceCheck(
            222, "4.1.1", .should, "Upload-Offset is an Item Structured Header Field",
            .create(.half), .append(.half, .most).with("Upload-Offset", "0{half}").expecting(.success),
            .head.expecting(.offset(.most))),
    ]

    private static func ignoredOffset(_ number: Int, _ values: String...) -> ConformanceCheck {
        .ignoring(
            number, "4.1.1", ignoredSentence, "Upload-Offset", values,
            setUp: [.create(.half)], step: .append(.half, .most))
    }

    private static let completenessChecks: [ConformanceCheck] = [
        ignoredCompleteness(231, "1"),
        ignoredCompleteness(232, "true"),
        ignoredCompleteness(233, "\"?1\""),
        ignoredCompleteness(234, "?2"),
        ignoredCompleteness(235, "?1, ?1"),
        ignoredCompleteness(236, "?1", "?1"),
        ignoredCompleteness(237, "?T"),
        ignoredCreation(238, "1"),
        ignoredCreation(239, "?1?0"),
        ignoredCreation(240, "false"),
        ConformanceCheck(
            241, "4.1.2", .should, "Upload-Complete is an Item Structured Header Field",
            .create(.half),
            .create(.half).with("Upload-Complete", "?0;note=1").expecting(.success, .has(.location))),
        ConformanceCheck(
            242, "4.1.2", .should, "Upload-Complete is an Item Structured Header Field",
            .create(.half), .append(.half, .all).with("Upload-Complete", "?1;note=1").expecting(.completeness(true))),
        ConformanceCheck(
            243, "4.1.2", .should,
            "An upload is incomplete until it is explicitly marked as completed by the client or the server.",
            .create(.half), .append(.half, .all).expecting(.success, .notComplete),
            .head.expecting(.success, .completeness(false))),
        ConformanceCheck(
            244, "4.1.2", .should,
            "includes the Upload-Complete header field with a true value and the request content was fully processed",
            .create(.half), .append(.half, .all, isComplete: true),
            .head.expecting(.whenSuccessful, .completeness(true))),
        ConformanceCheck(
            245, "4.1.2", .should, "After this point, no more representation data can be appended.",
            .create(.half), .append(.half, .all, isComplete: true), .append(.all, .beyond).ignored,
            .head.expecting(.whenSuccessful, .offset(.all))),
    ]

    private static func ignoredCompleteness(_ number: Int, _ values: String...) -> ConformanceCheck {
        .ignoring(
            number, "4.1.2", ignoredSentence, "Upload-Complete", values,
            setUp: [.create(.half)], step: .append(.half, .all))
    }

    private static func ignoredCreation(_ number: Int, _ values: String...) -> ConformanceCheck {
        .ignoring(
            number, "4.1.2", ignoredSentence, "Upload-Complete", values,
            step: .create(.all))
    }

    private static let lengthChecks: [ConformanceCheck] = [
        ignoredLength(251, "-{all}"),
        ignoredLength(252, "{all}.0"),
        ignoredLength(253, "\"{all}\""),
        ignoredLength(254, "?1"),
        ignoredLength(255, "{all}, {all}"),
        ignoredLength(256, "000000000000000{all}"),
        ignoredLength(257, "much"),
        ConformanceCheck(
            261, "4.1.3", .must,
            "If indicators (1) and (2) are both present in the same request, their indicated lengths MUST match.",
            .create(.all, isComplete: true).with("Upload-Length", "{beyond}").expecting(.refusal)),
        ConformanceCheck(
            262, "4.1.3", .must,
            "If indicators (1) and (2) are both present in the same request, their indicated lengths MUST match.",
            .create(.all, isComplete: true).with("Upload-Length", "{half}").expecting(.refusal)),
        ConformanceCheck(
            263, "4.1.3", .must,
            "If indicators (1) and (2) are both present in the same request, their indicated lengths MUST match.",
            .create(.half),
            .append(.half, .all, isComplete: true).with("Upload-Length", "{beyond}").expecting(.refusal)),
        ConformanceCheck(
            264, "4.1.3", .must,
            "The representation's length, if known, MUST stay consistent across subsequent requests.",
            .create(.half).with("Upload-Length", "{all}"),
            .append(.half, .most).with("Upload-Length", "{beyond}").expecting(.refusal)),
        ConformanceCheck(
            265, "4.1.3", .must,
            "The representation's length, if known, MUST stay consistent across subsequent requests.",
            .create(.half).with("Upload-Length", "{all}"),
            .append(.half, .most, isComplete: true).expecting(.refusal, .notComplete)),
        ConformanceCheck(
            266, "4.1.3", .must,
            "The representation's length, if known, MUST stay consistent across subsequent requests.",
            .create(.half), .append(.half, .most).with("Upload-Length", "{all}"),
            .append(.most, .all).with("Upload-Length", "{beyond}").expecting(.refusal)),
        ConformanceCheck(
            267, "4.1.3", .should,
            "The representation's length is then the sum of the current offset … and the request content's length",
            .create(.half).with("Upload-Length", "{all}"),
            .append(.half, .all, isComplete: true).with("Upload-Length", "{all}").expecting(.success)),
        ConformanceCheck(
            268, "4.1.3", .should, "The offset could match the length, but the upload can still be incomplete.",
            .create(.half).with("Upload-Length", "{all}"), .append(.half, .all).expecting(.success, .notComplete),
            .head.expecting(.success, .completeness(false), .offset(.all), .length(.all))),
        ConformanceCheck(
            269, "4.1.3", .should,
            "The representation's length will, however, be known at the latest when the client completes the upload",
            .create(.half), .head.expecting(.success),
            .append(.half, .all, isComplete: true).chunked.expecting(.success, .completeness(true))),
    ]

    private static func ignoredLength(_ number: Int, _ value: String) -> ConformanceCheck {
        .ignoring(
            number, "4.1.3", ignoredSentence, "Upload-Length", [value],
            step: .create(.half))
    }
}
