extension ConformanceSuite {
    /// Appends that the server accepts, or receives a part of (§4.4): 601 to 659.
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
