import HTTPTypes

extension ConformanceSuite {
    private static let failedUpload =
        "If the digests don't match, the server SHOULD consider the upload failed, not process the representation further, "
        + "and signal the failure to the client."
    private static let failedTransfer =
        "If the digests don't match the server SHOULD consider the transfer failed, not append the content to the upload "
        + "resource, and signal the failure to the client."
    private static let computation =
        "The server SHOULD compute the representation digests using the preferred algorithms once the upload is complete "
        + "and include the corresponding Repr-Digest header field in the response."

    /// Integrity digests (§10): 1001 and on.
    static let digestChecks: [ConformanceCheck] = [
        ConformanceCheck(
            1001, "10.1", .should, failedUpload,
            .create(.all, isComplete: true).with("Repr-Digest", "{wrongDigest}").expecting(.failure)),
        ConformanceCheck(
            1002, "10.1", .should, failedUpload,
            .create(.half).with("Repr-Digest", "{wrongDigest}"),
            .append(.half, .all, isComplete: true).expecting(.failure)),
        ConformanceCheck(
            1003, "10.1", .should, "the integrity of the entire representation data can be protected",
            .create(.half).with("Repr-Digest", "{digest}"),
            .append(.half, .all, isComplete: true).expecting(.conventionalStatus)),
        ConformanceCheck(
            1004, "10.1", .should, "the integrity of the entire representation data can be protected",
            .create(.all, isComplete: true).with("Repr-Digest", "{digest}").expecting(.conventionalStatus)),
        ConformanceCheck(
            1011, "10.1", .should, computation,
            .create(.half).with("Want-Repr-Digest", "sha-256=10"),
            .append(.half, .all, isComplete: true).expecting(.processed, .has(.reprDigest))),
        ConformanceCheck(
            1012, "10.1", .should, computation,
            .create(.half).with("Want-Repr-Digest", "sha-256=10"),
            .append(.half, .all, isComplete: true).expecting(.digest)),
        ConformanceCheck(
            1013, "10.1", .should, computation,
            .create(.all, isComplete: true).with("Want-Repr-Digest", "sha-256=10").expecting(
                .processed, .has(.reprDigest))),
        ConformanceCheck(
            1014, "10.1", .should, computation,
            .create(.all, isComplete: true).with("Want-Repr-Digest", "sha-256=10").expecting(.digest)),
        ConformanceCheck(
            1015, "10.1", .should, "The response SHOULD include at least one of the requested digests",
            .create(.half).with("Want-Repr-Digest", "sha-512=5, sha-256=3"),
            .append(.half, .all, isComplete: true).expecting(.processed, .has(.reprDigest))),
        ConformanceCheck(
            1021, "10.2", .should, failedTransfer,
            .create(.half), .append(.half, .most).with("Content-Digest", "{wrongDigest}").expecting(.failure)),
        ConformanceCheck(
            1022, "10.2", .should, failedTransfer,
            .create(.half), .append(.half, .most).with("Content-Digest", "{wrongDigest}").ignored,
            .head.expecting(.success, .offset(.half))),
        ConformanceCheck(
            1023, "10.2", .should, failedTransfer,
            .create(.half).with("Content-Digest", "{wrongDigest}").expecting(.failure)),
        ConformanceCheck(
            1024, "10.2", .should, failedTransfer,
            .create(.all, isComplete: true).with("Content-Digest", "{wrongDigest}").expecting(.failure)),
        ConformanceCheck(
            1025, "10.2", .should, failedTransfer,
            .create(.half), .append(.half, .all, isComplete: true).with("Content-Digest", "{wrongDigest}").ignored,
            .head.expecting(.success, .completeness(false), .offset(.half))),
        ConformanceCheck(
            1026, "10.2", .should, "the integrity of an individual request can be protected",
            .create(.half), .append(.half, .most).with("Content-Digest", "{pieceDigest}").expecting(.success),
            .head.expecting(.success, .offset(.most))),
        ConformanceCheck(
            1027, "10.2", .should, "the integrity of an individual request can be protected",
            .create(.half).with("Content-Digest", "{pieceDigest}").expecting(.success, .has(.location))),
        ConformanceCheck(
            1028, "10.2", .should, "the integrity of an individual request can be protected",
            .create(.half),
            .append(.half, .all, isComplete: true).with("Content-Digest", "{pieceDigest}").expecting(
                .conventionalStatus)),
    ]
}
