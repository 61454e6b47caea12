import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire

extension UploadClient {
    /// Performs an upload job, and delivers the progress on the caller's actor.
    func perform(
        progress: ((UploadProgress) -> Void)?, _ job: @escaping @Sendable () throws -> UploadJob
    ) async throws -> UploadResponse {
        try await delivering(to: progress) { try await perform(reportingTo: $0, job) }
    }

    /// Does work on no actor. Meanwhile calls a closure with the progress on the caller's actor.
    ///
    /// - Parameters:
    ///   - progress: The closure. It is not called after this method has returned.
    ///   - work: The work, with the queue that receives all events except `done`.
    func delivering<Value: Sendable>(
        to progress: ((UploadProgress) -> Void)?,
        _ work: @escaping @concurrent @Sendable (UploadEventQueue?) async throws -> Value
    ) async throws -> Value {
        let clock = time.clock
        clock.note(1)
        defer { clock.note(-1) }
        guard let progress else { return try await work(nil) }
        let events = UploadEventQueue(by: clock)
        // The clock counts the work before it begins, so that a test clock does not advance meanwhile.
        clock.note(1)
        async let value = Self.finishing(events, by: clock, after: work)
        await events.deliver(to: progress)
        return try await value
    }

    /// Does work, and then ends the queue of events.
    @concurrent private static func finishing<Value: Sendable>(
        _ events: UploadEventQueue, by clock: any UploadClock,
        after work: @concurrent @Sendable (UploadEventQueue?) async throws -> Value
    ) async throws -> Value {
        defer {
            events.finish()
            clock.note(-1)
        }
        return try await work(events)
    }

    /// Performs an upload job.
    ///
    /// - Parameters:
    ///   - key: The idempotency key of an upload that was tried before. Defaults to a new key if one is needed.
    ///   - events: The queue that receives all events except `done`.
    ///   - job: Makes the job. It is called once.
    func perform(
        under key: IdempotencyKey? = nil, reportingTo events: UploadEventQueue?,
        _ job: @Sendable () throws -> UploadJob
    ) async throws -> UploadResponse {
        let now = time.clock.instant
        events?.put(.preparing)
        let job = try job()
        let run = UploadRun(self, job, under: key, since: now - job.elapsed, reportingTo: events)
        guard network.continuesInBackground else { return try await run.response() }
        return try await network.activity.accompany { try await run.response() }
    }
}

/// Carries out the actions of ``DeliveryMachine`` for one upload.
final class UploadRun: Sendable {
    let client: UploadClient
    let job: UploadJob
    let start: ContinuousClock.Instant
    let log: UploadLog
    let events: UploadEventQueue?
    let progress: ProgressReporter?
    /// The header fields before any interceptor has adapted the request.
    let headerFields: HTTPFields

    /// Makes the run of an upload job.
    ///
    /// - Parameters:
    ///   - key: The idempotency key of an upload that may have been tried before; `nil` for a new key if one is needed.
    ///   - start: When the upload began.
    ///   - events: The queue that receives the events.
    init(
        _ client: UploadClient, _ job: UploadJob, under key: IdempotencyKey?, since start: ContinuousClock.Instant,
        reportingTo events: UploadEventQueue?
    ) {
        self.client = client
        self.job = job
        self.start = start
        self.events = events
        progress = events.map { ProgressReporter(to: $0, interval: client.reporting.progressInterval) }
        // An identifier is made only if it is used, because making it takes as long as reading a small file.
        lazy var id = UUID().uuidString
        log = UploadLog(client.reporting.logger, id: id)
        var fields = job.headerFields
        // A user name in the URL replaces the transport's default credentials for this upload.
        let ownsAuthorization = job.url.user() == nil
        // An object store gets no credentials of the app, whatever the names of their header fields are.
        let defaults = client.transport.defaultHeaderFields
        for field in job.isForObjectStore ? defaults.harmless : defaults
        where !job.headerFields.contains(field.name) && (field.name != .authorization || ownsAuthorization) {
            fields.append(field)
        }
        // An object store needs no idempotency key, because the key of the object identifies the upload.
        let mayRepeat =
            !job.isForObjectStore
            && (client.retryPolicy.isOn || client.resumption != nil || !client.interceptors.isEmpty
                || job.content.followsServerLimit)
        if let key = key ?? (mayRepeat ? IdempotencyKey() : nil) { key.add(to: &fields) }
        if let name = client.reporting.requestIDField, !fields.contains(name) { fields[name] = id }
        headerFields = fields
    }

