import HTTPTypes
package import PostcardFoundation

/// Decides whether and when a failed upload is sent again, for uploads in this process and for those of a queue.
///
/// The time and the random number generator are parameters, so that tests need no real delays.
package struct RetrySchedule: Sendable {
    private let policy: RetryPolicy
    /// The URL of the upload, for error messages.
    private let url: URL
    /// How long the upload may take as a whole; `nil` means no limit.
    private let totalTimeout: Duration?
    /// Whether the upload belongs to a queue, and so can wait for another network.
    private let isQueued: Bool

    package init(_ policy: RetryPolicy, for url: URL, totalTimeout: Duration? = nil, isQueued: Bool = false) {
        self.policy = policy
        self.url = url
        self.totalTimeout = totalTimeout
        self.isQueued = isQueued
    }

    /// The attempts of an upload so far, including the latest failure.
    package struct History: Sendable, Hashable {
        /// The number of failures that count against ``RetryPolicy/maximumAttempts``.
        package var failures: Int
        /// The number of conflicts in a row (see ``RetryPolicy/maximumConflicts``).
        package private(set) var conflicts: Int
        /// The possible delivery of the form in all attempts so far.
        package private(set) var delivery: PossibleDelivery
        /// The number of retries that interceptors requested and were granted.
        var interceptorRetries = 0

        package init(failures: Int = 0, conflicts: Int = 0, after delivery: PossibleDelivery = .neverArrived) {
            self.failures = failures
            self.conflicts = conflicts
            self.delivery = delivery
        }

        /// Adds a failed attempt to the history.
        ///
        /// - Parameters:
        ///   - failure: The failed attempt.
        ///   - resource: The upload resource of the attempt, if there was one.
        package mutating func add(_ failure: Failure, resource: URL? = nil) {
            failures += 1
            delivery.add(failure.error.delivery, resource: resource)
            conflicts = isInProgress(failure) && failure.retryAfter == nil ? conflicts + 1 : 0
        }

        /// Records that an upload resource does not have the whole form.
        mutating func ruleOut(_ resource: URL) {
            delivery.ruleOut(resource)
        }

        /// Whether the server may still be processing the form from an earlier attempt whose response was lost
        /// (draft-ietf-httpapi-idempotency-key-header).
        fileprivate func isInProgress(_ failure: Failure) -> Bool {
            delivery.mayHaveArrived && failure.error.response?.status.code == 409
        }
    }

    /// A failed attempt.
    package struct Failure: Sendable {
        package var error: UploadError
        /// The decision of the interceptors.
        var wish = UploadDecision.passOn
        /// Whether the form can be sent again. It is `false` if the form has a stream that can be read only once.
        var isReplayable = true
        /// The delay that the server requested.
        fileprivate let retryAfter: Duration?
        /// The delay after a temporary failure of this device, such as a locked phone; `nil` for other failures.
        fileprivate let pause: Duration?

        /// Makes a failure from the error of an attempt.
        ///
        /// - Parameters:
        ///   - error: The error of the attempt.
        ///   - now: The time by this device's clock, for a `Retry-After` that is a date. Defaults to the current time.
        ///   - pause: The delay after a temporary failure of this device. Defaults to `nil`.
        package init(_ error: UploadError, at now: Date = Date(), pause: Duration? = nil) {
            self.error = error
            retryAfter = error.response?.retryAfter(now: now)
            self.pause = pause
        }
    }

    /// The decision after a failure.
    package enum Decision: Sendable {
        /// The form is sent again after a delay.
        case retry(after: Duration)
        /// The upload has failed.
        case fail(UploadError)
    }

    /// Decides whether and when a form is sent again.
    ///
    /// - Parameters:
    ///   - failure: The latest failure.
    ///   - history: The attempts so far, including this failure.
    ///   - elapsed: How long the upload has taken so far.
    ///   - generator: The random number generator for delays.
    package func next(
        after failure: Failure, _ history: History, elapsed: Duration, using generator: inout some RandomNumberGenerator
    ) -> Decision {
        var error = failure.error
        guard history.delivery != .accepted, error.code != .deadlinePassed, !error.isFinal else { return .fail(error) }
        // An error after an interceptor's decision is final: no other schedule, such as a queue's, tries again.
        error.isFinal = failure.wish != .passOn
        let delay: Duration
        switch failure.wish {
        case .giveUp:
            return .fail(error)
        case .retry(let wait):
            let maximum = policy.maximumInterceptorRetries
            guard history.interceptorRetries < maximum else {
                return .fail(
                    error.adding("It was not tried again: interceptors have already requested \(maximum) retries."))
            }
            delay = wait
        case .passOn:
            guard history.failures < policy.maximumAttempts, mayPass(failure, history) else { return .fail(error) }
            delay =
                failure.pause
                ?? policy.delay(after: history.failures, retryAfter: failure.retryAfter, using: &generator)
        }
        // A queue knows more about its attempts, and makes this decision itself.
        if !isQueued, !policy.repeatsUnclear, history.delivery == .responseLost(resource: nil) {
            return .fail(error.adding("It was not tried again, because the server may have the form."))
        }
        guard failure.isReplayable else {
            return .fail(error.addingUnreplayable())
        }
        return expiry(after: error, startingAt: elapsed + delay).map(Decision.fail) ?? .retry(after: delay)
    }

    /// Returns the error if it is too late for another attempt, or `nil` if the attempt may start. A planned attempt
    /// can be late because the device slept or no process was running.
    ///
    /// - Parameters:
    ///   - error: The error of the latest attempt, if it is known.
    ///   - elapsed: How long the upload will have taken at the start of the attempt.
    package func expiry(after error: UploadError?, startingAt elapsed: Duration) -> UploadError? {
        if let deadline = policy.deadline, elapsed > deadline {
            let reason =
                "It was not tried again: the next attempt would start more than \(deadline.inSeconds) after the first."
            return (error ?? .deadlinePassed(url, after: deadline, lastError: nil)).adding(reason)
        }
        if let totalTimeout, elapsed >= totalTimeout {
            return .deadlinePassed(url, after: totalTimeout, lastError: error)
        }
        return nil
    }

    /// Whether a failure may pass by itself.
    private func mayPass(_ failure: Failure, _ history: History) -> Bool {
        if failure.pause != nil || policy.mayPass(failure.error, isQueued: isQueued) { return true }
        guard history.isInProgress(failure) else { return false }
        // Without a `Retry-After`, the conflict may be permanent: the server may have the form and not support its key.
        return failure.retryAfter != nil || history.conflicts < policy.maximumConflicts
    }
}

