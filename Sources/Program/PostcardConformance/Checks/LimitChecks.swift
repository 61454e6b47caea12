import HTTPTypes
import PostcardWire

extension ConformanceSuite {
    /// The checks of limits and their discovery (§4.1.4), numbered from 301.
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
            313, "4.1.4", .must,
            "the server MUST include the Upload-Limit header field with the corresponding limits in the response",
            // The sentence applies only to a resource at which uploads can be created.
            .create(.none), .options.expecting(.processed, .has(.uploadLimit))),
        ConformanceCheck(
            314, "4.1.4", .shouldNot,
            "the limits announced in an OPTIONS response SHOULD NOT be less restrictive than the limits applied to an "
                + "upload once the upload resource has been created",
            .options.expecting(.processed, .whenLimited), .create(.half),
            .head.expecting(.keepsLimits("an upload's limits", keepsSizes))),
        ConformanceCheck(
            316, "4.1.4", .must,
            "If the server does not apply any limits, it MUST use min-size=0 instead of an empty header value.",
            .options.expecting(
                .processed, .whenLimited,
                Expectation { exchange, _ in
                    exchange.final?.fields[.uploadLimit]?.contains { $0 != " " } ?? false
                        ? .met : .failed("an Upload-Limit that is not empty")
                })),
    ]

    private static let constancyChecks: [ConformanceCheck] = [
        ConformanceCheck(
            321, "4.1.4", .shouldNot,
            "max-size and max-append-size SHOULD NOT decrease.",
            .create(.half), .head.expecting(.keepsLimits("max-size", keepsMaximum))),
        ConformanceCheck(
            322, "4.1.4", .shouldNot,
            "max-size and max-append-size SHOULD NOT decrease.",
            .create(.half), .append(.half, .most),
            .head.expecting(.keepsLimits("max-size", keepsMaximum))),
        ConformanceCheck(
            323, "4.1.4", .shouldNot,
            "max-size and max-append-size SHOULD NOT decrease.",
            .create(.half),
            .head.expecting(
                .keepsLimits("max-append-size") { first, now in
                    first.maximumAppendBytes.map { $0 <= now.maximumAppendBytes ?? .max }
                })),
        ConformanceCheck(
            324, "4.1.4", .shouldNot,
            "the end of the upload resource's lifetime as implied by max-age SHOULD NOT decrease",
            .create(.half), .append(.half, .most),
            .head.expecting(
                .keepsLimits("max-age") { first, now in
                    // The remaining lifetime may shrink during the check.
                    first.lifetimeSeconds.map { $0 - 30 <= now.lifetimeSeconds ?? .max }
                })),
        ConformanceCheck(
            325, "4.1.4", .shouldNot, "min-size and min-append-size SHOULD NOT increase.",
            .create(.half), .append(.half, .most),
            .head.expecting(
                .keepsLimits("min-append-size") { first, now in
                    first.minimumAppendBytes.map { $0 >= now.minimumAppendBytes ?? 0 }
                })),
        ConformanceCheck(
            326, "4.1.4", .should,
            "This limit does not apply to … requests completing the upload by including the Upload-Complete: ?1 header "
                + "field."
        ) { session in
            guard session.knowledge.limits.minimumAppendBytes ?? 0 > 0 else {
                throw CheckInterruption.notApplicable("the server announces no min-append-size")
            }
            return try await session.judge([
                .create(.all), .append(.all, .all, isComplete: true).expecting(.success),
            ])
        },
        ConformanceCheck(
            327, "4.1.4", .should, "This limit does not apply to upload creation requests with no content"
        ) { session in
            guard session.knowledge.limits.minimumAppendBytes ?? 0 > 0 else {
                throw CheckInterruption.notApplicable("the server announces no min-append-size")
            }
            return try await session.judge([.create(.none).expecting(.success, .has(.location))])
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

    /// The checks of requests that are too large. Only their heads are sent.
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
            "The server might not create an upload resource if the representation's length … deduced from the upload "
                + "creation request is larger than the maximum size.",
            .create(.none).with("Upload-Length", "{aboveMaximum}").expecting(.whenRefused, .refusal)),
        ConformanceCheck(340, "4.1.4", .should, refusalSentence) { session in
            try await session.succeed(.create(.half))
            // After this time, the remaining lifetime differs from that of a new upload.
            try await Task.sleep(for: .milliseconds(1100))
            let head = try await session.perform(.head).final
            let append = Step.append(.half, .all).with("Content-Length", "{aboveMaximum}").headOnly
            let exchange = try await session.perform(append)
            guard let response = exchange.final, response.status == 413 else {
                throw CheckInterruption.notApplicable("the response is not 413")
            }
            let version = session.settings.version
            guard let known = head?.fields.uploadLimits(in: version)?.lifetimeSeconds,
                let lifetime = response.fields.uploadLimits(in: version)?.lifetimeSeconds
            else { throw CheckInterruption.notApplicable("the server does not announce max-age twice") }
            return CheckFinding(
                lifetime <= known ? .ok : .violated, "max-age=\(known) in HEAD, then \(exchange.summary)")
        },
    ]

    private static let refusalSentence =
        "When a request is rejected because limits were violated, the response SHOULD include the Upload-Limit header "
        + "field carrying all limits of the corresponding upload if possible."

    private static func tooLarge(_ number: Int, _ steps: Step...) -> ConformanceCheck {
        ConformanceCheck(number, "4.1.4", .should, refusalSentence) { session in
            try await session.judge(
                steps.dropLast() + steps.suffix(1).map { $0.expecting(.when(413), .readableLimits) })
        }
    }
}
