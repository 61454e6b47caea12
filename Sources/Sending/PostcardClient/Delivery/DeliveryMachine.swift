import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

/// Decides the next action of an upload: a state machine without its own clock, network, files or random numbers.
///
/// Each event leads to the next state and to one action, whose result is the next event:
///
/// | state: its action | event | next state |
/// | --- | --- | --- |
/// | `ready` | `started` | `preparing` |
/// | `preparing`: make the request of the form, with parts that fit | `prepared` | `adapting` |
/// | `adapting`: call the interceptors | `adapted` | `sending`, `resuming` |
/// | `sending`: send the form in one request | `responded` | `verifying`, `over` |
/// | | `failed` | `deciding`, `waiting`, `preparing`, `over` |
/// | `resuming`: do the next step of a ``ResumableUpload`` | `responded` | `resuming`, `sending`, `verifying`, `deciding`, `waiting`, `preparing`, `over` |
/// | | `checked` | `resuming` |
/// | | `failed` | `resuming`, `sending`, `deciding`, `waiting`, `preparing`, `over` |
/// | `verifying`: compare the response with the form | `verified` | `over` |
/// | | `failed` | `over` |
/// | `deciding`: ask the interceptors about a failure | `decided` | `waiting`, `preparing`, `over` |
/// | `waiting`: wait before the next attempt | `waited` | `adapting`, `over` |
struct DeliveryMachine: Sendable {
    enum State {
        case ready
        case preparing
        case adapting(attempt: Int)
        /// The form is sent in one request.
        indirect case sending(UploadAttempt)
        /// The form is sent by the requests of a resumable upload.
        indirect case resuming(UploadAttempt, ResumableUpload)
        indirect case verifying(UploadAttempt, UploadResponse)
        indirect case deciding(Failure)
        indirect case waiting(nextAttempt: Int, RetrySchedule)
        case over
    }

    /// A failed attempt, and the schedule that decides whether to try again.
    struct Failure {
        let attempt: UploadAttempt
        var reason: RetrySchedule.Failure
        let schedule: RetrySchedule
        /// The failures so far, as the schedule counts them.
        let history: RetrySchedule.History
    }

    /// The maximum number of times that a form is prepared, for servers that keep refusing it with ever smaller limits.
    static let maximumPreparations = 5

    /// The form as it was prepared last.
    private struct Preparation {
        /// The limits that the form is prepared for.
        let limits: FormSizeLimits
        /// The number of times that the form was prepared.
        var count = 0
        /// The request before interceptors adapt it; `nil` until it is made.
        var request: UploadRequest?
        /// Whether a resumable upload was tried because the ordinary form was refused as too large.
        var hasTriedPieces = false
    }

    /// The facts about the server that the latest attempt has shown.
    private struct Contact {
        let attempt: UploadAttempt
        /// The server's support for resumption, for other uploads; `nil` if this attempt has shown nothing reliable.
        var support: ResumptionSupport?
        /// Whether a later attempt may ask about resumption again, because this attempt has not shown that the server
        /// does not resume uploads. For example, the server was busy when the client asked.
        var mayResumeLater = false
    }

    private var rules: Rules
    private(set) var state = State.ready
    /// The errors of all failed attempts.
    private var errors: [UploadError] = []
    private var history: RetrySchedule.History
    private var preparation: Preparation
    private var contact: Contact?

    /// The progress of the resumable upload, if the client resumes uploads.
    private(set) var resumption: Resumption?

    /// The request of the form as it was prepared last, before interceptors adapt it.
    var preparedRequest: UploadRequest? { preparation.request }

    /// The latest attempt, with the request after interceptors have adapted it.
    var attempt: UploadAttempt? { contact?.attempt }

    /// The error of the last failed attempt.
    var lastError: UploadError? { errors.last }

    /// The server's support for resumption, for other uploads; `nil` if the latest attempt has shown nothing reliable.
    var support: ResumptionSupport? { contact?.support }