extension UploadError {
    /// This error, with the reason why the form is not sent again.
    func addingUnreplayable() -> UploadError {
        adding("It was not tried again, because the form has a stream that can be read only once.")
    }
}

/// The possible delivery of a form after all attempts so far.
///
/// Errors have ``UploadError/Delivery`` instead, which does not name the upload resource. The URL of that resource
/// gives access to the upload.
package enum PossibleDelivery: Sendable, Hashable {
    /// No server has the whole form.
    case neverArrived
    /// A server has refused the form.
    case refused
    /// The whole form was sent, and its response was lost. It is not known whether the server accepted the form.
    ///
    /// - Parameter resource: The upload resource that first received the form; `nil` for an ordinary request, and if
    ///   the resource is no longer known.
    case responseLost(resource: URL?)
    /// A server has accepted the form.
    case accepted

    /// Whether a server may have accepted the form and may recognize its `Idempotency-Key`. If so, a success counts
    /// even before the whole form was sent again, and a 409 may mean that the server is still processing the form.
    package var mayHaveArrived: Bool { summary.mayHaveArrived }

    /// Adds the result of a failed attempt. After a lost response, only ``accepted`` changes the delivery.
    ///
    /// - Parameters:
    ///   - failure: The delivery in this attempt alone.
    ///   - resource: The upload resource of the attempt, if it is still known.
    mutating func add(_ failure: UploadError.Delivery, resource: URL?) {
        switch (self, failure) {
        case (_, .accepted): self = .accepted
        case (.accepted, _): break
        case (.responseLost(let lost), _): if lost != resource { self = .responseLost(resource: nil) }
        case (_, .responseLost): self = .responseLost(resource: resource)
        case (_, .neverArrived): self = .neverArrived
        case (_, .refused): self = .refused
        }
    }

    /// Records that an upload resource lacks some of the form. If the lost response was this resource's, no server has
    /// the whole form.
    mutating func ruleOut(_ resource: URL) {
        if self == .responseLost(resource: resource) { self = .neverArrived }
    }

    /// The delivery without the upload resource, for errors.
    var summary: UploadError.Delivery {
        switch self {
        case .neverArrived: .neverArrived
        case .refused: .refused
        case .responseLost: .responseLost
        case .accepted: .accepted
        }
    }
}
