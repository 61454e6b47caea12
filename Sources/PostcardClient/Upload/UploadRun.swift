import HTTPTypes
import PostcardForm

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a caller wants to be uploaded, and where.
struct UploadJob: Sendable {
    var content: Content
    let url: URL
    let method: HTTPRequest.Method
    let headerFields: HTTPFields
    /// The statuses of success; `nil` means those of the client.
    var acceptedStatuses: Set<Int>?
    /// Whether early responses count; `nil` means as the client says.
    var acceptsEarlyResponses: Bool?
    /// The upload resource with what an earlier process has sent.
    var resource: URL?
    /// Saves the upload resource for a later process.
    var saveResource: (@Sendable (URL?) throws -> Void)?
    /// What servers may have of the form from earlier processes.
    var delivery = Delivery.neverArrived
    /// How long the upload has taken before it was passed to this client.
    var elapsed = Duration.zero

    enum Content: Sendable {
        case form(MultipartForm)
        case layout(FormLayout)
    }

    init(_ content: Content, url: URL, method: HTTPRequest.Method, headerFields: HTTPFields) {
        self.content = content
        self.url = url
        self.method = method
        self.headerFields = headerFields
    }
}

extension UploadClient {
    /// Performs a job, and delivers its progress from a task of the upload's own.
    func perform(
        progress: (@Sendable (UploadProgress) -> Void)?, _ job: @Sendable () throws -> UploadJob
    ) async throws -> UploadResponse {
        guard let progress else { return try await perform(reportingTo: nil, job) }
        let events = UploadEventQueue()
        async let delivery: Void = events.deliver(to: progress)
        do {
            let response = try await perform(reportingTo: events, job)
            events.finish()
            await delivery
            return response
        } catch {
            events.finish()
            await delivery
            throw error
        }
    }

    /// Performs a job.
    ///
    /// - Parameters:
    ///   - key: The key of an upload that may have been tried before. By default one is made if it is needed.
    ///   - events: Where all events except `done` are put.
    ///   - job: Makes the job; called once.
    func perform(
        under key: IdempotencyKey? = nil, reportingTo events: UploadEventQueue?,
        _ job: @Sendable () throws -> UploadJob
    ) async throws -> UploadResponse {
        let now = ContinuousClock.now
        events?.put(.preparing)
        let job = try job()
        let start = now - job.elapsed
        if case .form(let form) = job.content, form.needsPreparation {
            return try await PreparedUpload(self, form, job, under: key, since: start, reportingTo: events).response()
        }
        return try await UploadRun(self, job, under: key, since: start, reportingTo: events).response()
    }

    /// Does some work, and cancels it when the time for the upload is over.
    ///
    /// - Parameters:
    ///   - url: Where the upload goes.
    ///   - start: When the upload began.
    ///   - error: The error of the attempt before.
    ///   - earlierAttempts: The number of attempts that the error does not count.
    ///   - work: The work.
    func withinTotalTimeout<Value: Sendable>(
        of url: URL, since start: ContinuousClock.Instant, after error: UploadError? = nil, earlierAttempts: Int = 0,
        _ work: @escaping @Sendable () async throws -> Value
    ) async throws -> Value {
        guard let total = timeouts.total else { return try await work() }
        return try await withThrowingTaskGroup(of: Value.self) { group in
            defer { group.cancelAll() }
            group.addTask { try await work() }
            group.addTask {
                try await ContinuousClock().sleepLong(until: start.advanced(by: total))
                var passed = UploadError.deadlinePassed(url, after: total, lastError: error)
                passed.attempts += earlierAttempts
                throw passed
            }
            guard let value = try await group.next() else { throw CancellationError() }
            return value
        }
    }
}

/// One upload: makes its request, and carries out what ``UploadTask`` decides.
final class UploadRun: Sendable {
    private let client: UploadClient
    private let job: UploadJob
    /// The request before any interceptor has adapted it.
    private let request: UploadRequest
    private let start: ContinuousClock.Instant
    let log: UploadLog
    private let events: UploadEventQueue?
    private let progress: ProgressReporter?
    private let acceptedStatuses: Set<Int>

    /// The number of attempts that were made of the same upload before.
    private let earlierAttempts: Int

    /// The body that is sent.
    var layout: FormLayout? { request.body?.layout }

