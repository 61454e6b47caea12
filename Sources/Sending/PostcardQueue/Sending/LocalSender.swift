import HTTPTypes
import PostcardClient
import PostcardForm
import PostcardFoundation
import Synchronization

/// Sends a queue's uploads in this process. After each change, a ``QueueMachine`` decides which attempts to start and
/// stop.
final class LocalSender: Sendable {
    private let store: QueueStore
    private let client: UploadClient
    private let options: QueueOptions
    private let time: QueueTime
    private let state = Mutex(State())

    private struct State {
        /// The attempts in progress.
        var tasks: [AttemptID: Task<Void, Never>] = [:]
        /// The number of bytes that each attempt in progress has sent.
        var bytesSent: [AttemptID: Int64] = [:]
        var events: [AttemptEvent] = []
        /// The first error of the queue's database or files in an attempt. It ends the run.
        var failure: UploadQueueError?
    }

    init(_ store: QueueStore, _ client: UploadClient, _ options: QueueOptions, _ time: QueueTime) {
        self.store = store
        self.options = options
        self.time = time
        var client = client
        // Delays must outlive the process, so the queue stores them, and the client does not retry.
        client.retryPolicy = options.retryPolicy
        client.retryPolicy.maximumAttempts = 1
        client.resumption = options.resumption
        // A stopped upload often continues later, so the client must not delete its bytes. The sender deletes those of
        // cancelled uploads.
        client.resumption?.deletesCancelledUploads = false
        self.client = client
    }

    private var rules: QueueMachine.Rules {
        QueueMachine.Rules(
            retryPolicy: options.retryPolicy, totalTimeout: client.timeouts.total,
            maximumConcurrentUploads: options.maximumConcurrentUploads,
            endsWhenEmpty: options.endsWhenEmpty, pollInterval: options.pollInterval)
    }

    func run() async throws {
        try store.sweep(at: time.date())
        var run = QueueRun(rules, store, time, self)
        let result: Result<Void, any Error>
        do {
            result = .success(try await send(&run))
        } catch {
            result = .failure(error)
        }
        let tasks = state.withLock { Array($0.tasks.values) }
        for task in tasks { task.cancel() }
        for task in tasks { await task.value }
        // If recording the stopped uploads fails, the next run puts them back into the queue.
        _ = try? await run.play(.closed(takeEvents()))
        try result.get()
    }

    /// Runs rounds of the machine until no upload is left to send.
    private func send(_ run: inout QueueRun<LocalSender>) async throws {
        try await withThrowingDiscardingTaskGroup { group in
            defer { group.cancelAll() }
            group.addTask { [store] in
                for await _ in NetworkMonitor.shared.changes() { store.notifyChange() }
            }
            await NetworkMonitor.shared.untilKnown()
            var alarm: ContinuousClock.Instant?
            for await _ in store.changes.stream() {
                if let failure = state.withLock({ $0.failure }) { throw failure }
                guard case .rest(let due) = try await run.play(.woken(.init(events: takeEvents(), hasChanges: true)))
                else { return }
                // Progress is only for display, so a failure to save it does not matter.
                try? store.saveProgress()
                let now = time.instant()
                let next = due.map { now + .seconds(max(0, $0.timeIntervalSince(time.date()))) }
                if let next, alarm.map({ $0 <= now || next < $0 }) ?? true {
                    alarm = next
                    group.addTask { [changes = store.changes, time] in
                        // The group must not end with the error of a cancelled sleep.
                        try? await time.sleep(next)
                        changes.notify()
                    }
                }
            }
            try Task.checkCancellation()
        }
    }
}

extension LocalSender: AttemptCarrier {
    /// Puts back into the queue the uploads that an earlier process was sending when the process ended.
    func connect() throws {
        try store.database.write { try $0.recoverUploads(failingUnclear: options.retryPolicy.unclearFailure) }
    }

    func attempts() -> [AttemptID: Bool] { state.withLock { $0.tasks.mapValues { _ in false } } }

    func takeEvents() -> [AttemptEvent] {
        state.withLock { state in
            defer { state.events = [] }
            return state.events
        }
    }