    /// The machine that decides the upload's actions, before the first attempt.
    ///
    /// - Parameter limits: The size limits of the form.
    private func machine(within limits: FormSizeLimits) -> DeliveryMachine {
        DeliveryMachine(
            DeliveryMachine.Rules(
                url: job.url, retryPolicy: client.retryPolicy, hasInterceptors: !client.interceptors.isEmpty,
                acceptedStatuses: job.acceptedStatuses ?? client.responses.acceptedStatuses,
                acceptsEarly: job.acceptsEarly ?? client.responses.acceptsEarly,
                verifies: client.responses.verification != nil, totalTimeout: client.timeouts.total,
                delivery: job.delivery, limits: limits,
                followsServerLimit: job.content.followsServerLimit),
            resumption: client.resumption.map { Resumption($0, resource: job.resource) })
    }

    /// Makes attempts until one succeeds or the machine allows no more.
    func response() async throws -> UploadResponse {
        var limits = FormSizeLimits(client.rules)
        if let presigned = job.presigned {
            limits = limits.lowered(by: try presigned.form.limits)
        } else if client.network.asksForLimits, job.content.followsServerLimit {
            limits = limits.lowered(by: try await serverLimits())
        }
        var machine = machine(within: limits)
        var folder: PreparationFolder?
        do {
            let response = try await response(&machine, preparingIn: &folder)
            await folder?.remove()
            return response
        } catch {
            await folder?.remove()
            let cause = (error as? InterceptorError)?.cause ?? error
            let isCancelled = cause is CancellationError || Task.isCancelled
            if isCancelled, let deletion = machine.deletion { await delete(deletion) }
            throw job.distinguishesInterceptors ? error : cause
        }
    }

    /// The limits in the server's response to OPTIONS (draft-ietf-httpbis-resumable-upload §4.1.4). Without a
    /// successful response there are no limits, until the server refuses the form with a limit.
    private func serverLimits() async throws -> FormSizeLimits {
        let patience = min(client.timeouts.total ?? Self.optionsPatience, Self.optionsPatience)
        let sender = self.sender(within: patience, idle: client.timeouts.idle, connect: client.timeouts.connect)
        // The idempotency key belongs to the request with the form.
        var fields = headerFields
        fields[.idempotencyKey] = nil
        do {
            let request = try UploadRequest(
                url: job.url, method: .options, headerFields: fields, body: nil,
                maximumResponseBytes: client.responses.maximumBytes)
            let received = try await sender.response(to: request, accepting: Set(200..<300), isSecret: false)
            return FormSizeLimits(
                maximumBodyBytes: received.response.headerFields.uploadLimits(in: .newest)?.maximumBytes)
        } catch is UploadError {
            return FormSizeLimits()
        }
    }

    /// The maximum time to wait for a response to OPTIONS.
    private static let optionsPatience = Duration.seconds(10)

    private func response(
        _ machine: inout DeliveryMachine, preparingIn folder: inout PreparationFolder?
    ) async throws -> UploadResponse {
        var generator = SystemRandomNumberGenerator()
        var event = DeliveryMachine.Event.started
        var saved = job.resource
        while true {
            let action = machine.handle(event, elapsed: client.time.clock.instant - start, using: &generator)
            logFailure(machine.lastError, after: event, before: action)
            if let offers = client.resumption?.offers, let url = machine.attempt?.request.url {
                if let support = machine.support { offers.note(support, for: url) }
                if let bytes = machine.passedAppendBytes { offers.note(appendBytes: bytes, for: url) }
            }
            let resource = machine.resumption?.resource?.url
            if resource != saved { try job.saveResource?(resource) }
            saved = resource
            switch action {
            case .prepare(let limits, let refusal):
                await folder?.remove()
                let request = try await preparedRequest(within: limits, after: refusal, in: &folder)
                event = .prepared(request)
            case .adapt(let request, let number):
                let adapted = try await self.adapted(request, attempt: number, after: machine.lastError)
                progress?.beginAttempt(number, of: adapted.body, resumes: machine.resumption?.isInProgress ?? false)
                event = .adapted(
                    adapted,
                    client.resumption?.offers.known(for: adapted.url)
                        ?? KnownServer(support: .unlisted(inviting: nil)))
            case .check(let request, let readBytes):
                event = try await Self.event { try await Self.check(request, readBytes: readBytes) }
            case .send(let request, let statuses, let acceptsEarly, let isSecret):
                let sender = sender(machine.attempt?.number ?? 1, acceptsEarly: acceptsEarly)
                event = try await Self.event {
                    let request = try await digested(request)
                    let received = try await sender.response(to: request, accepting: statuses, isSecret: isSecret)
                    return .responded(received.response, from: received.url)
                }
            case .verify(let response, let request):
                event = try await Self.event { try await verify(response, to: request) }
            case .decide(let error, let attempt):
                event = .decided(try await decision(after: error, of: attempt))
            case .wait(let delay, let error, let nextAttempt):
                log.retrying(after: delay, attempt: nextAttempt)
                events?.put(.retrying(UploadRetry(after: error, nextAttempt: nextAttempt, delay: delay)))
                try await client.time.clock.sleep(until: client.time.clock.instant.advanced(by: delay))
                event = .waited
            case .finish(var response):
                let sent = machine.preparedRequest?.headerFields.digest(.reprDigest)
                if client.responses.sendsDigests, case .digest = sent, sent == response.headerFields.digest(.reprDigest)
                {
                    response.isVerified = true
                }
                return response
            case .fail(let error): throw error
            case .fault(let fault): throw fault.stoppingDebugBuilds()
            }
        }
    }