    /// - Parameters:
    ///   - client: The client.
    ///   - job: What is uploaded, and where.
    ///   - key: The key of an upload that may have been tried before. By default one is made if it is needed.
    ///   - givenID: The identifier of the upload in logs and requests. Defaults to a new one.
    ///   - earlierAttempts: The number of attempts that were made of the same upload before.
    ///   - start: When the upload began.
    ///   - events: Where the events are put.
    init(
        _ client: UploadClient, _ job: UploadJob, under key: IdempotencyKey?, as givenID: String? = nil,
        earlierAttempts: Int = 0, since start: ContinuousClock.Instant, reportingTo events: UploadEventQueue?
    ) throws {
        self.client = client
        self.job = job
        self.earlierAttempts = earlierAttempts
        self.start = start
        self.events = events
        progress = events.map { ProgressReporter(to: $0, interval: client.reporting.progressInterval) }
        acceptedStatuses = job.acceptedStatuses ?? client.responses.acceptedStatuses
        // Making one costs as much as reading a small file, and few uploads need it.
        lazy var id = givenID ?? UUID().uuidString
        log = UploadLog(client.reporting.logger, id: id)
        var fields = job.headerFields
        // The user in a URL is meant for this upload alone.
        for field in client.transport.defaultHeaderFields
        where !job.headerFields.contains(field.name) && (field.name != .authorization || job.url.user() == nil) {
            fields.append(field)
        }
        let sendsKey = client.retry.isOn || client.resumption != nil || !client.interceptors.isEmpty
        if let key = key ?? (sendsKey ? IdempotencyKey() : nil) {
            key.add(to: &fields)
        }
        if let name = client.reporting.requestIDField, !fields.contains(name) { fields[name] = id }
        let layout = try Self.layout(of: job, rules: client.rules)
        if let limit = client.network.expectContinueAbove, layout.contentLength ?? .max > limit {
            fields[.expect] = "100-continue"
        }
        let body = UploadBody(
            layout, rateLimit: client.network.rateLimit,
            digests: client.responses.verification == nil ? nil : ContentDigests(of: layout.parts))
        request = try UploadRequest(
            url: job.url, method: job.method, headerFields: fields, body: body,
            maximumResponseBytes: client.responses.maximumBytes)
    }

    private static func layout(of job: UploadJob, rules: FormRules?) throws(UploadError) -> FormLayout {
        let layout: FormLayout
        let problem: FormProblem?
        do {
            switch job.content {
            case .form(let form): layout = try form.layout()
            case .layout(let given): layout = given
            }
            problem = try rules?.problems(in: layout).first
        } catch {
            throw .form(error)
        }
        if let problem { throw .brokenRule(problem) }
        return layout
    }

    /// Makes attempts until one succeeds or no other is to be made.
    func response() async throws -> UploadResponse {
        var task = UploadTask(
            UploadTask.Rules(
                url: request.url, retry: client.retry, hasInterceptors: !client.interceptors.isEmpty,
                acceptsEarlyResponses: job.acceptsEarlyResponses ?? client.responses.acceptsEarly,
                totalTimeout: client.timeouts.total, delivery: job.delivery),
            resumption: client.resumption.map { Resumption($0, resource: job.resource, save: job.saveResource) })
        do {
            return try await response(&task)
        } catch let error as CancellationError {
            if let resumption = task.resumption { await abandon(resumption) }
            throw error
        }
    }

    private func response(_ task: inout UploadTask) async throws -> UploadResponse {
        var generator = SystemRandomNumberGenerator()
        var event = UploadTask.Event.started
        while let action = task.handle(event, elapsed: .now - start, using: &generator) {
            if case .failed = event, let error = task.lastError { log.failed(error) }
            switch action {
            case .adapt(let number):
                event = .adapted(
                    try await adaptedRequest(attempt: earlierAttempts + number, after: task.lastError))
            case .send(let attempt, let acceptsEarlyResponses):
                do {
                    event = .responded(try await send(attempt, acceptsEarlyResponses, &task))
                } catch let error as UploadError {
                    event = .failed(error)
                }
            case .decide(let error, let attempt):
                event = .decided(try await decision(after: error, of: attempt))
            case .wait(let delay, let error, let nextAttempt):
                let number = earlierAttempts + nextAttempt
                log.retrying(after: delay, attempt: number)
                events?.put(.retrying(UploadRetry(after: error, nextAttempt: number, delay: delay)))
                try await ContinuousClock().sleepLong(until: .now.advanced(by: delay))
                event = .waited
            case .finish(var response):
                response.attempts += earlierAttempts
                return response
            case .fail(var error):
                error.attempts += earlierAttempts
                throw error
            }
        }
        throw CancellationError()
    }

