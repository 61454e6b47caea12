import GRDB
import HTTPTypes
import PostcardClient
import PostcardFoundation
import PostcardWire

/// The result of an ended attempt for its upload.
enum Settlement: Sendable, Equatable {
    /// The server accepted the form.
    case done(QueuedUpload.Response)
    /// The form is sent again.
    ///
    /// - Parameters:
    ///   - count: The way to count the attempt.
    ///   - mayHaveArrived: Whether the attempt may have delivered the form.
    case delay(until: Date, because: QueuedUpload.Failure, as: AttemptCount, mayHaveArrived: Bool)
    /// The upload has failed.
    case fail(because: QueuedUpload.Failure, mayHaveArrived: Bool)
    /// The upload goes back into the queue.
    case putBack
}

extension QueueMachine {
    /// An attempt that has ended or could not begin.
    struct EndedAttempt: Sendable {
        let id: AttemptID
        /// The attempt's upload, if it is known.
        var upload: QueuedUpload.ID?
        var end: AttemptEnd
        /// The beginning of the response's body.
        var body = Data()
        /// The resume data for the next attempt, if there is any.
        var resumeData: Data?
        var hasBegun = true
    }
}

extension QueueMachine.Rules {
    /// How many seconds to wait before an upload that could not begin is tried again.
    static let postponement = 60.0

    /// The longest plausible delay in seconds: a day, or longer if the policy allows it. Longer delays come from a
    /// wrong clock.
    var longestDelay: Double { max(86_400, max(retryPolicy.maximumDelay, retryPolicy.maximumRetryAfter) / .seconds(1)) }

    func schedule(for row: UploadRow) -> RetrySchedule {
        RetrySchedule(retryPolicy, for: row.upload.url, totalTimeout: totalTimeout, isQueued: true)
    }

    /// The outcome of an attempt, before the app checks the response.
    func outcome(of attempt: QueueMachine.EndedAttempt, _ row: UploadRow) -> AttemptOutcome {
        let outcome = AttemptOutcome(
            attempt.end, body: attempt.body, of: row.upload, accepting: row.acceptedStatuses ?? acceptedStatuses)
        guard case .accepted(let response) = outcome, let error = row.interception(by: response) else { return outcome }
        return .failed(error)
    }

    /// Decides the result of an attempt. Returns `nil` if nothing changes: events may arrive twice, and the upload may
    /// have been cancelled, paused or sent again in the meantime.
    ///
    /// - Parameters:
    ///   - attempt: The attempt that has ended.
    ///   - row: The current row of the attempt's upload.
    ///   - generator: The random number generator for delays.
    func settlement(
        of attempt: QueueMachine.EndedAttempt, _ row: UploadRow, at now: Date,
        using generator: inout some RandomNumberGenerator
    ) -> Settlement? {
        if case .done = row.upload.state { return nil }
        let outcome = outcome(of: attempt, row)
        // The server has the form, even if the upload was cancelled or paused in the meantime.
        if case .accepted(let response) = outcome { return .done(response) }
        guard row.attempt == attempt.id else { return nil }
        // Whether to ask the user before a form is sent again that may have arrived. An upload that can resume needs no
        // question. If an earlier attempt was unclear, the user was already asked.
        let asks = !retryPolicy.repeatsUnclear && row.resource == nil && attempt.resumeData == nil
        // The user is asked even if the upload was paused in the meantime, because resuming it would send it again
        // without a question. If the user has retried the upload or sent it to another URL, the earlier attempt does
        // not count.
        if asks, row.possibleDelivery != nil, !row.upload.state.isEnded, case .stopped(mayHaveArrived: true) = outcome {
            return .fail(because: .unclear(after: .stopped), mayHaveArrived: true)
        }
        guard row.isHeld(by: session) else { return nil }
        let settlement = settlement(after: outcome, of: attempt, row, at: now, using: &generator)
        if asks, case .delay(_, let failure, _, mayHaveArrived: true) = settlement {
            return .fail(because: .unclear(after: failure), mayHaveArrived: true)
        }
        return settlement
    }

