import PostcardWire

extension ConformanceSuite {
    private static let accepted =
        "the offset sent by the server MUST be accepted in a subsequent request to append representation data"
    private static let measures =
        "the server MUST take measures to prevent race conditions, data loss and corruption from concurrent requests"
    private static let outdated =
        "the server MUST NOT send outdated information in responses when retrieving the offset"
    private static let termination = "by terminating the previous request before processing the new request"

    /// The checks of simultaneous requests (§4.6), numbered from 751.
    static let concurrencyChecks: [ConformanceCheck] = [
        ConformanceCheck(
            751, "4.6", .must, accepted, .create(.half), .head, .append(.seen, .most).expecting(.success)),
        ConformanceCheck(
            752, "4.6", .must, accepted,
            .create(.half), .append(.half, .all).cut(at: .most), .head, .append(.seen, .all).expecting(.success)),
        ConformanceCheck(
            753, "4.6", .must, accepted,
            .create(.half), .append(.none, .quarter).ignored, .append(.seen, .most).expecting(.success)),
        ConformanceCheck(
            754, "4.6", .must, accepted,
            .create(.all, isComplete: true).cut(at: .half).announced, .head,
            .append(.seen, .most).expecting(.success)),
        .concurrent(755, "4.6", .mustNot, outdated) { session in
            try await session.succeed(.create(.half))
            _ = try await session.begin(.append(.half, .all).paused(at: .most))
            let offset = try await session.offset()
            let append = try await session.perform(.append(.seen, .all))
            return CheckFinding(
                append.final?.isSuccess == true ? .ok : .violated,
                "HEAD during an append: \(offset); an append there: \(append.summary)")
        },
        .concurrent(756, "4.6", .mustNot, outdated) { session in
            try await session.succeed(.create(.half))
            let append = try await session.begin(.append(.half, .all).paused(at: .most))
            let first = try await session.offset()
            // The client no longer waits for this request, whose last bytes arrive late.
            append.finish()
            try await Task.sleep(for: .milliseconds(100))
            let second = try await session.offset()
            return CheckFinding(
                first == second ? .ok : .violated, "HEAD during an append: \(first), after its late bytes: \(second)")
        },
        .concurrent(757, "4.6", .must, measures) { session in
            try await session.succeed(.create(.half))
            let append = try await session.begin(.append(.half, .all).paused(at: .most))
            let second = try await session.perform(.append(.half, .most))
            append.finish()
            try await Task.sleep(for: .milliseconds(100))
            let offset = try await session.offset()
            let finding = try await session.judge([
                .append(.seen, .all, isComplete: true).expecting(.conventionalStatus)
            ])
            return CheckFinding(
                finding.outcome, "a second append: \(second.summary); then HEAD: \(offset); \(finding.seen)")
        },
        .concurrent(758, "4.6", .must, measures) { session in
            try await session.succeed(.create(.half))
            _ = try await session.begin(.append(.half, .all).paused(at: .most))
            let offset = try await session.offset()
            let finding = try await session.judge([
                .append(.seen, .all, isComplete: true).expecting(.conventionalStatus)
            ])
            return CheckFinding(finding.outcome, "HEAD during an append: \(offset); \(finding.seen)")
        },
        .concurrent(759, "4.6", .must, measures) { session in
            try await session.succeed(.create(.half))
            let appends = [
                try await session.begin(.append(.half, .most).paused(at: .most)),
                // A busy server may process this request first, and end it because of the other request.
                try await session.begin(.append(.half, .most).paused(at: .most), mayEnd: true),
            ]
            var seen: [String] = []
            for append in appends { seen.append(await append.ending(before: session.deadline) ?? "nothing") }
            let offset = try await session.offset()
            return CheckFinding(
                offset == (try session.position(.most)) ? .ok : .violated,
                "the same append on two connections: \(seen.joined(separator: ", ")); then HEAD: \(offset)")
        },
        .concurrent(760, "4.6", .must, measures) { session in
            try await session.succeed(.create(.half))
            let append = try await session.begin(.append(.half, .all).paused(at: .most))
            try await session.succeed(.delete)
            append.finish()
            try await Task.sleep(for: .milliseconds(100))
            return try await session.judge([.append(.half, .most).expecting(.failure)])
        },
        terminated(771, by: .head),
        terminated(772, by: .append(.most, .all)),
        .concurrent(
            773, "4.6", .should, "the recommended approach is to terminate previous requests to enable quick resumption"
        ) { session in
            try await session.succeed(.create(.half))
            _ = try await session.begin(.append(.half, .all).paused(at: .most))
            let start = ContinuousClock.now
            let head = try await session.perform(.head)
            let time = ContinuousClock.now - start
            return CheckFinding(
                head.final != nil && time < .seconds(5) ? .ok : .violated,
                "\(head.summary), after \(time.formattedSeconds) beside an append that hangs")
        },
    ]

    private static func terminated(_ number: Int, by step: Step) -> ConformanceCheck {
        .concurrent(number, "4.6", .should, termination) { session in
            try await session.succeed(.create(.half))
            let append = try await session.begin(.append(.half, .all).paused(at: .most))
            let exchange = try await session.perform(step)
            let ending = await append.ending(before: session.deadline)
            return CheckFinding(
                ending == nil ? .violated : .ok,
                "\(exchange.summary); the append before ended with \(ending ?? "nothing in time")")
        }
    }
}

/// A request whose content has not been sent completely.
struct OpenRequest: Sendable {
    let connection: ConformanceConnection
    let rest: [UInt8]

    func finish() { connection.send(rest) }

    /// Waits until the server ends the request, with a final response or by closing the connection. Returns the
    /// server's action; `nil` if there is none before the deadline.
    func ending(before deadline: ContinuousClock.Instant) async -> String? {
        do {
            while let response = try await connection.next(before: deadline) {
                if !response.isInterim { return "the response \(response.status)" }
            }
            return nil
        } catch {
            return "its connection was closed"
        }
    }
}

extension CheckSession {
    /// Begins a request on a new connection, and waits a moment for the server to receive its beginning. The content of
    /// `step` must have a pause. `mayEnd` says whether the server may already have closed the connection because of
    /// another request.
    func begin(_ step: Step, mayEnd: Bool = false) async throws -> OpenRequest {
        let (address, request) = try render(step)
        let connection: ConformanceConnection
        do throws(ConnectionFailure) {
            connection = try await openConnection(to: address)
        } catch {
            throw CheckInterruption.unchecked(error.description)
        }
        connection.beginRequest(step.method)
        connection.send(request.head + request.beginning)
        try await Task.sleep(for: settlingTime)
        guard connection.isOpen || mayEnd else {
            throw CheckInterruption.unchecked("the server closed the connection of the first request")
        }
        return OpenRequest(connection: connection, rest: request.rest)
    }

    /// The offset that the server returns for HEAD.
    func offset() async throws -> Int64 {
        let exchange = try await perform(.head)
        guard let final = exchange.final, final.isSuccess, let offset = final.fields.uploadOffset else {
            throw CheckInterruption.unchecked(exchange.summary)
        }
        return offset
    }
}