    /// Sends the form, or what the server is missing of it.
    private func send(
        _ attempt: UploadAttempt, _ acceptsEarlyResponses: Bool, _ task: inout UploadTask
    ) async throws -> UploadResponse {
        let request = attempt.request
        let number = earlierAttempts + attempt.number
        progress?.beginAttempt(
            number, of: request.body, resumes: task.resumption?.isInProgress ?? false)
        let exchange = UploadExchange(
            client: client,
            limits: RequestTimeouts.Limits(
                idle: client.timeouts.idle, connect: client.timeouts.connect, response: client.timeouts.response,
                total: client.timeouts.total.map { ($0, start.advanced(by: $0)) }),
            attempt: number, acceptsEarlyResponses: acceptsEarlyResponses, log: log, progress: progress)
        let response: UploadResponse
        if let resumed = try await resumedResponse(to: request, by: exchange, &task) {
            response = resumed
        } else {
            response = try await exchange.response(to: request, accepting: acceptedStatuses).response
        }
        if let verification = client.responses.verification {
            try await completeDigests(of: request)
            try verification.verify(response, to: request)
        }
        return response
    }

    /// Reads a form whose response was accepted before the whole form was sent, so that it can be compared.
    private func completeDigests(of request: UploadRequest) async throws {
        guard let body = request.body, body.isReplayable, let digests = body.digests, digests.sentParts == nil else {
            return
        }
        do {
            try await client.withinTotalTimeout(of: request.url, since: start) {
                do {
                    try await body.digest()
                } catch let error as FormError {
                    throw UploadError.form(error)
                }
            }
        } catch var error as UploadError {
            error.delivery = .accepted
            throw error.adding("The server has accepted the form, which could not be compared with the response.")
        }
    }

    /// - Returns: `nil` if the upload is an ordinary one.
    private func resumedResponse(
        to request: UploadRequest, by exchange: UploadExchange, _ task: inout UploadTask
    ) async throws -> UploadResponse? {
        guard var resumption = task.resumption,
            let upload = ResumableUpload(request, resumption.policy, accepting: acceptedStatuses, by: exchange)
        else { return nil }
        defer { task.note(resumption) }
        return try await upload.response(&resumption)
    }
}

// MARK: - Interceptors

extension UploadRun {
    /// - Parameter error: The error of the attempt before.
    private func adaptedRequest(attempt: Int, after error: UploadError?) async throws -> UploadRequest {
        guard !client.interceptors.isEmpty else { return request }
        return try await client.withinTotalTimeout(
            of: request.url, since: start, after: error, earlierAttempts: earlierAttempts
        ) { [client, request] in
            var request = request
            for interceptor in client.interceptors { try await interceptor.adapt(&request, attempt: attempt) }
            return request
        }
    }

    /// The decision of the first interceptor that does not pass on.
    private func decision(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
        try await client.withinTotalTimeout(
            of: request.url, since: start, after: error, earlierAttempts: earlierAttempts
        ) { [client] in
            for interceptor in client.interceptors {
                let decision = try await interceptor.decide(after: error, of: attempt)
                if decision != .passOn { return decision }
            }
            return .passOn
        }
    }
}

// MARK: - After a cancellation

extension UploadRun {
    /// How long a server may take to delete what it has of a cancelled upload.
    private static let deletionTimeout = Duration.seconds(5)

    /// Has the server delete what it has, if the policy says so.
    private func abandon(_ resumption: Resumption) async {
        guard resumption.policy.deletesCancelledUploads, let resource = resumption.resource,
            let request = resumption.request, let offer = resumption.offer,
            let deletion = try? UploadRequest(
                url: resource, method: .delete,
                headerFields: request.resumptionFields(for: resource, offer.version), body: nil,
                maximumResponseBytes: request.maximumResponseBytes)
        else { return }
        let limits = RequestTimeouts.Limits(
            total: (Self.deletionTimeout, .now.advanced(by: Self.deletionTimeout)))
        let exchange = UploadExchange(
            client: client, limits: limits, attempt: 1, acceptsEarlyResponses: false, log: log, progress: nil)
        // A separate task, because this one is cancelled.
        await Task {
            _ = try? await exchange.response(to: deletion, accepting: Set(200..<300), isSecret: true)
        }.value
    }
}