    /// Does some work and returns its event. An ``UploadError`` becomes an event too; other errors end the upload.
    private static func event(
        _ work: () async throws -> DeliveryMachine.Event
    ) async throws -> DeliveryMachine.Event {
        do {
            return try await work()
        } catch let error as UploadError {
            return .failed(error)
        }
    }

    /// Logs the failure of an attempt once.
    private func logFailure(
        _ error: UploadError?, after event: DeliveryMachine.Event, before action: DeliveryMachine.Action
    ) {
        guard let error else { return }
        switch (event, action) {
        case (.decided, _), (.waited, _): break
        case (_, .decide), (_, .wait), (_, .fail), (_, .prepare): log.failed(error)
        default: break
        }
    }
}

// MARK: - Interceptors

extension UploadRun {
    /// Lets the interceptors adapt a request.
    ///
    /// - Parameter error: The error of the previous attempt.
    private func adapted(
        _ request: UploadRequest, attempt: Int, after error: UploadError?
    ) async throws -> UploadRequest {
        guard !client.interceptors.isEmpty else { return request }
        return try await withInterceptors(after: error) { interceptors in
            var request = request
            for interceptor in interceptors { try await interceptor.adapt(&request, attempt: attempt) }
            return request
        }
    }

    /// The first decision of an interceptor other than `passOn`.
    private func decision(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
        try await withInterceptors(after: error) { interceptors in
            for interceptor in interceptors {
                let decision = try await interceptor.decide(after: error, of: attempt)
                if decision != .passOn { return decision }
            }
            return .passOn
        }
    }

    /// Calls the interceptors within the upload's total timeout, and wraps their errors in ``InterceptorError``.
    private func withInterceptors<Value: Sendable>(
        after failure: UploadError?, _ work: @escaping @Sendable ([any UploadInterceptor]) async throws -> Value
    ) async throws -> Value {
        try await withinTotalTimeout(after: failure) { [client] in
            do {
                return try await work(client.interceptors)
            } catch {
                throw InterceptorError(cause: error, failure: failure)
            }
        }
    }
}

// MARK: - The end

extension UploadClient {
    /// Does some work of an upload, and cancels the work when the upload's total timeout ends.
    ///
    /// - Parameters:
    ///   - start: When the upload began.
    ///   - url: The URL of the upload, for the error.
    ///   - error: The error of the previous attempt.
    ///   - work: The work.
    func withinTotalTimeout<Value: Sendable>(
        since start: ContinuousClock.Instant, of url: URL, after error: UploadError?,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let total = timeouts.total else { return try await work() }
        let clock = time.clock
        clock.note(1)
        return try await until(
            {
                defer { clock.note(-1) }
                try await clock.wait(until: start.advanced(by: total)) {}
            },
            or: UploadError.deadlinePassed(url, after: total, lastError: error), work)
    }
}

extension UploadRun {
    /// Does some work, and cancels the work when the upload's total timeout ends.
    ///
    /// - Parameters:
    ///   - error: The error of the previous attempt.
    ///   - work: The work.
    func withinTotalTimeout<Value: Sendable>(
        after error: UploadError? = nil, _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        try await client.withinTotalTimeout(since: start, of: job.url, after: error, work)
    }

    /// Asks the server to delete its bytes of the upload.
    private func delete(_ deletion: UploadRequest) async {
        let sender = self.sender(within: UploadClient.deletionTimeout)
        // The request is sent by a separate task, because this task is cancelled.
        await Task {
            _ = try? await sender.response(to: deletion, accepting: Set(200..<300), isSecret: true)
        }.value
    }
}
