import HTTPTypes
import PostcardForm
import PostcardFoundation
import PostcardWire
import Synchronization

/// Sends the requests of one attempt, with timeouts, progress reports and redirects.
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
    ///   - acceptedStatuses: The statuses of success; all other statuses are redirects or refusals.
    ///   - isSecret: Whether the path of the URL gives access to the upload, and must not be logged.
    /// - Returns: The response, and the URL that responded.
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
                // A 303 does not send the form again, so it counts as a success.
                let isSuccess = acceptedStatuses.contains(response.status.code) || response.status.code == 303
                if isSuccess, response.isEarly, !acceptsEarly, !response.completesUpload(of: request) {
                    throw UploadError.earlyResponse(response, by: request.url, of: request.body?.contentLength)
                }
                bytesSent = max(bytesSent, response.bytesSent)
                response.bytesSent = bytesSent
                if acceptedStatuses.contains(response.status.code) { return (response, request.url) }
                try redirects.follow(response)
            } catch var error as UploadError {
                // After a 303 the server has the form, even if the next request fails.
                if redirects.isAccepted { error.delivery = .accepted }
                error.hasLeftOrigin = redirects.hasLeftOrigin
                throw error
            }
        }
    }
}

// MARK: - One request

extension UploadResponse {
    /// Whether the response says that the upload is complete, so that the server needs no more of the form
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
            // A server cannot accept a body whose end was not sent.
            if error.delivery == .responseLost, monitor.isCutShort { error.delivery = .neverArrived }
            error.announcement = monitor.announcement
            throw error
        }
        response.announcement = monitor.announcement
        response.bytesSent = monitor.bytesSent
        response.isEarly = monitor.isCutShort
        return response
    }

    /// Sends a request with the transport, and cancels it when it times out.
    private func transmit(
        _ request: UploadRequest, watchedBy monitor: RequestMonitor
    ) async throws -> UploadResponse {
        // Without this check, the separate task would start although this task was already cancelled.
        try Task.checkCancellation()
        var request = request
        request.networks = client.network.allowed
        // The timer can cancel this separate task, which ends before this call returns.
        let task = Self.start { [transport = client.transport, request] in
            let response = try await transport.send(request) { monitor.note($0) }
            guard response.status == .expectationFailed, request.headerFields[.expect] != nil,
                request.body?.isReplayable ?? true
            else { return response }
            // The server does not support the expectation, so the request omits it (RFC 9110 §10.1.1 and §15.5.18).
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
                // The clock cancels the task, because the timer must not run the task's cancellation handlers itself.
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

    /// Starts a task on the current thread. A switch of threads takes a twentieth of the time to send a small form.
    /// If the caller is on an actor, the task starts on another thread, so that reading a file does not block the
    /// actor.
    private static func start<Value: Sendable>(
        isolation: isolated (any Actor)? = #isolation, _ work: @escaping @concurrent @Sendable () async throws -> Value
    ) -> Task<Value, any Error> {
        guard isolation == nil, #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) else {
            return Task(operation: work)
        }
        return Task.immediate(operation: work)
    }
}

/// The events that a transport has reported about one request.
private final class RequestMonitor: Sendable {
    private let request: UploadRequest
    private let progress: ProgressReporter?
    private let clock: any UploadClock
    private let state: Mutex<State>

    private struct State {
        var timeouts: RequestTimeouts
        /// The error of a request that was cancelled because it timed out, or because the form exceeds the server's
        /// limit; `nil` otherwise.
        var expired: UploadError?
        /// The server's announcement about resuming the upload, from interim responses.
        var announcement: ResumptionAnnouncement?
        /// Whether the request has ended. Later events of the transport, such as for a chunk in flight, are ignored.
        var isOver = false
        /// A closure that cancels the request.
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

    /// Whether some of the body was not sent; `false` if the transport does not report sent bytes.
    var isCutShort: Bool {
        guard let body = request.body, body.contentLength != 0 else { return false }
        return state.withLock { $0.timeouts.bytesSent != nil && !$0.timeouts.hasSentAll }
    }

    var expired: UploadError? { state.withLock { $0.expired } }

    var announcement: ResumptionAnnouncement? { state.withLock { $0.announcement } }

    func note(_ event: TransportEvent) {
        if case .informed(let status, let fields) = event { note(status, fields.streamSafe) }
        // A request without a body was sent as a whole once the connection is made.
        let body = request.body
        let length: Int64? = if let body { body.knownLength } else { 0 }
        state.withLock { state in
            let now = clock.instant
            guard !state.isOver, state.timeouts.note(event, bodyLength: length, at: now) else { return }
            // The lock is held while reporting, so that nothing is reported after ``end()``.
            switch event {
            case .waitingForNetwork: progress?.waitForNetwork()
            case .sent(let bytes): if let body { progress?.advance(to: bytes, of: body, at: now) }
            case .informed, .received: break
            }
        }
    }

    /// Records an interim response. If the form exceeds the limit in the response, the request is stopped
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

    /// Sets the closure that cancels the request.
    ///
    /// - Parameter stop: Cancels the request. It is called at once if the request was already stopped.
    func onStop(_ stop: @escaping @Sendable () -> Void) {
        let isStopped = state.withLock { state in
            state.stop = stop
            return state.isOver
        }
        if isStopped { stop() }
    }

    /// Checks whether the request has timed out, and reports progress that is due.
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

    /// Ends the request. Nothing is reported after this method has returned.
    func end() {
        state.withLock { state in
            state.isOver = true
            progress?.endRequest(at: clock.instant)
        }
    }
}