    func claim(_ claim: QueueMachine.Claim) throws -> (rows: [UploadRow], nextDue: Date?) {
        var rows: [UploadRow] = []
        while rows.count < claim.count {
            let masks = NetworkPath.allowedMasks(on: options.networkPath())
            let row = try store.database.writeWithoutSync {
                try $0.claimUpload(allowedBy: masks, excluding: claim.excluded, at: time.date())
            }
            guard let row else { break }
            rows.append(row)
        }
        if rows.isEmpty {
            // A run that ends when the queue is empty does not wait for uploads that are due later.
            let ofRetries = options.endsWhenEmpty
            if ofRetries, !options.awaitsRetries { return ([], nil) }
            return ([], try store.database.read { try $0.isQueuePaused ? nil : $0.nextDue(ofRetries: ofRetries) })
        }
        try store.database.write { db in
            for row in rows { try db.noteAttempt(of: row.upload.id) }
        }
        return (rows, nil)
    }

    func begin(_ row: UploadRow) -> QueueMachine.Refusal? {
        state.withLock { state in
            // The task cannot end before this assignment, because it also needs the lock.
            state.tasks[row.attempt] = Task {
                let outcome = await outcome(of: row)
                self.state.withLock { state in
                    state.tasks[row.attempt] = nil
                    state.bytesSent[row.attempt] = nil
                    state.events.append(.ended(row.attempt, .known(outcome)))
                }
                store.changes.notify()
            }
        }
        return nil
    }

    func cancel(_ attempts: Set<AttemptID>, pausing: Set<AttemptID>) -> [AttemptID: Data] {
        let tasks = state.withLock { state in attempts.compactMap { state.tasks[$0] } }
        for task in tasks { task.cancel() }
        // There is no resume data. A later attempt uses the upload resource, which was saved earlier.
        return [:]
    }

    // The app has already checked the response during the attempt, so the run must not check it again.
    var judges: Bool { false }

    func rejection(of response: QueuedUpload.Response, to upload: QueuedUpload) -> UploadError? { nil }

    func callHandlers() {}

    func notifyChange() { store.updates.notify() }
}

// MARK: - One attempt

extension LocalSender {
    private func outcome(of row: UploadRow) async -> AttemptOutcome {
        do {
            let response = QueuedUpload.Response(try await response(to: row))
            if let error = row.interception(by: response) { return .failed(error) }
            do {
                try await options.accepts?(row.upload, response)
            } catch {
                return Task.isCancelled
                    ? .stopped(mayHaveArrived: true) : .failed(.rejected(response, to: row.upload, because: error))
            }
            return .accepted(response)
        } catch is CancellationError {
            return Task.isCancelled
                ? stopped(row)
                : .postponed(
                    QueuedUpload.Failure(
                        .postponed, "The attempt was cancelled, and not by the queue.", delivery: .responseLost))
        } catch let error as RefreshError {
            return .postponed(QueuedUpload.Failure(error.failure))
        } catch let error as InterceptorError {
            // A cancelled interceptor may throw any error, so the cancellation is checked first.
            if Task.isCancelled { return stopped(row) }
            return .failed(
                .interceptorFailed(for: row.upload.url, after: error.failure, underlyingError: error.cause))
        } catch let error as UploadQueueError {
            state.withLock { $0.failure = $0.failure ?? error }
            return stopped(row)
        } catch {
            return AttemptOutcome(error) { Task.isCancelled ? stopped(row) : .unclear("\($0)") }
        }
    }

    private func stopped(_ row: UploadRow) -> AttemptOutcome {
        let bytesSent = state.withLock { $0.bytesSent[row.attempt] } ?? 0
        return .stopped(mayHaveArrived: bytesSent >= row.upload.totalBytes)
    }

    private func note(_ bytesSent: Int64, of row: UploadRow) {
        state.withLock { $0.bytesSent[row.attempt] = bytesSent }
        store.progress.note(row.upload.id, bytesSent: bytesSent)
        store.updates.notifyProgress()
    }