    /// The append size in bytes that succeeded after larger appends had failed; `nil` if none had failed.
    var passedAppendBytes: Int64? { resumption?.appendSize.passed }

    init(_ rules: Rules, resumption: Resumption? = nil) {
        self.rules = rules
        self.resumption = resumption
        // If the resumption policy forbids sending a form again that may have arrived, so does the ordinary policy.
        if let resumption, !resumption.policy.retryPolicy.repeatsUnclear {
            self.rules.retryPolicy.repeatsUnclear = false
        }
        preparation = Preparation(limits: rules.limits)
        history = RetrySchedule.History(after: rules.delivery)
    }

    /// The request to delete a cancelled upload's bytes from the server. It is `nil` if the policy keeps such bytes, or
    /// if there is no known upload resource.
    var deletion: UploadRequest? {
        guard let resumption, resumption.policy.deletesCancelledUploads, let resource = resumption.resource?.url,
            let offer = resumption.offer, let adapted = attempt?.request
        else { return nil }
        return try? UploadRequest(
            url: resource, method: .delete, headerFields: adapted.resumptionFields(for: resource, offer.version),
            body: nil, maximumResponseBytes: adapted.maximumResponseBytes)
    }

    /// Decides the next action after an event.
    ///
    /// - Parameters:
    ///   - event: The event.
    ///   - elapsed: How long the upload has taken so far.
    ///   - generator: The random number generator for delays.
    mutating func handle(
        _ event: Event, elapsed: Duration, using generator: inout some RandomNumberGenerator
    ) -> Action {
        if let action = next(after: event, elapsed: elapsed, using: &generator) { return action }
        defer { state = .over }
        return .fault(ImpossibleEvent(event, in: state))
    }

    /// The next action after an event; `nil` if the event is impossible in this state.
    private mutating func next(
        after event: Event, elapsed: Duration, using generator: inout some RandomNumberGenerator
    ) -> Action? {
        switch (state, event) {
        case (.ready, .started):
            return prepare(after: nil)
        case (.preparing, .prepared(let request)):
            preparation.request = request
            return adapt(request, attempt: errors.count + 1)
        case (.adapting(let number), .adapted(let request, let known)):
            let attempt = UploadAttempt(request: request, number: number, earlierErrors: errors)
            contact = Contact(attempt: attempt)
            return begin(attempt, known, elapsed: elapsed, using: &generator)
        case (.sending(let attempt), .responded(let response, _)):
            return verify(response, of: attempt)
        case (.resuming(let attempt, let upload), .responded(let response, let url)):
            return resume(upload, after: .responded(response, from: url), of: attempt, elapsed, &generator)
        case (.resuming(let attempt, let upload), .checked):
            return resume(upload, after: .checked, of: attempt, elapsed, &generator)
        case (.resuming(let attempt, let upload), .failed(let error)):
            return resume(upload, after: .failed(error), of: attempt, elapsed, &generator)
        case (.verifying(let attempt, var response), .verified):
            response.isVerified = true
            return finish(response, of: attempt)
        case (.sending(let attempt), .failed(let error)), (.verifying(let attempt, _), .failed(let error)):
            return handle(error, of: attempt, elapsed: elapsed, using: &generator)
        case (.deciding(let failure), .decided(let decision)):
            return handle(decision, after: failure, elapsed: elapsed, using: &generator)
        case (.waiting(let nextAttempt, let schedule), .waited):
            if let error = schedule.expiry(after: lastError, startingAt: elapsed) {
                return fail(error, elapsed: elapsed)
            }
            return preparation.request.map { adapt($0, attempt: nextAttempt) }
        case (_, .started), (_, .prepared), (_, .adapted), (_, .checked), (_, .responded), (_, .verified),
            (_, .failed), (_, .decided), (_, .waited):
            return nil
        }
    }

    private mutating func prepare(after refusal: UploadError?) -> Action {
        preparation.count += 1
        state = .preparing
        return .prepare(within: preparation.limits, after: refusal)
    }

