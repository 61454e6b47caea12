extension ConformanceSuite {
    private static let deactivation =
        "Upon receiving a DELETE request, the server SHOULD deactivate the upload resource."
    private static let redirection =
        "The server SHOULD NOT generate a response with the 301 (Moved Permanently), 302 (Found), or 303 (See Other) status "
        + "codes because clients might follow the redirect without preserving the DELETE method."

    /// Cancellation (§4.5): 721 and on.
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
