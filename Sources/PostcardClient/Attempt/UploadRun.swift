import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// One upload under way: its attempts, and what lies between them.
struct UploadRun: Sendable {
    private let client: UploadClient
    private let request: UploadRequest
    private let tell: (@Sendable (UploadEvent) -> Void)?
    private let log: UploadLog
    private let start: ContinuousClock.Instant
    /// Whether and how it goes on after a cut, and where it left off.
    private let resumption: Resumption?

    /// What the attempts leave behind for the next.
    private struct Course {
        var earlierErrors: [UploadError] = []
        var interceptorRetries = 0
        /// Whether an answer was lost, and no server has said since that it has not got the whole form.
        var mayHaveArrived = false
        var resumption: Resumption?
        /// How far it was told that the upload is, where the next attempt does not fall back.
        var reached: Int64 = -1
    }

    /// - Parameters:
    ///   - client: Whose settings hold.
    ///   - request: What is sent, before any interceptor has adapted it.
    ///   - start: When the upload began.
    ///   - log: Where it is logged.
    ///   - resumption: Whether it goes on after a cut, and where it left off.
    ///   - tell: Who is told of every step but the last.
    init(
        _ client: UploadClient, _ request: UploadRequest, since start: ContinuousClock.Instant, log: UploadLog,
        resuming resumption: Resumption?, telling tell: (@Sendable (UploadEvent) -> Void)?
    ) {
        self.client = client
        self.request = request
        self.start = start
        self.log = log
        self.resumption = resumption
        self.tell = tell
    }

    /// Makes attempts until one succeeds, or until none is to be made any more.
    func response() async throws -> UploadResponse {
        var course = Course(resumption: resumption)
        do {
            return try await response(&course)
        } catch let error as CancellationError {
            if let resumption = course.resumption { await abandon(resumption) }
            throw error
        }
    }

    private func response(_ course: inout Course) async throws -> UploadResponse {
        while true {
            let number = course.earlierErrors.count + 1
            let attempt = UploadAttempt(
                request: try await adapted(attempt: number), number: number, earlierErrors: course.earlierErrors)
            do {
                var response = try await response(to: attempt, &course)
                response.attempts = number
                return response
            } catch var error as UploadError {
                error.attempts = number
                // What came of an attempt whose answer was lost, no later failure can tell.
                if course.mayHaveArrived, error.delivery != .accepted { error.delivery = .answerLost }
                course.mayHaveArrived = error.delivery == .answerLost
                log.failed(error)
                let delay = try await delay(after: error, of: attempt, &course)
                course.earlierErrors.append(error)
                log.retrying(after: delay, attempt: number + 1)
                tell?(.retrying(UploadRetry(after: error, nextAttempt: number + 1, delay: delay)))
                try await ContinuousClock().sleepLong(until: .now.advanced(by: delay))
            }
        }
    }

    /// The request as the interceptors want it.
    private func adapted(attempt: Int) async throws -> UploadRequest {
        guard !client.interceptors.isEmpty else { return request }
        return try await withinDeadline {
            var request = request
            for interceptor in client.interceptors { try await interceptor.adapt(&request, attempt: attempt) }
            return request
        }
    }

    /// Sends the request, or what the server has not got of it.
    private func response(to attempt: UploadAttempt, _ course: inout Course) async throws -> UploadResponse {
        let request = attempt.request
        var exchange = exchange(of: request, attempt: attempt.number, beyond: course.reached)
        // A server that has the form from an earlier attempt may know it by its key, and answer without reading it again.
        if course.mayHaveArrived { exchange.client.acceptsEarlyAnswers = true }
        let response = try await resumedResponse(to: request, by: exchange, &course)
        let answer =
            if let response { response } else {
                try await exchange.response(to: request, accepting: client.acceptedStatuses).response
            }
        try client.verification?.verify(answer, to: request)
        return answer
    }

    /// - Returns: `nil` where the upload is an ordinary one.
    private func resumedResponse(
        to request: UploadRequest, by exchange: UploadExchange, _ course: inout Course
    ) async throws -> UploadResponse? {
        guard var resumption = course.resumption,
            let attempt = ResumableAttempt(request, resumption.policy, accepting: client.acceptedStatuses, by: exchange)
        else { return nil }
        defer {
            if resumption.isKnownIncomplete { course.mayHaveArrived = false }
            course.resumption = resumption
            course.reached = resumption.isUnderWay ? exchange.teller.highest : -1
        }
        return try await attempt.response(&resumption)
    }

