import HTTPTypes
import PostcardResumption

extension ConformanceSuite {
    /// Limits and their discovery (§4.1.4): 301 and on.
    static let limitChecks: [ConformanceCheck] = discoveryChecks + constancyChecks + excessChecks

    private static let discoveryChecks: [ConformanceCheck] = [
        ConformanceCheck(
            301, "4.1.4", .must, "Other values MUST cause the entire header field to be ignored.",
            .create(.half).expecting(.processed, .whenLimited, .readableLimits)),
        ConformanceCheck(
            302, "4.1.4", .must, "Other values MUST cause the entire header field to be ignored.",
            .create(.half), .head.expecting(.processed, .whenLimited, .readableLimits)),
        ConformanceCheck(
            303, "4.1.4", .must, "Other values MUST cause the entire header field to be ignored.",
            .options.expecting(.processed, .whenLimited, .readableLimits)),
        ConformanceCheck(
            304, "4.1.4", .must, "Other values MUST cause the entire header field to be ignored.",
            .create(.half), .append(.half, .most).expecting(.processed, .whenLimited, .readableLimits)),
        ConformanceCheck(
            311, "4.1.4", .must, "the server MUST include the Accept-Patch … header field in the response",
            // The resource must support the creation of uploads.
            .create(.none), .options.expecting(.processed, .has(.acceptPatch))),
        ConformanceCheck(
            312, "4.1.4", .must,
            "The value of the Accept-Patch header field MUST include the full application/partial-upload media type",
            .create(.none), .options.expecting(.processed, .acceptsPartialUploads)),
        ConformanceCheck(
            313, "4.1.4", .should,
            "The Upload-Limit header field SHOULD be included in the response to an OPTIONS request if limits apply.",
            .options.expecting(.processed, .knownLimits)),
        ConformanceCheck(
            314, "4.1.4", .shouldNot,
            "the limits announced in an OPTIONS response SHOULD NOT be less restrictive than the limits applied to an "
                + "upload once the upload resource has been created",
            .options.expecting(.processed, .whenLimited), .create(.half),
            .head.expecting(.keepsLimits("an upload's limits", keepsSizes))),
        ConformanceCheck(
            315, "4.1.4", .must,
            "The value of the Accept-Patch header field MUST include the full application/partial-upload media type",
            .optionsOfServer.expecting(
                .whenSuccessful, .when("the response has no Accept-Patch") { $0.fields.contains(.acceptPatch) },
                .acceptsPartialUploads)),
    ]

    private static let constancyChecks: [ConformanceCheck] = [
        ConformanceCheck(
            321, "4.1.4", .shouldNot,
            "whereas the values for max-size, max-append-size, and max-age can increase without harm, they SHOULD NOT "
                + "decrease",
            .create(.half), .head.expecting(.keepsLimits("max-size", keepsMaximum))),
        ConformanceCheck(
            322, "4.1.4", .shouldNot,
            "whereas the values for max-size, max-append-size, and max-age can increase without harm, they SHOULD NOT "
                + "decrease",
            .create(.half), .append(.half, .most),
            .head.expecting(.keepsLimits("max-size", keepsMaximum))),
        ConformanceCheck(
            323, "4.1.4", .shouldNot,
            "whereas the values for max-size, max-append-size, and max-age can increase without harm, they SHOULD NOT "
                + "decrease",
            .create(.half),
            .head.expecting(
                .keepsLimits("max-append-size") { first, now in
                    first.maximumAppendBytes.map { $0 <= now.maximumAppendBytes ?? .max }
                })),
        ConformanceCheck(
            324, "4.1.4", .should,
            "Specifies the remaining lifetime of the upload resource in seconds counted from the generation of the "
                + "response.",
            .create(.half), .append(.half, .most),
            .head.expecting(
                .keepsLimits("max-age") { first, now in
                    // The check takes some of the time.
                    first.lifetimeSeconds.map { $0 - 30 <= now.lifetimeSeconds ?? .max }
                })),
        ConformanceCheck(
            325, "4.1.4", .shouldNot, "the value for min-append-size SHOULD NOT increase",
            .create(.half), .append(.half, .most),
            .head.expecting(
                .keepsLimits("min-append-size") { first, now in
                    first.minimumAppendBytes.map { $0 >= now.minimumAppendBytes ?? 0 }
                })),
        ConformanceCheck(
            326, "4.1.4", .should,
            "Requests completing the upload by including the Upload-Complete: ?1 header field are exempt from this limit."
        ) { session in
            guard session.knowledge.limits.minimumAppendBytes ?? 0 > 0 else {
                throw CheckInterruption.notApplicable("the server announces no min-append-size")
            }
            return try await session.judge([
                .create(.all), .append(.all, .all, isComplete: true).expecting(.success),
            ])
        },
    ]

    private static func keepsMaximum(_ first: UploadLimits, _ now: UploadLimits) -> Bool? {
        first.maximumBytes.map { $0 <= now.maximumBytes ?? .max }
    }

    private static func keepsSizes(_ first: UploadLimits, _ now: UploadLimits) -> Bool? {
        let maximum = (now.maximumBytes ?? .max) >= (first.maximumBytes ?? .max)
        let append = (now.maximumAppendBytes ?? .max) >= (first.maximumAppendBytes ?? .max)
        return maximum && append && (now.minimumBytes ?? 0) <= (first.minimumBytes ?? 0)
            && (now.minimumAppendBytes ?? 0) <= (first.minimumAppendBytes ?? 0)
    }

    /// Requests that are too large. Only their heads are sent.
    private static let excessChecks: [ConformanceCheck] = [
        tooLarge(331, .create(.none).with("Upload-Length", "{aboveMaximum}")),
        tooLarge(332, .create(.all, isComplete: true).with("Content-Length", "{aboveMaximum}").headOnly),
        tooLarge(333, .create(.all).with("Content-Length", "{aboveMaximum}").headOnly),
        tooLarge(334, .conventional().with("Content-Length", "{aboveMaximum}").headOnly),
        tooLarge(335, .create(.half), .append(.half, .all).with("Content-Length", "{aboveMaximum}").headOnly),
        tooLarge(336, .create(.half), .append(.half, .most).with("Upload-Length", "{aboveMaximum}")),
        tooLarge(337, .create(.half), .append(.half, .all).with("Content-Length", "{aboveMaximumAppend}").headOnly),
        tooLarge(338, .create(.half).with("Content-Length", "{aboveMaximumAppend}").headOnly),
        ConformanceCheck(
            339, "4.1.4", .may,
            "The server might not create an upload resource if the length … deduced from the upload creation request is "
                + "larger than the maximum size.",
            .create(.none).with("Upload-Length", "{aboveMaximum}").expecting(.whenRefused, .refusal)),
    ]

    private static func tooLarge(_ number: Int, _ steps: Step...) -> ConformanceCheck {
        ConformanceCheck(
            number, "4.1.4", .must,
            "A server responding with a 413 Content Too Large status code as a result of its upload limits MUST include "
                + "the Upload-Limit header in this response"
        ) { session in
            try await session.judge(
                steps.dropLast() + steps.suffix(1).map { $0.expecting(.when(413), .readableLimits) })
        }
    }
}
