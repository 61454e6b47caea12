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
    private let acceptedStatuses: Set<Int>
    private let tell: (@Sendable (UploadEvent) -> Void)?
    private let log: UploadLog
    private let start: ContinuousClock.Instant

    /// - Parameters:
    ///   - client: Whose settings hold.
    ///   - request: What is sent, before any interceptor has adapted it.
    ///   - acceptedStatuses: The statuses that say that the server has the form.
    ///   - start: When the upload began.
    ///   - log: Where it is logged.
    ///   - tell: Who is told of every step but the last.
    init(
        _ client: UploadClient, _ request: UploadRequest, acceptedStatuses: Set<Int>,
        since start: ContinuousClock.Instant,
        log: UploadLog, telling tell: (@Sendable (UploadEvent) -> Void)?
    ) {
        self.client = client
        self.request = request
        self.acceptedStatuses = acceptedStatuses
        self.start = start
        self.log = log
        self.tell = tell
    }

    /// Makes attempts until one succeeds, or until none is to be made any more.
    func response() async throws -> UploadResponse {
        var earlierErrors: [UploadError] = []
        var interceptorRetries = 0
        while true {
            let number = earlierErrors.count + 1
            let attempt = UploadAttempt(
                request: try await adapted(attempt: number), number: number, earlierErrors: earlierErrors)
            do {
                var response = try await response(to: attempt)
                response.attempts = number
                return response
            } catch var error as UploadError {
                error.attempts = number
                // What came of an attempt whose answer was lost, no later failure can tell.
                if earlierErrors.contains(where: { $0.delivery == .answerLost }), error.delivery != .accepted {
                    error.delivery = .answerLost
                }
                log.failed(error)
                let delay = try await delay(after: error, of: attempt, &interceptorRetries)
                earlierErrors.append(error)
                log.retrying(after: delay, attempt: number + 1)
                tell?(.retrying(UploadRetry(after: error, nextAttempt: number + 1, delay: delay)))
                try await Task.sleep(for: delay)
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

    /// Sends the request, and goes where the server points.
    private func response(to attempt: UploadAttempt) async throws -> UploadResponse {
        let teller = ProgressTeller(
            tell, attempt: attempt.number, interval: client.progressInterval, of: attempt.request.body)
        var route = RedirectRoute(attempt.request, policy: client.redirectPolicy)
        let times = AttemptWatch.Times(
            idle: client.idleTimeout, connecting: client.connectTimeout,
            total: client.totalTimeout.map { ($0, start.advanced(by: $0)) })
        var bytesSent: Int64 = 0
        while true {
            log.sending(route.request, attempt: attempt.number)
            do {
                var response = try await client.send(route.request, times: times, telling: teller)
                bytesSent = max(bytesSent, response.bytesSent)
                response.bytesSent = bytesSent
                log.answered(response)
                if acceptedStatuses.contains(response.status.code) {
                    try client.verification?.verify(response, to: attempt.request)
                    return response
                }
                try route.follow(response)
            } catch var error as UploadError {
                // Behind a 303 the server has the form, whatever becomes of the page to which it points.
                if route.isAccepted { error.delivery = .accepted }
                error.hasLeftOrigin = route.hasLeftOrigin
                throw error
            }
        }
    }
}

// MARK: - After a failure

extension UploadRun {
    /// How long to wait before the next attempt.
    ///
    /// - Throws: The error, where there is to be no further attempt; what an interceptor throws.
    private func delay(
        after error: UploadError, of attempt: UploadAttempt, _ interceptorRetries: inout Int
    ) async throws -> Duration {
        guard error.delivery != .accepted, error.code != .deadlinePassed else { throw error }
        let delay: Duration
        switch error.hasLeftOrigin ? .passOn : try await decision(after: error, of: attempt) {
        case .giveUp:
            throw error
        case .retry(let wait):
            interceptorRetries += 1
            guard interceptorRetries <= client.maximumInterceptorRetries else {
                throw error.adding(
                    "It was not tried again: interceptors have asked for that \(client.maximumInterceptorRetries) times."
                )
            }
            delay = wait
        case .passOn:
            guard attempt.number < client.retryPolicy.maximumAttempts, client.retryPolicy.mayPass(error) else {
                throw error
            }
            var generator = SystemRandomNumberGenerator()
            delay = client.retryPolicy.delay(
                after: attempt.number, retryAfter: error.response?.retryAfter(), using: &generator)
        }
        guard attempt.request.body?.isReplayable ?? true else {
            throw error.adding("It was not tried again, because the form holds a stream that can be read only once.")
        }
        try checkDeadlines(error, delay: delay)
        return delay
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

    private func checkDeadlines(_ error: UploadError, delay: Duration) throws(UploadError) {
        let next = ContinuousClock.now.advanced(by: delay)
        if let deadline = client.retryPolicy.deadline, next > start.advanced(by: deadline) {
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
                try await ContinuousClock().sleep(until: start.advanced(by: total))
                throw UploadError.deadlinePassed(request.url, after: total, lastError: error)
            }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}
