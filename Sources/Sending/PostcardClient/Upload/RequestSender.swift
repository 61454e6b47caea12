import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire
import Synchronization

/// Sends the requests of one attempt: applies timeouts, reports progress, and follows redirects.
struct RequestSender: Sendable {
    let client: UploadClient
    let limits: RequestTimeouts.Limits
    let attempt: Int
    let acceptsEarly: Bool
    let log: UploadLog
    let progress: ProgressReporter?

    /// Sends a request and follows its redirects.
    ///
    /// - Parameters:
    ///   - request: The request.
    ///   - acceptedStatuses: The statuses of success; all others are redirects or refusals.
    ///   - isSecret: Whether the path of the URL must not be logged, because knowing it gives access to the upload.
    /// - Returns: The response, and the URL that it came from.
    func response(
        to request: UploadRequest, accepting acceptedStatuses: Set<Int>, isSecret: Bool = false
    ) async throws -> (response: UploadResponse, url: URL) {
        var redirects = RedirectFollower(request, policy: client.redirects)
        var bytesSent: Int64 = 0
        while true {
            let request = redirects.request
            log.sending(request, attempt: attempt, isSecret: isSecret)
            do {
                var response = try await send(request)
                response.decoder = client.responses.decoder
                log.responded(response)
                // A 303 does not send the form again: it says as much as a success.
                let isSuccess = acceptedStatuses.contains(response.status.code) || response.status.code == 303
                if isSuccess, response.isEarly, !acceptsEarly, !response.completesUpload(of: request) {
                    throw UploadError.earlyResponse(response, by: request.url, of: request.body?.contentLength)
                }
                bytesSent = max(bytesSent, response.bytesSent)
                response.bytesSent = bytesSent
                if acceptedStatuses.contains(response.status.code) { return (response, request.url) }
                try redirects.follow(response)
            } catch var error as UploadError {
                // After a 303 the server has the form, even if the page that it points to fails.
                if redirects.isAccepted { error.delivery = .accepted }
                error.hasLeftOrigin = redirects.hasLeftOrigin
                throw error
            }
        }
    }
}

// MARK: - One request

extension UploadResponse {
    /// Whether the server says of itself that this is the response of the whole upload, before it had all of the form
    /// (draft-ietf-httpbis-resumable-upload, "Completeness").
    fileprivate func completesUpload(of request: UploadRequest) -> Bool {
        guard let version = ResumptionVersion(of: request.headerFields),
            request.headerFields.uploadCompleteness(in: version) != nil
        else { return false }
        return headerFields.uploadCompleteness(in: version) == true
    }
}

extension RequestSender {
    /// Sends a request without following redirects, as a span of the caller's trace.
    private func send(_ request: UploadRequest) async throws -> UploadResponse {
        var request = request
        let span = RequestSpan(of: &request)
        do {
            let response = try await sendMonitored(request)
            span.end(response)
            return response
        } catch {
            span.end(error)
            throw error
        }
    }

    private func sendMonitored(_ request: UploadRequest) async throws -> UploadResponse {
        let monitor = RequestMonitor(request, limits: limits, progress: progress, by: client.time.clock)
        var response: UploadResponse
        do {
            response = try await transmit(request, watchedBy: monitor)
            if response.status == .uploadResumptionSupported {
                monitor.note(.informed(status: response.status, headerFields: response.headerFields))
                throw UploadError.endedByInterimResponse(response, by: request.url)
            }
        } catch {
            try Task.checkCancellation()
            if let error = error as? FormError { throw UploadError.form(error) }
            guard var error = error as? UploadError else { throw error }
            // A body that was not sent to its end is not a form to any server.
            if error.delivery == .responseLost, monitor.isCutShort { error.delivery = .neverArrived }
            error.announcement = monitor.announcement
            throw error
        }
        response.announcement = monitor.announcement
        response.bytesSent = monitor.bytesSent
        response.isEarly = monitor.isCutShort
        return response
    }

    /// Has the transport send a request, and cancels it when its time has run out.
    private func transmit(
        _ request: UploadRequest, watchedBy monitor: RequestMonitor
    ) async throws -> UploadResponse {
        // The separate task would begin to send before it learns of an earlier cancellation.
        try Task.checkCancellation()
        var request = request
        request.networks = client.network.allowed
        // A separate task, which the timer can cancel. It does not outlive this call.
        let task = Self.start { [transport = client.transport, request] in
            let response = try await transport.send(request) { monitor.note($0) }
            guard response.status == .expectationFailed, request.headerFields[.expect] != nil,
                request.body?.isReplayable ?? true
            else { return response }
            // The server cannot meet the expectation (RFC 9110 §10.1.1 and §15.5.18): the request is sent without it.
            var plainRequest = request
            plainRequest.headerFields[.expect] = nil
            return try await transport.send(plainRequest) { monitor.note($0) }
        }
        let time = client.time
        let callback: SharedTimer.Callback = { now in
            switch monitor.check(at: now) {
            case .checkAgain(let time):
                return time
            case .expired:
                // By the clock, because it calls the cancellation handlers of transports and streams.
                time.clock.cancel { task.cancel() }
                return nil
            }
        }
        let timer = callback(time.clock.instant).map { time.timer.add(at: $0, callback) }
        defer {
            if let timer { time.timer.remove(timer) }
            monitor.end()
        }
        monitor.onStop { task.cancel() }
        do {
            return try await withTaskCancellationHandler {
                try await task.value
            } onCancel: {
                task.cancel()
            }
        } catch {
            throw monitor.expired ?? error
        }
    }

