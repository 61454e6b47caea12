extension ConformanceSuite {
    /// Appends that the server refuses (§4.4): 661 and on.
    static let appendRefusalChecks: [ConformanceCheck] =
        mismatchChecks + completedChecks + excessiveAppendChecks + malformedAppendChecks

    private static let conflictSentence = "the server MUST reject the request with a 409 (Conflict) status code"
    private static let correctOffsetSentence =
        "The response MUST include the correct offset in the Upload-Offset header field."

    private static let mismatchChecks: [ConformanceCheck] = [
        ConformanceCheck(
            661, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.half, .most).at(.most).expecting(.status(409))),
        ConformanceCheck(
            662, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.half, .most).at(.quarter).expecting(.status(409))),
        ConformanceCheck(
            663, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.half, .most).at(.none).expecting(.status(409))),
        ConformanceCheck(
            664, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.half, .most).at(.far).expecting(.status(409))),
        ConformanceCheck(
            665, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.half, .half).at(.quarter).expecting(.status(409))),
        ConformanceCheck(
            666, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.most, .all, isComplete: true).expecting(.status(409))),
        ConformanceCheck(
            667, "4.4.2", .must, conflictSentence,
            .create(.none), .append(.half, .most).expecting(.status(409))),
        ConformanceCheck(
            668, "4.4.2", .must, conflictSentence,
            .create(.half), .append(.half, .most).at(.most).chunked.expecting(.status(409))),
        ConformanceCheck(
            671, "4.4.2", .must, correctOffsetSentence,
            .create(.half), .append(.half, .most).at(.most).expecting(.when(409), .offset(.half))),
        ConformanceCheck(
            672, "4.4.2", .must, correctOffsetSentence,
            .create(.half), .append(.half, .most).at(.none).expecting(.when(409), .offset(.half))),
        ConformanceCheck(
            673, "4.4.2", .must, correctOffsetSentence,
            .create(.none), .append(.none, .half).at(.half).expecting(.when(409), .offset(.none))),
        ConformanceCheck(
            674, "4.4.2", .must, correctOffsetSentence,
            .create(.half), .append(.half, .half).at(.most).expecting(.when(409), .offset(.half))),
        ConformanceCheck(
            675, "4.4.2", .must, correctOffsetSentence,
            .create(.half), .append(.half, .all, isComplete: true),
            .append(.half, .all, isComplete: true).expecting(.when(409), .offset(.all))),
        ConformanceCheck(
            676, "4.4.2", .must, "the server MUST reject the request",
            .create(.half), .append(.half, .most).at(.most).ignored, .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            677, "4.4.2", .must, "the server MUST reject the request",
            .create(.half), .append(.most, .all, isComplete: true).ignored,
            .head.expecting(.success, .offset(.half), .completeness(false))),
        ConformanceCheck(
            678, "4.4.2", .must, identificationSentence,
            .create(.half), .append(.half, .most).at(.most).expecting(.failure, .notComplete)),
        ConformanceCheck(
            679, "4.4.2", .must, identificationSentence,
            .create(.half).with("Upload-Length", "{all}"),
            .append(.half, .most, isComplete: true).expecting(.whenRefused, .notComplete)),
        ConformanceCheck(
            680, "4.4.2", .must, conflictSentence + " and the Upload-Complete header field set to false",
            .create(.half), .append(.half, .most).at(.most).expecting(.when(409), .completeness(false))),
    ]

    /// An error of the protocol that says `?1` looks like the end of the upload.
    private static let identificationSentence =
        "the response MUST include the Upload-Complete header field with a true value, allowing clients to identify "
        + "whether a response, in particular error responses, is related to the resumable upload itself or the "
        + "processing of the uploaded representation"

    private static let completeUpload: [Step] = [.create(.half), .append(.half, .all, isComplete: true)]

    private static let constancy = "After this point, no more representation data can be appended."
    private static let replay =
        "The server can choose to replay the final response to the client if the request to append to the completed upload "
        + "is valid."
    private static let origin = "the corresponding response comes from the resource processing the representation"

    private static let completedChecks: [ConformanceCheck] = [
        afterCompletion(
            686, in: "4.1.2", .should, constancy,
            .append(.all, .beyond).ignored, .head.expecting(.whenSuccessful, .offset(.all), .completeness(true))),
        afterCompletion(
            687, in: "4.1.2", .should, constancy,
            .append(.all, .beyond, isComplete: true).chunked.ignored,
            .head.expecting(.whenSuccessful, .offset(.all), .completeness(true))),
        // A client takes a final response with ?1 for that of the resource that processed the representation.
        afterCompletion(
            690, in: "4.4.1", .should, origin,
            .append(.half, .all, isComplete: true).expecting(.whenRefused, .notComplete)),
        afterCompletion(
            691, in: "4.4.1", .should, origin, .append(.all, .beyond).expecting(.whenRefused, .notComplete)),
        afterCompletion(
            692, .may, replay,
            .append(.all, .all, isComplete: true).expecting(.whenSuccessful, .completeness(true), .conventionalStatus)),
        afterCompletion(
            693, in: "4.4.2", .must, conflictSentence + " and the Upload-Complete header field set to false",
            .append(.half, .all, isComplete: true).expecting(.when(409), .completeness(false), .offset(.all))),
    ]

    private static func afterCompletion(
        _ number: Int, in section: String = "4.4.2", _ level: RequirementLevel, _ sentence: String, _ steps: Step...
    ) -> ConformanceCheck {
        ConformanceCheck(number, section, level, sentence) { session in
            try await session.judge(completeUpload + steps)
        }
    }

    private static let excessSentence =
        "the server MUST prevent the offset from exceeding the representation's length by rejecting the request once the "
        + "offset exceeds the length"

    private static let invalidationSentence =
        "the server MUST prevent the offset from exceeding the representation's length by … marking the upload resource "
        + "invalid and rejecting any further interaction with it"

    private static let excessiveAppendChecks: [ConformanceCheck] = [
        ConformanceCheck(
            701, "4.4.2", .must, excessSentence,
            .create(.half).with("Upload-Length", "{most}"), .append(.half, .all).expecting(.failure)),
        ConformanceCheck(
            702, "4.4.2", .must, excessSentence,
            .create(.half).with("Upload-Length", "{most}"), .append(.half, .all).chunked.expecting(.failure)),
        ConformanceCheck(
            703, "4.4.2", .must, excessSentence,
            .create(.half).with("Upload-Length", "{most}"),
            .append(.half, .all, isComplete: true).chunked.expecting(.failure, .notComplete)),
        ConformanceCheck(
            704, "4.4.2", .must, excessSentence,
            .create(.half).with("Upload-Length", "{quarter}").expecting(.failure)),
        ConformanceCheck(
            705, "4.4.2", .must, excessSentence,
            .create(.half).with("Upload-Length", "{most}"), .append(.half, .all).ignored,
            .head.expecting(.offsetAtMost(.most))),
        ConformanceCheck(
            706, "4.4.2", .must, excessSentence,
            .create(.half), .append(.half, .most).with("Upload-Length", "{half}").expecting(.failure)),
        ConformanceCheck(
            707, "4.4.2", .must, invalidationSentence,
            .create(.half).with("Upload-Length", "{most}"), .append(.half, .all).chunked.ignored,
            .head.expecting(.refusal)),
        ConformanceCheck(
            708, "4.4.2", .must, invalidationSentence,
            .create(.half).with("Upload-Length", "{most}"), .append(.half, .all).chunked.ignored,
            .append(.most, .most, isComplete: true).expecting(.refusal)),
        ConformanceCheck(
            709, "4.4.2", .shouldNot,
            "The server SHOULD NOT generate a response with the 301 (Moved Permanently), 302 (Found), or 303 (See Other) "
                + "status codes and the Upload-Complete: ?0 header field",
            .create(.half), .append(.half, .most).expecting(.noUnsafeRedirect)),
    ]

    private static let malformedAppendChecks: [ConformanceCheck] = [
        ConformanceCheck(
            711, "4.4.2", .should, "A server applies a PATCH request with the application/partial-upload media type",
            .create(.half), .append(.half, .most).with("Content-Type", "text/plain").expecting(.refusal)),
        ConformanceCheck(
            712, "4.4.2", .should, "A server applies a PATCH request with the application/partial-upload media type",
            .create(.half), .append(.half, .most).with("Content-Type", "text/plain").ignored,
            .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            713, "4.4.2", .should, "A server applies a PATCH request with the application/partial-upload media type",
            .create(.half), .append(.half, .most).without("Content-Type").expecting(.refusal)),
        ConformanceCheck(
            714, "4.4.2", .should, "A server applies a PATCH request with the application/partial-upload media type",
            .create(.half),
            .append(.half, .most).with("Content-Type", "Application/Partial-Upload").expecting(.success)),
        ConformanceCheck(
            715, "4.1.1", .should, "is required when appending representation data",
            .create(.half), .append(.half, .most).without("Upload-Offset").expecting(.refusal)),
        ConformanceCheck(
            716, "4.1.1", .should, "is required when appending representation data",
            .create(.half), .append(.quarter, .half).without("Upload-Offset").ignored,
            .head.expecting(.success, .offset(.half))),
    ]
}