    private mutating func adapt(_ request: UploadRequest, attempt: Int) -> Action {
        state = .adapting(attempt: attempt)
        return .adapt(request, attempt: attempt)
    }

    private mutating func finish(_ response: UploadResponse, of attempt: UploadAttempt) -> Action {
        var response = response
        response.attempts = attempt.number
        state = .over
        return .finish(response)
    }
}

// MARK: - One attempt

extension DeliveryMachine {
    private mutating func begin(
        _ attempt: UploadAttempt, _ known: KnownServer, elapsed: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        guard var resumption,
            var upload = ResumableUpload(
                attempt.request, resumption.policy, accepting: rules.acceptedStatuses, known)
        else { return sendWhole(attempt) }
        resumption.elapsed = elapsed
        resumption.isUnclear = isUnclear
        if let bytes = known.appendBytes { resumption.appendSize.begin(with: bytes) }
        let action = upload.begin(&resumption, known)
        contact?.mayResumeLater = !known.support.isUnlisted
        return carryOut(action, of: attempt, upload, resumption, elapsed: elapsed, using: &generator)
    }

    /// Whether a server may have the form, and the policy forbids sending such a form again.
    private var isUnclear: Bool { !rules.retryPolicy.repeatsUnclear && history.delivery.mayHaveArrived }

    private mutating func sendWhole(_ attempt: UploadAttempt) -> Action {
        state = .sending(attempt)
        return send(attempt.request, accepting: rules.acceptedStatuses)
    }

    private func send(_ request: UploadRequest, accepting statuses: Set<Int>, isSecret: Bool = false) -> Action {
        // A server that has the form may recognize its `Idempotency-Key`, and respond without reading the form again.
        .send(
            request, accepting: statuses,
            acceptsEarly: rules.acceptsEarly || history.delivery.mayHaveArrived, isSecret: isSecret)
    }

    /// Decides the next action after an event of a resumable attempt; `nil` if the event is impossible.
    private mutating func resume(
        _ upload: ResumableUpload, after event: ResumableUpload.Event, of attempt: UploadAttempt, _ elapsed: Duration,
        _ generator: inout some RandomNumberGenerator
    ) -> Action? {
        guard var resumption else { return nil }
        var upload = upload
        resumption.elapsed = elapsed
        resumption.isUnclear = isUnclear
        let action = upload.handle(event, &resumption)
        return action.map { carryOut($0, of: attempt, upload, resumption, elapsed: elapsed, using: &generator) }
    }

    private mutating func carryOut(
        _ action: ResumableUpload.Action, of attempt: UploadAttempt, _ upload: ResumableUpload,
        _ resumption: Resumption, elapsed: Duration, using generator: inout some RandomNumberGenerator
    ) -> Action {
        self.resumption = resumption
        contact?.support = upload.support
        if support?.isUnlisted ?? false { contact?.mayResumeLater = false }
        if let resource = upload.incompleteResource { history.ruleOut(resource) }
        state = .resuming(attempt, upload)
        switch action {
        case .send(let request, let statuses):
            return send(request, accepting: statuses, isSecret: request.url != attempt.request.url)
        case .check(let readBytes): return .check(attempt.request, readBytes: readBytes)
        case .sendWhole: return sendWhole(attempt)
        case .finish(let response): return verify(response, of: attempt)
        case .fail(let error): return handle(error, of: attempt, elapsed: elapsed, using: &generator)
        }
    }

    private mutating func verify(_ response: UploadResponse, of attempt: UploadAttempt) -> Action {
        guard rules.verifies else { return finish(response, of: attempt) }
        state = .verifying(attempt, response)
        return .verify(response, attempt.request)
    }
}

// MARK: - After a failure

