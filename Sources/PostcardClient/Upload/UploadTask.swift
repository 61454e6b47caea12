import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Decides what an upload does next: a state machine without its own clock, network or random numbers.
///
/// Each event leads to one action, whose result is the next event:
///
/// | action | event |
/// | --- | --- |
/// | | `started` |
/// | `adapt`: call the interceptors | `adapted` |
/// | `send`: send the form, or resume it | `responded` or `failed` |
/// | `decide`: ask the interceptors about a failure | `decided` |
/// | `wait`: wait before the next attempt | `waited` |
/// | `finish` or `fail`: the upload is over | |
struct UploadTask: Sendable {
    /// What happened.
    enum Event: Sendable {
        case started
        case adapted(UploadRequest)
        case responded(UploadResponse)
        case failed(UploadError)
        case decided(UploadDecision)
        case waited
    }

    /// What to do next.
    enum Action: Sendable {
        /// Make the request of an attempt, as the interceptors want it.
        case adapt(attempt: Int)
        /// Send the form, or what the server is missing of it, and wait for the response.
        case send(UploadAttempt, acceptsEarlyResponses: Bool)
        /// Ask the interceptors what to do after a failure.
        case decide(UploadError, UploadAttempt)
        /// Wait before the next attempt.
        case wait(Duration, after: UploadError, nextAttempt: Int)
        case finish(UploadResponse)
        case fail(UploadError)
    }

    /// The settings that decide.
    struct Rules: Sendable {
        let url: URL
        let retry: RetryPolicy
        let hasInterceptors: Bool
        let acceptsEarlyResponses: Bool
        /// How long the upload may take as a whole; `nil` means no limit.
        let totalTimeout: Duration?
        /// What servers may have of the form from earlier processes.
        var delivery = Delivery.neverArrived

        func schedule(_ policy: RetryPolicy) -> RetrySchedule {
            RetrySchedule(policy, for: url, totalTimeout: totalTimeout)
        }
    }

    private enum State {
        case ready
        case adapting(attempt: Int)
        case sending(UploadAttempt)
        case deciding(Failure)
        case waiting(nextAttempt: Int, RetrySchedule)
        case over
    }

    /// A failed attempt, and the schedule that decides on another.
    private struct Failure {
        let attempt: UploadAttempt
        var reason: RetrySchedule.Failure
        let schedule: RetrySchedule
        /// The history, with the failures that the schedule counts.
        let history: RetrySchedule.History
    }

    private let rules: Rules
    private var state = State.ready
    private var earlierErrors: [UploadError] = []
    private var history: RetrySchedule.History

    /// The error of the last failed attempt.
    private(set) var lastError: UploadError?

    /// The resumption of the upload, if the client resumes uploads.
    private(set) var resumption: Resumption?

    init(_ rules: Rules, resumption: Resumption?) {
        self.rules = rules
        self.resumption = resumption
        history = RetrySchedule.History(after: rules.delivery)
    }

    /// Records what a resumable attempt has found out, before its response or failure is handled.
    mutating func note(_ resumption: Resumption) {
        if resumption.isKnownIncomplete, let resource = resumption.resource { history.ruleOut(resource) }
        self.resumption = resumption
    }

    /// Decides what to do after an event.
    ///
    /// - Parameters:
    ///   - event: What happened.
    ///   - elapsed: How long the upload has taken so far.
    ///   - generator: The source of chance for delays.
    /// - Returns: `nil` if the event does not fit the state, which no caller in this module causes.
    mutating func handle(
        _ event: Event, elapsed: Duration, using generator: inout some RandomNumberGenerator
    ) -> Action? {
        switch (state, event) {
        case (.ready, .started):
            return adapt(attempt: 1)
        case (.adapting(let number), .adapted(let request)):
            let attempt = UploadAttempt(request: request, number: number, earlierErrors: earlierErrors)
            state = .sending(attempt)
            // A server that has the form from an earlier attempt may know it by its key, and respond without reading
            // it.
            return .send(
                attempt, acceptsEarlyResponses: rules.acceptsEarlyResponses || history.delivery.mayHaveArrived)
        case (.sending(let attempt), .responded(var response)):
            response.attempts = attempt.number
            state = .over
            return .finish(response)
        case (.sending(let attempt), .failed(let error)):
            return handle(error, of: attempt, elapsed: elapsed, using: &generator)
        case (.deciding(let failure), .decided(let decision)):
            return handle(decision, after: failure, elapsed: elapsed, using: &generator)
        case (.waiting(let nextAttempt, let schedule), .waited):
            if let error = schedule.expiry(after: lastError, startingAt: elapsed) { return fail(error) }
            return adapt(attempt: nextAttempt)
        default:
            return nil
        }
    }

    private mutating func adapt(attempt: Int) -> Action {
        state = .adapting(attempt: attempt)
        return .adapt(attempt: attempt)
    }
}

// MARK: - After a failure

extension UploadTask {
    private mutating func handle(
        _ error: UploadError, of attempt: UploadAttempt, elapsed: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        let failure = failure(error, of: attempt)
        let error = failure.reason.error
        lastError = error
        guard rules.hasInterceptors, !error.hasLeftOrigin, error.delivery != .accepted, error.code != .deadlinePassed
        else { return handle(.passOn, after: failure, elapsed: elapsed, using: &generator) }
        state = .deciding(failure)
        return .decide(error, attempt)
    }

    /// Counts a failure by the policy that decides: that of the resumption, if the server is known to resume.
    private mutating func failure(_ error: UploadError, of attempt: UploadAttempt) -> Failure {
        var reason = RetrySchedule.Failure(error)
        reason.isReplayable = attempt.request.body?.isReplayable ?? true
        history.add(reason, resource: resumption?.resource)
        reason.error.attempts = attempt.number
        reason.error.delivery = history.delivery.summary
        guard var resumption, resumption.isInProgress else {
            return Failure(
                attempt: attempt, reason: reason, schedule: rules.schedule(rules.retry), history: history)
        }
        resumption.noteFailure()
        // The first failure since the upload has made progress.
        if resumption.failures == 1 { history.interceptorRetries = 0 }
        self.resumption = resumption
        var policy = resumption.policy.retry
        policy.maximumInterceptorRetries = rules.retry.maximumInterceptorRetries
        var counted = history
        counted.failures = resumption.failures
        return Failure(attempt: attempt, reason: reason, schedule: rules.schedule(policy), history: counted)
    }

    private mutating func handle(
        _ decision: UploadDecision, after failure: Failure, elapsed: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        var reason = failure.reason
        reason.wish = decision
        switch failure.schedule.next(after: reason, failure.history, elapsed: elapsed, using: &generator) {
        case .retry(let delay):
            if decision != .passOn { history.interceptorRetries += 1 }
            earlierErrors.append(reason.error)
            let nextAttempt = failure.attempt.number + 1
            state = .waiting(nextAttempt: nextAttempt, failure.schedule)
            return .wait(delay, after: reason.error, nextAttempt: nextAttempt)
        case .fail(let error):
            return fail(error)
        }
    }

    private mutating func fail(_ error: UploadError) -> Action {
        state = .over
        return .fail(error)
    }
}
