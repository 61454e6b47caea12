import PostcardWire

extension ConformanceSuite {
    private static let membersSentence = "A response using this problem type SHOULD populate both members"

    /// The checks of media types, problem types, codings and incremental delivery (§6 to §9, §11), numbered from 901.
    static let problemChecks: [ConformanceCheck] = [
        ConformanceCheck(
            901, "6", .should, "There is no minimum block size and the block might be empty.",
            .create(.half), .append(.half, .half).expecting(.success), .head.expecting(.success, .offset(.half))),
        ConformanceCheck(902, "6", .should, "There is no minimum block size and the block might be empty.") {
            session in
            guard session.knowledge.limits.minimumAppendBytes ?? 0 <= 1 else {
                throw CheckInterruption.notApplicable("the server announces a min-append-size")
            }
            return try await session.judge([
                .create(.half), .append(.half, .afterHalf).expecting(.success), .head.expecting(.offset(.afterHalf)),
            ])
        },
        ConformanceCheck(
            911, "7.1", .should, membersSentence,
            .create(.half),
            .append(.half, .most).at(.most).expecting(
                .whenProblem("mismatching-upload-offset"), .problemMember("expected-offset", .half))),
        ConformanceCheck(
            912, "7.1", .should, membersSentence,
            .create(.half),
            .append(.half, .most).at(.most).expecting(
                .whenProblem("mismatching-upload-offset"), .problemMember("provided-offset", .most))),
        ConformanceCheck(
            913, "7.1", .should, membersSentence,
            .create(.none),
            .append(.none, .half).at(.half).expecting(
                .whenProblem("mismatching-upload-offset"), .problemMember("expected-offset", .none),
                .problemMember("provided-offset", .half))),
        ConformanceCheck(
            914, "4.4.2", .may, "The response can use the problem type",
            .create(.half), .append(.half, .most).at(.most).expecting(.whenProblem("mismatching-upload-offset"))),
        ConformanceCheck(
            916, "7.2", .may, "to indicate that the request includes inconsistent length values",
            .create(.all, isComplete: true).with("Upload-Length", "{half}").expecting(
                .whenProblem("inconsistent-upload-length"), .refusal)),
        ConformanceCheck(
            917, "7.2", .may, "to indicate that the request includes inconsistent length values",
            .create(.half).with("Upload-Length", "{all}"),
            .append(.half, .most, isComplete: true).expecting(.whenProblem("inconsistent-upload-length"), .refusal)),
        ConformanceCheck(
            918, "7.2", .may, "to indicate that the request includes inconsistent length values",
            .create(.half), .append(.half, .all, isComplete: true),
            .append(.all, .beyond).expecting(.whenProblem("inconsistent-upload-length"), .refusal)),
        ConformanceCheck(
            921, "8", .should,
            "both the client and the server always compute the values for Upload-Offset and optionally Upload-Length on "
                + "the content coded data",
            .create(.half).with("Content-Encoding", "gzip").expecting(.whenSuccessful),
            .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            922, "8", .should,
            "both the client and the server always compute the values for Upload-Offset and optionally Upload-Length on "
                + "the content coded data",
            .create(.half).with("Content-Encoding", "gzip").with("Upload-Length", "{all}").expecting(.whenSuccessful),
            .head.expecting(.success, .length(.all))),
        ConformanceCheck(
            931, "9", .should,
            "a server is responsible for transfer decoding the message before computing the upload offset",
            .create(.half).chunked, .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            932, "9", .should,
            "a server is responsible for transfer decoding the message before computing the upload offset",
            .create(.half), .append(.half, .most).chunked.expecting(.success), .head.expecting(.offset(.most))),
        ConformanceCheck(
            951, "11", .should, "Clients can use the Incremental header field",
            .create(.half).with("Incremental", "?1").expecting(.success),
            .append(.half, .most).with("Incremental", "?1").expecting(.success),
            .head.expecting(.success, .offset(.most))),
    ]
}