extension DeliveryMachine {
    private mutating func handle(
        _ error: UploadError, of attempt: UploadAttempt, elapsed: Duration,
        using generator: inout some RandomNumberGenerator
    ) -> Action {
        let failure = failure(error, of: attempt)
        let error = failure.reason.error
        errors.append(error)
        guard rules.hasInterceptors, !error.hasLeftOrigin, error.delivery != .accepted, error.code != .deadlinePassed
        else { return handle(.passOn, after: failure, elapsed: elapsed, using: &generator) }
        state = .deciding(failure)
        return .decide(error, attempt)
    }

    /// Counts a failure by the retry policy or the resumption policy. The resumption policy applies if the server is
    /// known to resume uploads. For a form that was too large for one request, the resumption policy also applies if
    /// the server may resume uploads.
    private mutating func failure(_ error: UploadError, of attempt: UploadAttempt) -> Failure {
        let mayPassInPieces = mayPassInPieces(error, of: attempt)
        var reason = RetrySchedule.Failure(error, pause: mayPassInPieces ? .zero : nil)
        reason.isReplayable = attempt.request.body?.isReplayable ?? true
        history.add(reason, resource: resumption?.resource?.url)
        reason.error.attempts = attempt.number
        reason.error.delivery = history.delivery.summary
        guard var resumption, resumption.isInProgress || preparation.hasTriedPieces && mayResumeLater else {
            return Failure(
                attempt: attempt, reason: reason, schedule: rules.schedule(rules.retryPolicy), history: history)
        }
        // The failure counts against the resumption policy alone.
        history.failures -= 1
        let isFirst = resumption.noteFailure()
        if isFirst { history.interceptorRetries = 0 }
        self.resumption = resumption
        var policy = resumption.policy.retryPolicy
        policy.maximumInterceptorRetries = rules.retryPolicy.maximumInterceptorRetries
        policy.repeatsUnclear = rules.retryPolicy.repeatsUnclear
        var counted = history
        counted.failures = resumption.failures
        return Failure(attempt: attempt, reason: reason, schedule: rules.schedule(policy), history: counted)
    }

    private var mayResumeLater: Bool { contact?.mayResumeLater ?? false }

    /// Whether a form that was refused as too large may be accepted in several smaller requests. This is so only if the
    /// refusal names no limit, because then it may come from a proxy. The next attempt asks the server about resumption
    /// again, and begins with small appends.
    private mutating func mayPassInPieces(_ error: UploadError, of attempt: UploadAttempt) -> Bool {
        guard mayResumeLater, resumption?.isInProgress == false, error.code == .refused, error.namesNoLimit,
            let length = attempt.request.body?.contentLength, !preparation.hasTriedPieces, var resumption
        else { return false }
        // The machine tries smaller requests only once, because the server may stay busy.
        preparation.hasTriedPieces = true
        let isLowered = resumption.appendSize.noteRefusal(of: length, minimum: 0)
        resumption.forgiveLostCreations()
        self.resumption = resumption
        return isLowered || resumption.appendSize.maximum ?? .max < length
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
            let nextAttempt = failure.attempt.number + 1
            state = .waiting(nextAttempt: nextAttempt, failure.schedule)
            return .wait(delay, after: reason.error, nextAttempt: nextAttempt)
        case .fail(let error):
            return fail(error, elapsed: elapsed)
        }
    }

    /// If there is still time, prepares the form for the limit in a refusal. Otherwise fails.
    private mutating func fail(_ error: UploadError, elapsed: Duration) -> Action {
        guard rules.followsServerLimit, preparation.count < Self.maximumPreparations, error.code == .refused,
            error.delivery == .refused,
            rules.schedule(rules.retryPolicy).expiry(after: error, startingAt: elapsed) == nil,
            let layout = preparation.request?.body?.layout, layout.isReplayable,
            let exceeded = error.limits(exceededBy: layout)
        else {
            state = .over
            return .fail(error)
        }
        preparation = Preparation(limits: preparation.limits.lowered(by: exceeded), count: preparation.count)
        // The form that is prepared next is new to every server.
        history = RetrySchedule.History(after: .refused)
        resumption = resumption.map { Resumption($0.policy) }
        return prepare(after: error)
    }
}