    private func settlement(
        after outcome: AttemptOutcome, of attempt: QueueMachine.EndedAttempt, _ row: UploadRow, at now: Date,
        using generator: inout some RandomNumberGenerator
    ) -> Settlement? {
        let delivery = row.delivery(before: attempt.id.number)
        switch outcome {
        case .accepted(let response): return .done(response)
        case .failed(let error, _) where makesFields && !row.hasFreshFields && error.response?.status == .unauthorized:
            // The server refused the form, perhaps because a token expired while the upload waited for a network.
            return .delay(until: now, because: QueuedUpload.Failure(error), as: .staleFields, mayHaveArrived: false)
        case .failed(let error, _)
        where makesForms && !row.hasFreshFields
            && row.signed.map { error.isExpiration(ofFormUntil: $0.expires, at: now) } ?? false:
            return .delay(until: now, because: QueuedUpload.Failure(error), as: .staleForm, mayHaveArrived: false)
        case .failed(let error, let pause):
            let failure = RetrySchedule.Failure(error, at: now, pause: pause)
            // After a broken connection, the system repeats a request and does not report the repetition. So without a
            // response, the form may have arrived, even if the latest failure is another one. The system's count of
            // bytes does not help, because a suspended app does not receive it. A 409 may be the response to an earlier
            // request.
            let isRepeated = session != nil && attempt.hasBegun
            var history = row.history(after: isRepeated ? .responseLost(resource: nil) : delivery)
            history.add(failure)
            let saysNothing = error.response.map { $0.status == .conflict } ?? true
            let mayHaveArrived = error.delivery.mayHaveArrived || isRepeated && saysNothing
            switch schedule(for: row).next(after: failure, history, elapsed: row.elapsed(at: now), using: &generator) {
            case .retry(let delay):
                return .delay(
                    until: now.addingTimeInterval(delay / .seconds(1)), because: QueuedUpload.Failure(error),
                    as: .failure(conflicts: history.conflicts), mayHaveArrived: mayHaveArrived)
            case .fail(let error) where error.response != nil && error.outlook == nil && row.resumeData != nil:
                // After a pause, the refusal may concern only the rest of the form, because the server has lost its
                // beginning. So the next attempt sends the whole form.
                return .delay(
                    until: now, because: QueuedUpload.Failure(error), as: .nothing,
                    mayHaveArrived: mayHaveArrived || delivery.mayHaveArrived)
            case .fail(let error):
                return .fail(because: QueuedUpload.Failure(error), mayHaveArrived: mayHaveArrived)
            }
        case .interrupted(let interruption):
            return settlement(after: interruption, hasBegun: attempt.hasBegun, row, at: now)
        case .postponed(let failure):
            return .delay(
                until: now.addingTimeInterval(Self.postponement), because: failure, as: .nothing,
                mayHaveArrived: attempt.hasBegun && failure.delivery.mayHaveArrived)
        case .expired(let error): return .fail(because: QueuedUpload.Failure(error), mayHaveArrived: false)
        case .unclear(let reason):
            return .fail(
                because: QueuedUpload.Failure(.unclear, reason, delivery: .responseLost), mayHaveArrived: true)
        case .stopped: return .putBack
        }
    }

    private func settlement(
        after interruption: Interruption, hasBegun: Bool, _ row: UploadRow, at now: Date
    ) -> Settlement {
        let count = row.interruptions + 1
        // The system sends nothing of an attempt before it is due. So earlier interruptions do not count.
        let isDue = row.earliestBegin.map { $0 <= now } ?? true
        let counts = interruption.counts && hasBegun && isDue
        if counts, count >= Interruption.maximumCount {
            return .fail(because: interruption.lastFailure(after: count), mayHaveArrived: hasBegun)
        }
        return .delay(
            until: now.addingTimeInterval(interruption.delay(after: count)), because: interruption.failure,
            as: counts ? .interruption : .nothing, mayHaveArrived: hasBegun)
    }
}

/// Reads and records the attempts of `LocalSender` and `BackgroundSender`. Call each method within one transaction.
extension Database {
    /// The attempts that a sender should have.
    ///
    /// - Parameter session: The identifier of the sender's background session; `nil` for
    ///   ``UploadQueue/run(_:options:)`` in any process.
    func attempts(of session: String?) throws -> [AttemptID: QueuedUpload.ID] {
        let rows = try Row.fetchAll(
            self,
            sql: session == nil
                ? """
                SELECT id, uuid, attempts FROM upload INDEXED BY upload_sending
                WHERE state = 'sending' AND session IS ?
                """ : "SELECT id, uuid, attempts FROM upload INDEXED BY upload_session WHERE session = ?",
            arguments: [session])
        var attempts: [AttemptID: QueuedUpload.ID] = [:]
        for row in rows {
            guard let uuid = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")) else { continue }
            guard let number = try? row.count("attempts") else { continue }
            attempts[AttemptID(upload: uuid, number: max(number, 1))] = try row.decode(Int64.self, forColumn: "id")
        }
        return attempts
    }

