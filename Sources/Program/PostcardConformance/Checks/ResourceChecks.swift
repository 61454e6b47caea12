import HTTPTypes

extension ConformanceSuite {
    /// The checks of upload resources (§4), numbered from 101.
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
    /// Creates two uploads, and compares their upload resources. Calls `between` after the first upload was created and
    /// before the second is created.
    fileprivate func compareTwoUploads(_ between: (CheckSession) async throws -> Void) async throws -> CheckFinding {
        try await succeed(.create(.none))
        guard let first = upload else { throw missingUpload }
        try await between(self)
        try await succeed(.create(.none))
        guard let second = upload else { throw missingUpload }
        return CheckFinding(first == second ? .violated : .ok, "Location: \(first), then \(second)")
    }
}

extension ConformanceSuite {
    private static let deactivation =
        "Upon receiving a DELETE request, the server SHOULD deactivate the upload resource."
    private static let redirection =
        "The server SHOULD NOT generate a response with the 301 (Moved Permanently), 302 (Found), or 303 (See Other) status "
        + "codes because clients might follow the redirect without preserving the DELETE method."

    /// The checks of cancellation (§4.5), numbered from 721.
    static let cancellationChecks: [ConformanceCheck] = [
        ConformanceCheck(721, "4.5.2", .should, deactivation, .create(.half), .delete.expecting(.success)),
        ConformanceCheck(722, "4.5.2", .should, deactivation, .create(.none), .delete.expecting(.success)),
        ConformanceCheck(
            723, "4.5.2", .should, deactivation, .create(.half), .delete, .head.expecting(.refusal)),
        ConformanceCheck(
            724, "4.5.2", .should, deactivation,
            .create(.half), .delete, .append(.half, .most).expecting(.refusal)),
        ConformanceCheck(
            725, "4.5.2", .should, deactivation,
            .create(.half), .append(.half, .all).cut(at: .most), .delete.expecting(.success), .head.expecting(.refusal)),
        ConformanceCheck(
            726, "4.5.2", .should, deactivation,
            .create(.half), .delete, .append(.half, .all, isComplete: true).expecting(.refusal, .notComplete)),
        ConformanceCheck(
            731, "4.5.2", .shouldNot, redirection, .create(.half), .delete.expecting(.noUnsafeRedirect)),
        ConformanceCheck(
            732, "4.5.2", .shouldNot, redirection, .create(.half), .delete, .delete.expecting(.noUnsafeRedirect)),
        ConformanceCheck(
            733, "4.5.2", .shouldNot, redirection,
            .create(.half), .append(.half, .all, isComplete: true), .delete.expecting(.noUnsafeRedirect)),
        .concurrent(
            734, "4.5.2", .should, "The server SHOULD terminate any in-flight requests to the upload resource"
        ) { session in
            try await session.succeed(.create(.half))
            let append = try await session.begin(.append(.half, .all).paused(at: .most))
            let cancellation = try await session.perform(.delete)
            let ending = await append.ending(before: session.deadline)
            return CheckFinding(
                ending == nil ? .violated : .ok,
                "\(cancellation.summary); the append ended with \(ending ?? "nothing in time")")
        },
        .concurrent(
            735, "4.5.2", .should, "before sending the response by abruptly terminating their HTTP connection(s)"
        ) { session in
            try await session.succeed(.create(.half))
            let append = try await session.begin(.append(.half, .all).paused(at: .most))
            let cancellation = try await session.perform(.delete)
            guard cancellation.final?.isSuccess == true else {
                throw CheckInterruption.unchecked(cancellation.summary)
            }
            append.finish()
            try await Task.sleep(for: .milliseconds(100))
            let head = try await session.perform(.head)
            return CheckFinding(
                head.final?.status ?? 0 >= 400 ? .ok : .violated, "\(cancellation.summary); later \(head.summary)")
        },
    ]
}

extension ConformanceSuite {
    private static let guessing =
        "it is RECOMMENDED to generate upload resource URIs in such a way that makes it hard to be guessed by "
        + "unauthorized clients"
    private static let authorization =
        "the server SHOULD ensure that only authorized clients can access the upload resource"

    /// The checks of security considerations (§13), numbered from 1101.
    static let accessChecks: [ConformanceCheck] = [
        ConformanceCheck(1101, "13", .should, guessing) { session in
            var targets: [String] = []
            for _ in 0..<2 {
                try await session.succeed(.create(.none))
                guard let upload = session.upload else { throw session.missingUpload }
                targets.append(upload.target)
            }
            let difference = zip(targets[0], targets[1]).count { $0 != $1 }
            // Of 16 random hexadecimal digits, 15 differ on average.
            return CheckFinding(
                difference >= 10 ? .ok : .violated,
                "\(targets[0]) and \(targets[1]) differ in \(difference) characters")
        },
        ConformanceCheck(
            1102, "13", .should, guessing, .create(.half), .headOfUnknown.expecting(.refusal)),
        unauthorized(1111, .head),
        unauthorized(1112, .append(.half, .most)),
        unauthorized(1113, .delete),
        unauthorized(1114, .append(.half, .all, isComplete: true)),
    ]

    private static func unauthorized(_ number: Int, _ step: Step) -> ConformanceCheck {
        ConformanceCheck(number, "13", .should, authorization) { session in
            let fields = session.settings.headerFields
            guard fields.contains(.authorization) || fields.contains(.cookie) else {
                throw CheckInterruption.notApplicable("the requests name no client")
            }
            return try await session.judge([.create(.half), step.anonymous.expecting(.refusal)])
        }
    }
}