    private func response(to row: UploadRow) async throws -> UploadResponse {
        let upload = row.upload
        let database = store.database
        var client = client
        client.network.allowed = upload.conditions.networks
        if let statuses = row.acceptedStatuses { client.responses.acceptedStatuses = statuses }
        if let signed = row.signed { return try await response(to: row, signed, client) }
        if let headerFields = options.headerFields {
            client.interceptors.append(SessionFields(upload: upload, headerFields: headerFields))
        }
        let resource = Mutex(row.resource)
        do {
            return try await client.upload(
                try row.layout(in: store.directory), to: upload.url, method: upload.method,
                headerFields: row.headerFields, resuming: row.resource,
                savingResource: { latest in
                    resource.withLock { $0 = latest }
                    try database.writeWithoutSync { try $0.noteResource(latest, of: upload.id) }
                }, after: row.delivery(before: upload.attempts), elapsed: row.elapsed(at: time.date())
            ) { [self] progress in note(progress.bytesSent, of: row) }
        } catch {
            // A cancelled upload starts over if it is retried, so the server's bytes are useless. A cancelled
            // interceptor may throw any error, so the cancellation is checked first.
            if Task.isCancelled, let resource = resource.withLock(\.self), try store.hasCancelled(upload.id) {
                await client.delete(resource, of: upload.url, headerFields: row.headerFields)
            }
            throw error
        }
    }
}

// MARK: - Presigned forms

extension LocalSender {
    /// Sends a presigned form, or a new form if it has expired.
    private func response(
        to row: UploadRow, _ signed: SignedAddress, _ client: UploadClient
    ) async throws -> UploadResponse {
        let layout = try row.layout(in: store.directory)
        let refusal: UploadError
        if let expires = signed.expires, time.date() >= expires {
            refusal = .formExpired(signed.url, at: expires)
        } else {
            do {
                return try await send(layout, signed.url, row.upload.method, row.headerFields, of: row, client)
            } catch let error as UploadError where error.isExpiration(ofFormUntil: signed.expires, at: time.date()) {
                refusal = error
                state.withLock { $0.bytesSent[row.attempt] = nil }
                store.progress.restart(row.upload.id)
                store.updates.notifyProgress()
            }
        }
        guard let refresh = options.presignedForm else { throw refusal }
        let fresh: PresignedForm
        do {
            fresh = try await refresh(row.upload)
        } catch {
            try Task.checkCancellation()
            throw RefreshError(failure: refusal.adding("There is no new form yet: \(error)"))
        }
        let replaced = try await fresh.layout(replacing: layout, texts: signed.texts)
        return try await send(replaced, fresh.url, fresh.method, fresh.requestFields, of: row, client)
    }

    private func send(
        _ layout: FormLayout, _ url: URL, _ method: HTTPRequest.Method, _ headerFields: HTTPFields,
        of row: UploadRow, _ client: UploadClient
    ) async throws -> UploadResponse {
        let upload = row.upload
        let total = layout.contentLength
        return try await client.upload(
            toObjectStore: layout, url, method: method, headerFields: headerFields,
            after: row.delivery(before: upload.attempts), elapsed: row.elapsed(at: time.date())
        ) { [self] progress in
            // The new form may be slightly longer or shorter than the form in the queue.
            note(progress.bytesSent == total ? upload.totalBytes : min(progress.bytesSent, upload.totalBytes), of: row)
        }
    }
}

/// Adds the header fields from ``QueueOptions/headerFields``. After a 401, adds new ones and sends the form once more.
private struct SessionFields: UploadInterceptor {
    let upload: QueuedUpload
    let headerFields: @Sendable (QueuedUpload) async throws -> HTTPFields

    func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
        let added = try await headerFields(upload)
        for name in Set(added.map(\.name)) { request.headerFields[fields: name] = added[fields: name] }
    }

    func decide(after failure: UploadError, of attempt: UploadAttempt) -> UploadDecision {
        // After two refusals in a row, new header fields do not help.
        guard failure.response?.status.code == 401, attempt.earlierErrors.last?.response?.status.code != 401 else {
            return .passOn
        }
        return .retry(after: .zero)
    }
}

/// An error of the app's closure ``QueueOptions/presignedForm``. The upload is sent later.
private struct RefreshError: Error {
    let failure: UploadError
}