    /// The uploads of a background session whose rows cannot be read. The session may never report their ends.
    func unreadableUploads(of session: String) throws -> [QueuedUpload.ID] {
        try QueuedUpload.ID.fetchAll(
            self, sql: "SELECT id FROM upload INDEXED BY upload_session WHERE session = ?", arguments: [session]
        ).filter { id in
            do { return try row(id) == nil } catch is RowDamage { return true }
        }
    }

    /// Records that the sending of an upload has begun. The upload was handed to the system before it was due.
    func beginTransfer(of id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'sending'
                WHERE id = ? AND session IS NOT NULL AND state IN ('waiting', 'retrying')
                """, arguments: [id])
    }

    /// Records the result of an attempt.
    func record(_ settlement: Settlement, of id: QueuedUpload.ID, at now: Date) throws {
        switch settlement {
        case .done(let response): try finishUpload(id, with: response, at: now)
        case .delay(let due, let failure, let count, let mayHaveArrived):
            try delayUpload(id, until: due, because: failure, as: count, mayHaveArrived: mayHaveArrived)
        case .fail(let failure, let mayHaveArrived):
            try failUpload(id, because: failure, mayHaveArrived: mayHaveArrived, includingPaused: true)
        case .putBack: try returnUpload(id)
        }
    }
}

extension Settlement {
    var logLevel: QueueLog.Level { if case .fail = self { .error } else { .notice } }
}

extension QueueMachine.EndedAttempt {
    /// A line for the log with the end of the attempt and the result for the upload.
    func logLine(_ settlement: Settlement, of upload: QueuedUpload.ID) -> String {
        var line = "Attempt \(id.number) of upload \(upload) ended"
        if let systemCode { line += " (\(systemCode))" }
        switch settlement {
        case .done(let response): line += " with status \(response.status.code): it is done."
        case .delay(let date, let failure, _, _):
            line += ": \(failure.code). \(failure.message) The next one is due \(date.formatted(.iso8601))."
        case .fail(let failure, _): line += ": \(failure.code). \(failure.message) It has failed."
        case .putBack: line += ": it was stopped, and waits."
        }
        return line
    }

    private var systemCode: String? {
        switch end {
        case .failed(let error), .known(.failed(let error, _)): error.systemCode
        case .response, .interrupted, .unavailable, .known: nil
        }
    }
}

/// Finds failures among responses whose statuses mean success.
extension UploadRow {
    /// Returns an error if the response is not the server's. If the form asked for JSON, a web page comes from a proxy
    /// or is the sign-in page of the network.
    func interception(by response: QueuedUpload.Response) -> UploadError? {
        let type = response.contentType?.lowercased() ?? ""
        guard headerFields[.accept]?.lowercased().contains("json") == true,
            type.hasPrefix("text/html") || type.hasPrefix("application/xhtml+xml")
        else { return nil }
        return UploadError(
            .intercepted,
            "A page came in place of the JSON that \(upload.url.origin) was asked for. It may be the sign-in page of the "
                + "network, or a proxy's.", .passesElsewhere, response: UploadResponse(response),
            delivery: .responseLost)
    }
}

extension UploadError {
    /// The error of an upload whose response the app rejects.
    static func rejected(
        _ response: QueuedUpload.Response, to upload: QueuedUpload, because error: any Error
    ) -> UploadError {
        let mayPass = (error as? ResponseRejection)?.mayPass ?? false
        return UploadError(
            .rejected,
            "The app did not accept the response of \(upload.url.origin) (\(response.status.code)): \(error)",
            mayPass ? .passes : .lasts, response: UploadResponse(response), delivery: .responseLost,
            underlyingError: error)
    }
}

extension UploadResponse {
    init(_ response: QueuedUpload.Response) {
        self.init(
            status: response.status, headerFields: response.headerFields, body: response.body)
    }
}