    /// Starts a task: at once on the present thread, because a switch of threads takes a twentieth of the time of a
    /// small form. On an actor it starts elsewhere, so that the actor is not blocked while a file is read.
    private static func start<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ work: @escaping @concurrent @Sendable () async throws -> Value
    ) -> Task<Value, any Error> {
        guard isolation == nil, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
            return Task(operation: work)
        }
        return Task.immediate(operation: work)
    }
}

/// What a transport has reported about one request.
private final class RequestMonitor: Sendable {
    private let request: UploadRequest
    private let progress: ProgressReporter?
    private let clock: any UploadClock
    private let state: Mutex<State>

    private struct State {
        var timeouts: RequestTimeouts
        /// Why the request was cancelled, if its time has run out or it was stopped.
        var expired: UploadError?
        /// What interim responses have said about resumption.
        var announcement: ResumptionAnnouncement?
        /// Whether the request is over. What a transport reports then, such as a chunk in flight, is too late.
        var isOver = false
        /// Cancels the request.
        var stop: (@Sendable () -> Void)?
    }

    init(
        _ request: UploadRequest, limits: RequestTimeouts.Limits, progress: ProgressReporter?,
        by clock: any UploadClock
    ) {
        self.request = request
        self.progress = progress
        self.clock = clock
        state = Mutex(
            State(
                timeouts: RequestTimeouts(request.url, hasBody: request.body != nil, limits: limits, at: clock.instant))
        )
    }

    var bytesSent: Int64 { state.withLock { $0.timeouts.bytesSent ?? 0 } }

    /// Whether some of the body was never sent. Unknown, and `false`, for a transport that reports nothing.
    var isCutShort: Bool {
        guard let body = request.body, body.contentLength != 0 else { return false }
        return state.withLock { $0.timeouts.bytesSent != nil && !$0.timeouts.hasSentAll }
    }

    var expired: UploadError? { state.withLock { $0.expired } }

    var announcement: ResumptionAnnouncement? { state.withLock { $0.announcement } }

    func note(_ event: TransportEvent) {
        if case .informed(let status, let fields) = event { note(status, fields.streamSafe) }
        // Of a request without a body, everything is sent once the connection is made.
        let body = request.body
        let length: Int64? = if let body { body.knownLength } else { 0 }
        state.withLock { state in
            let now = clock.instant
            guard !state.isOver, state.timeouts.note(event, bodyLength: length, at: now) else { return }
            // Under the lock, so that nothing is reported after ``end()``.
            switch event {
            case .waitingForNetwork: progress?.waitForNetwork()
            case .sent(let bytes): if let body { progress?.advance(to: bytes, of: body, at: now) }
            case .informed, .received: break
            }
        }
    }

    /// Records an interim response. If the form is larger than it says that an upload may be, the request stops
    /// (draft-ietf-httpbis-resumable-upload, "Upload Creation").
    private func note(_ status: HTTPResponse.Status, _ fields: HTTPFields) {
        guard let said = ResumptionAnnouncement(status, fields, by: request.url, to: request.headerFields)
        else { return }
        let stop: (@Sendable () -> Void)? = state.withLock { state in
            state.announcement?.add(said)
            state.announcement = state.announcement ?? said
            guard !state.isOver, let length = request.uploadBytes, length > said.limits?.maximumBytes ?? .max
            else { return nil }
            let response = UploadResponse(status: status, headerFields: fields, body: Data())
            state.expired = .unacceptableLimits(response, by: request.url, of: length)
            state.isOver = true
            return state.stop
        }
        stop?()
    }

    /// - Parameter stop: Cancels the request. It is called at once if the request was stopped already.
    func onStop(_ stop: @escaping @Sendable () -> Void) {
        let isStopped = state.withLock { state in
            state.stop = stop
            return state.isOver
        }
        if isStopped { stop() }
    }

    /// Checks whether time has run out, and reports progress that is due.
    func check(at now: ContinuousClock.Instant) -> RequestTimeouts.Verdict {
        state.withLock { state in
            guard !state.isOver else { return .checkAgain(at: nil) }
            progress?.flush(at: now)
            switch state.timeouts.check(at: now) {
            case .checkAgain(let time):
                let flush = progress.map { now.advanced(by: $0.flushInterval) }
                return .checkAgain(at: [time, flush].compactMap(\.self).min())
            case .expired(let error):
                state.expired = error
                state.isOver = true
                return .expired(error)
            }
        }
    }

    /// Ends the request: nothing is reported after this returns.
    func end() {
        state.withLock { state in
            state.isOver = true
            progress?.endRequest(at: clock.instant)
        }
    }
}