    private func exchange(of request: UploadRequest, attempt: Int, beyond reached: Int64 = -1) -> UploadExchange {
        UploadExchange(
            client: client,
            times: AttemptWatch.Times(
                idle: client.idleTimeout, connecting: client.connectTimeout, answer: client.answerTimeout,
                total: client.totalTimeout.map { ($0, start.advanced(by: $0)) }),
            attempt: attempt, log: log,
            teller: ProgressTeller(
                tell, attempt: attempt, interval: client.progressInterval, of: request.body, beyond: reached))
    }
}

// MARK: - After a failure

extension UploadRun {
    /// How long to wait before the next attempt.
    ///
    /// - Throws: The error, where there is to be no further attempt; what an interceptor throws.
    private func delay(
        after error: UploadError, of attempt: UploadAttempt, _ course: inout Course
    ) async throws -> Duration {
        let (policy, failures) = policy(after: attempt, &course)
        guard error.delivery != .accepted, error.code != .deadlinePassed else { throw error }
        let delay: Duration
        switch error.hasLeftOrigin ? .passOn : try await decision(after: error, of: attempt) {
        case .giveUp:
            throw error
        case .retry(let wait):
            course.interceptorRetries += 1
            guard course.interceptorRetries <= client.maximumInterceptorRetries else {
                throw error.adding(
                    "It was not tried again: interceptors have asked for that \(client.maximumInterceptorRetries) times."
                )
            }
            delay = wait
        case .passOn:
            guard failures < policy.maximumAttempts, policy.mayPass(error) || error.isStillUnderWay else {
                throw error
            }
            var generator = SystemRandomNumberGenerator()
            delay = policy.delay(after: failures, retryAfter: error.response?.retryAfter(), using: &generator)
        }
        guard attempt.request.body?.isReplayable ?? true else {
            throw error.adding("It was not tried again, because the form holds a stream that can be read only once.")
        }
        try checkDeadlines(error, policy, delay: delay)
        return delay
    }

    /// The policy that decides on another attempt, and how many it counts so far.
    private func policy(after attempt: UploadAttempt, _ course: inout Course) -> (RetryPolicy, failures: Int) {
        guard var resumption = course.resumption, resumption.isUnderWay else {
            return (client.retryPolicy, attempt.number)
        }
        resumption.noteFailure()
        // The first since the upload has come further.
        if resumption.failures == 1 { course.interceptorRetries = 0 }
        course.resumption = resumption
        return (resumption.policy.retryPolicy, resumption.failures)
    }

    /// What the first interceptor says that says anything.
    private func decision(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
        guard !client.interceptors.isEmpty else { return .passOn }
        return try await withinDeadline(after: error) {
            for interceptor in client.interceptors {
                let decision = try await interceptor.decide(after: error, of: attempt)
                if decision != .passOn { return decision }
            }
            return .passOn
        }
    }

    private func checkDeadlines(
        _ error: UploadError, _ policy: RetryPolicy, delay: Duration
    ) throws(UploadError) {
        let next = ContinuousClock.now.advanced(by: delay)
        if let deadline = policy.deadline, next > start.advanced(by: deadline) {
            throw error.adding(
                "It was not tried again: the next attempt would begin more than \(deadline.inSeconds) after the first.")
        }
        if let total = client.totalTimeout, next >= start.advanced(by: total) {
            throw .deadlinePassed(request.url, after: total, lastError: error)
        }
    }

    /// Ends the work of interceptors with the time that the upload has.
    private func withinDeadline<Value: Sendable>(
        after error: UploadError? = nil, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let total = client.totalTimeout else { return try await work() }
        return try await withThrowingTaskGroup(of: Value.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await work() }
            group.addTask {
                try await ContinuousClock().sleepLong(until: start.advanced(by: total))
                throw UploadError.deadlinePassed(request.url, after: total, lastError: error)
            }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}

// MARK: - After a cancellation

extension UploadRun {
    /// How long a server may take to throw away what it has of an upload that nobody wants any more.
    private static let deletionTime = Duration.seconds(5)

    /// Has the server throw away what it has, where that was asked for.
    private func abandon(_ resumption: Resumption) async {
        guard resumption.policy.deletesCancelledUploads, let resource = resumption.resource,
            let request = resumption.request, let offer = resumption.offer,
            let deletion = try? UploadRequest(
                url: resource, method: .delete,
                headerFields: request.resumptionFields(for: resource, offer.version), body: nil,
                maximumResponseBytes: request.maximumResponseBytes)
        else { return }
        let times = AttemptWatch.Times(
            total: (Self.deletionTime, .now.advanced(by: Self.deletionTime)))
        let teller = ProgressTeller(nil, attempt: 1, interval: .zero, of: nil)
        let exchange = UploadExchange(client: client, times: times, attempt: 1, log: log, teller: teller)
        // A task of its own, because this one is cancelled; it is waited for.
        await Task {
            _ = try? await exchange.response(to: deletion, accepting: Set(200..<300), isSecret: true)
        }.value
    }
}
