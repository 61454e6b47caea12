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
    }

    private enum State {
        case ready
        case adapting(attempt: Int)
        case sending(UploadAttempt)
        case deciding(Failure)
        case waiting(nextAttempt: Int)
        case over
    }

    /// A failed attempt, and the policy that decides on another.
    private struct Failure {
        let error: UploadError
        let attempt: UploadAttempt
        let policy: RetryPolicy
        /// How many failures the policy counts so far.
        let count: Int
    }

    private let rules: Rules
    private var state = State.ready
    private var earlierErrors: [UploadError] = []
    private var interceptorRetries = 0

    /// Whether the response to a whole form was lost, and no server has said since that it does not have it.
    private var mayHaveArrived = false

    /// The upload resource that the first such form was sent to. No other can say that the server does not have it.
    private var resourceOfLostForm: URL?

    /// The error of the last failed attempt.
    private(set) var lastError: UploadError?

    /// The resumption of the upload, if the client resumes uploads.
    private(set) var resumption: Resumption?

    init(_ rules: Rules, resumption: Resumption?) {
        self.rules = rules
        self.resumption = resumption
    }

    /// Records what a resumable attempt has found out, before its response or failure is handled.
    mutating func note(_ resumption: Resumption) {
        if resumption.isKnownIncomplete, let resource = resumption.resource, resource == resourceOfLostForm {
            mayHaveArrived = false
        }
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
            return .send(attempt, acceptsEarlyResponses: rules.acceptsEarlyResponses || mayHaveArrived)
        case (.sending(let attempt), .responded(var response)):
            response.attempts = attempt.number
            state = .over
            return .finish(response)
        case (.sending(let attempt), .failed(let error)):
            return handle(error, of: attempt, elapsed: elapsed, using: &generator)
        case (.deciding(let failure), .decided(let decision)):
            return handle(decision, after: failure, elapsed: elapsed, using: &generator)
        case (.waiting(let nextAttempt), .waited):
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
        var error = error
        error.attempts = attempt.number
        // No later failure says what became of an attempt whose response was lost.
        if mayHaveArrived, error.delivery != .accepted { error.delivery = .responseLost }
        if !mayHaveArrived, error.delivery == .responseLost { resourceOfLostForm = resumption?.resource }
        mayHaveArrived = error.delivery == .responseLost
        lastError = error
        let failure = failure(error, of: attempt)
        guard error.delivery != .accepted, error.code != .deadlinePassed else { return fail(error) }
        guard rules.hasInterceptors, !error.hasLeftOrigin else {
            return handle(.passOn, after: failure, elapsed: elapsed, using: &generator)
        }
        state = .deciding(failure)
        return .decide(error, attempt)
    }

    /// Counts a failure by the policy that decides: that of the resumption, if the server is known to resume.
    private mutating func failure(_ error: UploadError, of attempt: UploadAttempt) -> Failure {
        guard var resumption, resumption.isInProgress else {
            return Failure(error: error, attempt: attempt, policy: rules.retry, count: attempt.number)
        }
        resumption.noteFailure()
        // The first failure since the upload has made progress.
        if resumption.failures == 1 { interceptorRetries = 0 }
        self.resumption = resumption
        return Failure(error: error, attempt: attempt, policy: resumption.policy.retry, count: resumption.failures)
    }

    private mutating func handle(
        _ decision: UploadDecision, after failure: Failure, elapsed: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        let error = failure.error
        let delay: Duration
        switch decision {
        case .giveUp:
            return fail(error)
        case .retry(let wait):
            interceptorRetries += 1
            let maximum = rules.retry.maximumInterceptorRetries
            guard interceptorRetries <= maximum else {
                return fail(
                    error.adding("It was not tried again: interceptors have already requested \(maximum) retries."))
            }
            delay = wait
        case .passOn:
            let policy = failure.policy
            guard failure.count < policy.maximumAttempts, policy.mayPass(error) || error.isStillInProgress else {
                return fail(error)
            }
            delay = policy.delay(after: failure.count, retryAfter: error.response?.retryAfter(), using: &generator)
        }
        guard failure.attempt.request.body?.isReplayable ?? true else {
            return fail(
                error.adding("It was not tried again, because the form has a stream that can be read only once."))
        }
        if let deadline = failure.policy.deadline, elapsed + delay > deadline {
            return fail(
                error.adding(
                    "It was not tried again: the next attempt would start more than \(deadline.inSeconds) after the first."
                ))
        }
        if let total = rules.totalTimeout, elapsed + delay >= total {
            return fail(.deadlinePassed(rules.url, after: total, lastError: error))
        }
        earlierErrors.append(error)
        let nextAttempt = failure.attempt.number + 1
        state = .waiting(nextAttempt: nextAttempt)
        return .wait(delay, after: error, nextAttempt: nextAttempt)
    }

    private mutating func fail(_ error: UploadError) -> Action {
        state = .over
        return .fail(error)
    }
}
