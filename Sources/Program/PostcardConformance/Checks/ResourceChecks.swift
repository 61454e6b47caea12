extension ConformanceSuite {
    /// Upload resources as such (§4): 101 and on.
    static let resourceChecks: [ConformanceCheck] = [
        ConformanceCheck(
            101, "4", .may,
            "keeping the upload resource available for a period of time after completion allows the client to verify the "
                + "state of the upload",
            .create(.half), .append(.half, .all, isComplete: true),
            .head.expecting(.whenSuccessful, .completeness(true))),
        ConformanceCheck(
            102, "4", .may,
            "keeping the upload resource available for a period of time after completion allows the client to verify the "
                + "state of the upload",
            .create(.all, isComplete: true).paused().announced,
            .head.expecting(.whenSuccessful, .completeness(true))),
        ConformanceCheck(103, "4", .should, "An upload resource SHOULD be unique.") { session in
            try await session.compareTwoUploads { _ in }
        },
        ConformanceCheck(
            104, "4", .should, "Reuse of a URI for a different upload resource SHOULD be avoided"
        ) { session in
            try await session.compareTwoUploads { try await $0.succeed(.delete) }
        },
        ConformanceCheck(105, "4", .should, "An upload resource is specific to the upload of one representation.") {
            session in
            try await session.succeed(.create(.half))
            let first = session.upload
            try await session.succeed(.create(.none))
            try await session.succeed(.append(.none, .quarter))
            session.use(first)
            return try await session.judge([.head.expecting(.success, .offset(.half))])
        },
        ConformanceCheck(
            106, "4", .should,
            "The server is responsible for persisting the state of the upload resource … and updating it as the upload "
                + "progresses.",
            .create(.none).with("Upload-Length", "{all}"), .append(.none, .quarter), .append(.quarter, .half),
            .head.expecting(.success, .offset(.half), .length(.all), .completeness(false))),
    ]
}

extension CheckSession {
    /// Creates two uploads.
    ///
    /// - Parameter between: What happens to the first before the second is created.
    fileprivate func compareTwoUploads(_ between: (CheckSession) async throws -> Void) async throws -> CheckFinding {
        try await succeed(.create(.none))
        guard let first = upload else { throw missingUpload }
        try await between(self)
        try await succeed(.create(.none))
        guard let second = upload else { throw missingUpload }
        return CheckFinding(first == second ? .violated : .ok, "Location: \(first), then \(second)")
    }
}
