extension ConformanceSuite {
    /// The checks of accepted and interrupted appends (§4.4), numbered from 601 to 659.
    static let appendChecks: [ConformanceCheck] = acceptedAppendChecks + completionChecks + interruptedAppendChecks

    private static let acceptedAppendChecks: [ConformanceCheck] = [
        ConformanceCheck(
            601, "4.4.2", .should, "by appending the patch document in the request content",
            .create(.half), .append(.half, .most).expecting(.success), .head.expecting(.success, .offset(.most))),
        ConformanceCheck(
            602, "4.4.2", .should, "by appending the patch document in the request content",
            .create(.none), .append(.none, .quarter), .append(.quarter, .half),
            .append(.half, .most).expecting(.success),
            .head.expecting(.success, .offset(.most))),
        ConformanceCheck(
            603, "4.4.2", .should,
            "by sending a 2xx (Successful) response with the Upload-Complete header field set to false",
            .create(.half), .append(.half, .most).expecting(.success, .completeness(false))),
        ConformanceCheck(
            604, "4.4.2", .should,
            "by sending a 2xx (Successful) response with the Upload-Complete header field set to false",
            .create(.half), .append(.half, .half).expecting(.success, .completeness(false))),
        ConformanceCheck(
            605, "4.4.2", .should,
            "by sending a 2xx (Successful) response with the Upload-Complete header field set to false",
            .create(.half), .append(.half, .all).expecting(.success, .completeness(false))),
        ConformanceCheck(
            606, "4.4.2", .must, "The server MUST record the representation's length",
            .create(.half), .append(.half, .most).with("Upload-Length", "{all}").expecting(.success),
            .head.expecting(.success, .length(.all))),
        ConformanceCheck(
            607, "4.4.2", .must, "The server MUST record the representation's length",
            .create(.half), .append(.half, .half).with("Upload-Length", "{all}").expecting(.success),
            .head.expecting(.success, .length(.all))),
        ConformanceCheck(
            608, "4.4.2", .must, "The server MUST record the representation's length",
            .create(.half), .append(.half, .all, isComplete: true).cut(at: .most),
            .head.repeated.expecting(.success, .length(.all))),
    ]

    private static let trueSentence = "the response MUST include the Upload-Complete header field with a true value"

    private static let completionChecks: [ConformanceCheck] = [
        ConformanceCheck(
            621, "4.4.2", .must, trueSentence,
            .create(.half), .append(.half, .all, isComplete: true).expecting(.completeness(true))),
        ConformanceCheck(
            622, "4.4.2", .must, trueSentence,
            .create(.all), .append(.all, .all, isComplete: true).expecting(.completeness(true))),
        ConformanceCheck(
            623, "4.4.2", .must, trueSentence,
            .create(.none), .append(.none, .all, isComplete: true).expecting(.completeness(true))),
        ConformanceCheck(
            624, "4.4.2", .must, trueSentence,
            .create(.half), .append(.half, .all, isComplete: true).chunked.expecting(.completeness(true))),
        ConformanceCheck(
            625, "4.4.2", .must, trueSentence, content: .broken,
            .create(.half), .append(.half, .all, isComplete: true).expecting(.whenRefused, .completeness(true))),
        ConformanceCheck(
            626, "4.4.2", .must, trueSentence, content: .broken,
            .create(.all), .append(.all, .all, isComplete: true).expecting(.whenRefused, .completeness(true))),
        ConformanceCheck(
            627, "4.4.2", .must, trueSentence, content: .malformed,
            .create(.none),
            .append(.none, .all, isComplete: true).expecting(.whenRefused, .completeness(true))),
        ConformanceCheck(
            628, "4.4.2", .must, trueSentence, content: .malformed,
            .create(.none),
            .append(.none, .all, isComplete: true).chunked.expecting(.whenRefused, .completeness(true))),
        ConformanceCheck(
            631, "4.4.2", .should,
            "SHOULD generate the response that matches what the resource, that was targeted by the initial upload "
                + "creation …, would have generated",
            .create(.half), .append(.half, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            632, "4.4.2", .should,
            "SHOULD generate the response that matches what the resource, that was targeted by the initial upload "
                + "creation …, would have generated",
            .create(.none), .append(.none, .quarter), .append(.quarter, .half), .append(.half, .most),
            .append(.most, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            633, "4.4.2", .should,
            "SHOULD generate the response that matches what the resource, that was targeted by the initial upload "
                + "creation …, would have generated",
            .create(.all), .append(.all, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            634, "4.4.2", .should,
            "SHOULD generate the response that matches what the resource, that was targeted by the initial upload "
                + "creation …, would have generated",
            content: .broken,
            .create(.half), .append(.half, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            635, "4.4.2", .should,
            "SHOULD generate the response that matches what the resource, that was targeted by the initial upload "
                + "creation …, would have generated",
            .create(.half), .append(.half, .all, isComplete: true).expecting(.conventionalContentType)),
        ConformanceCheck(
            636, "4.4.2", .should, "the upload is marked as complete",
            .create(.half), .append(.half, .all, isComplete: true),
            .head.expecting(.whenSuccessful, .completeness(true))),
    ]

    private static let interruptedAppendChecks: [ConformanceCheck] = [
        ConformanceCheck(
            641, "4.4.2", .should,
            "the server SHOULD append as much of the patch document as possible to the upload resource",
            .create(.half), .append(.half, .all).cut(at: .most), .head.repeated.expecting(.success, .offset(.most))),
        ConformanceCheck(
            642, "4.4.2", .should,
            "the server SHOULD append as much of the patch document as possible to the upload resource",
            .create(.half), .append(.half, .all, isComplete: true).chunked.cut(at: .most),
            .head.repeated.expecting(.success, .offset(.most))),
        ConformanceCheck(
            643, "4.4.2", .should, "starting at its beginning and without discontinuities",
            .create(.half), .append(.half, .all).cut(at: .most), .head,
            .append(.seen, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            644, "4.4.2", .mustNot, "the upload resource MUST NOT be considered complete then",
            .create(.half), .append(.half, .all, isComplete: true).cut(at: .most),
            .head.repeated.expecting(.success, .completeness(false))),
        ConformanceCheck(
            645, "4.4.2", .mustNot, "the upload resource MUST NOT be considered complete then",
            .create(.half), .append(.half, .all, isComplete: true).chunked.cut(at: .most),
            .head.repeated.expecting(.success, .completeness(false))),
        ConformanceCheck(
            646, "4.4.2", .mustNot, "the upload resource MUST NOT be considered complete then",
            .create(.half), .append(.half, .all, isComplete: true).chunked.cut(at: .all),
            .head.repeated.expecting(.success, .completeness(false))),
    ]
}

extension ConformanceSuite {
    /// The checks of appends that the server refuses (§4.4), numbered from 661.
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

    /// The reason to check errors: an error with `Upload-Complete: ?1` could be mistaken for the end of the upload.
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
        // To a client, a final response with ?1 comes from the resource that processed the upload.
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
