import GRDB
import HTTPTypes
import PostcardClient
import PostcardFoundation

/// What is recorded of an attempt that has ended.
enum Settlement: Sendable, Equatable {
    /// The server accepted the form.
    case done(QueuedUpload.Response)
    /// The form is sent again.
    ///
    /// - Parameters:
    ///   - count: What the attempt counts as.
    ///   - mayHaveArrived: Whether the attempt may have delivered the form.
    case delay(until: Date, because: QueuedUpload.Failure, as: AttemptCount, mayHaveArrived: Bool)
    /// The upload has failed.
    case fail(because: QueuedUpload.Failure, mayHaveArrived: Bool)
    /// The upload goes back into the queue.
    case putBack
}

extension QueueMachine {
    /// An attempt that has ended, or that could not begin.
    struct EndedAttempt: Sendable {
        let id: AttemptID
        /// The attempt's upload, if it is known.
        var upload: QueuedUpload.ID?
        let end: AttemptEnd
        /// The beginning of the response's body.
        var body = Data()
        /// What the next attempt can resume with, if there is something.
        var resumeData: Data?
        var hasBegun = true
    }
}

extension QueueMachine.Rules {
    /// How long to wait before an upload that could not be handed over is tried again, in seconds.
    static let postponement = 60.0

    /// What is further away than this was dated by a wrong clock, in seconds: a day, or longer if the policy allows longer
    /// delays.
    var longestDelay: Double { max(86_400, max(retryPolicy.maximumDelay, retryPolicy.maximumRetryAfter) / .seconds(1)) }

    func schedule(for row: UploadRow) -> RetrySchedule {
        RetrySchedule(retryPolicy, for: row.upload.url, totalTimeout: totalTimeout)
    }

    /// Decides what is recorded of an attempt, or returns `nil` if nothing changes: events may arrive twice, and the
    /// upload may have been cancelled, paused or sent again since.
    ///
    /// - Parameters:
    ///   - attempt: The attempt.
    ///   - row: Its upload, as it is now.
    ///   - generator: The source of chance for delays.
    func settlement(
        of attempt: QueueMachine.EndedAttempt, _ row: UploadRow, at now: Date,
        using generator: inout some RandomNumberGenerator
    ) -> Settlement? {
        if case .done = row.upload.state { return nil }
        let delivery = row.delivery(before: attempt.id.number)
        let outcome = AttemptOutcome(attempt.end, body: attempt.body, of: row.upload)
        // Even if the upload was cancelled or paused since, the server has it.
        if case .accepted(let response) = outcome { return .done(response) }
        guard row.attempt == attempt.id, row.isHeld(by: session) else { return nil }
        switch outcome {
        case .accepted(let response): return .done(response)
        case .failed(let error, _) where makesFields && !row.hasFreshFields && error.response?.status == .unauthorized:
            // A token may have become too old while the upload waited for a network. The form was refused.
            return .delay(until: now, because: QueuedUpload.Failure(error), as: .staleFields, mayHaveArrived: false)
        case .failed(let error, _)
        where makesForms && !row.hasFreshFields
            && row.signed.map { error.isExpiration(ofFormUntil: $0.expires, at: now) } ?? false:
            return .delay(until: now, because: QueuedUpload.Failure(error), as: .staleForm, mayHaveArrived: false)
        case .failed(let error, let pause):
            let failure = RetrySchedule.Failure(error, at: now, pause: pause)
            // The system repeats a request whose connection broke and does not report it: without a response, the form
            // may have arrived, even if the last failure was another one. A 409 may be about an earlier request.
            let isRepeated = session != nil && attempt.hasBegun
            var history = row.history(after: isRepeated ? .responseLost(resource: nil) : delivery)
            history.add(failure)
            let saysNothing = error.response.map { $0.status == .conflict } ?? true
            let mayHaveArrived = error.mayHaveArrived || isRepeated && saysNothing
            switch schedule(for: row).next(after: failure, history, elapsed: row.elapsed(at: now), using: &generator) {
            case .retry(let delay):
                return .delay(
                    until: now.addingTimeInterval(delay / .seconds(1)), because: QueuedUpload.Failure(error),
                    as: .failure(conflicts: history.conflicts), mayHaveArrived: mayHaveArrived)
            case .fail(let error) where error.response != nil && row.resumeData != nil:
                // What a server refuses after a pause may be the rest of a form that it has forgotten, and not the
                // form. The next attempt sends the whole form.
                return .delay(
                    until: now, because: QueuedUpload.Failure(error), as: .nothing, mayHaveArrived: mayHaveArrived)
            case .fail(let error):
                return .fail(because: QueuedUpload.Failure(error), mayHaveArrived: mayHaveArrived)
            }
        case .interrupted(let interruption):
            let count = row.interruptions + 1
            // One that still waited in the system for its time was not sent, and costs no time to interrupt again.
            let isDue = row.earliestBegin.map { $0 <= now } ?? true
            let counts = interruption.counts && attempt.hasBegun && isDue
            if counts, count >= Interruption.maximumCount {
                return .fail(because: interruption.lastFailure(after: count), mayHaveArrived: attempt.hasBegun)
            }
            return .delay(
                until: now.addingTimeInterval(interruption.delay(after: count)), because: interruption.failure,
                as: counts ? .interruption : .nothing, mayHaveArrived: attempt.hasBegun)
        case .postponed(let failure):
            return .delay(
                until: now.addingTimeInterval(Self.postponement), because: failure, as: .nothing,
                mayHaveArrived: attempt.hasBegun && failure.mayHaveArrived)
        case .expired(let error): return .fail(because: QueuedUpload.Failure(error), mayHaveArrived: false)
        case .unclear(let reason):
            return .fail(
                because: QueuedUpload.Failure(.unclear, reason, mayHaveArrived: true), mayHaveArrived: true)
        case .stopped: return .putBack
        }
    }
}

/// Attempts in the database, for both senders. Each is called within one transaction.
extension Database {
    /// The attempts that a sender should have.
    ///
    /// - Parameter session: The identifier of its background session, or `nil` for
    ///   ``UploadQueue/run(_:options:)``, in this process or another.
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
            let number = try? row.count("attempts")
            guard let number else { continue }
            attempts[AttemptID(upload: uuid, number: max(number, 1))] = try row.decode(Int64.self, forColumn: "id")
        }
        return attempts
    }

    /// The uploads of a background session that cannot be read. No event of the session may end them.
    func unreadableUploads(of session: String) throws -> [QueuedUpload.ID] {
        try QueuedUpload.ID.fetchAll(
            self, sql: "SELECT id FROM upload INDEXED BY upload_session WHERE session = ?", arguments: [session]
        ).filter { id in
            do { return try row(id) == nil } catch is RowDamage { return true }
        }
    }

    /// Marks an upload that was handed over before its time as being sent.
    func beginTransfer(of id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'sending'
                WHERE id = ? AND session IS NOT NULL AND state IN ('waiting', 'retrying')
                """, arguments: [id])
    }

    /// Records what became of an attempt.
    func record(_ settlement: Settlement, of id: QueuedUpload.ID, at now: Date) throws {
        switch settlement {
        case .done(let response): try finishUpload(id, with: response, at: now)
        case .delay(let due, let failure, let count, let mayHaveArrived):
            try delayUpload(id, until: due, because: failure, as: count, mayHaveArrived: mayHaveArrived)
        case .fail(let failure, let mayHaveArrived):
            try failUpload(id, because: failure, mayHaveArrived: mayHaveArrived)
        case .putBack: try returnUpload(id)
        }
    }
}
