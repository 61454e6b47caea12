import GRDB
import PostcardClient
import PostcardFoundation

/// Changes the rows of uploads that end or that are changed by hand. Each method is called within one write.
extension Database {
    /// Ends an upload that the server has accepted, even if it was cancelled or paused in the meantime.
    func finishUpload(_ id: QueuedUpload.ID, with response: QueuedUpload.Response, at now: Date) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'done', schedule = NULL, session = NULL, sent = total, code = NULL,
                    reason = NULL, advice = NULL, resource = NULL, finished = ?
                WHERE id = ? AND state <> 'done'
                """, arguments: [now.timeIntervalSince1970, id])
        guard changesCount == 1 else { return }
        // A signed address is as good as a password, so it is removed once it is not needed.
        try execute(sql: "UPDATE request SET signed = NULL WHERE id = ?", arguments: [id])
        try forgetResumption(of: id)
        try execute(sql: "UPDATE queue SET done = \(Self.increment("done"))")
        try noteEnd(of: id)
        try keep(response, of: id)
        try releaseGroup(of: id)
    }

    /// Gives the end of an upload a number, by which the app acknowledges the end.
    private func noteEnd(of id: QueuedUpload.ID) throws {
        try cachedStatement(sql: "UPDATE queue SET ends = \(Self.increment("ends"))").execute()
        try cachedStatement(
            sql: "UPDATE upload SET ended = (SELECT CAST(max(ends) AS INTEGER) FROM queue) WHERE id = ?"
        ).execute(arguments: [id])
    }

    /// Stores the latest response to an upload. If `response` is `nil`, removes the stored response.
    private func keep(_ response: QueuedUpload.Response?, of id: QueuedUpload.ID) throws {
        guard let response else { return try execute(sql: "DELETE FROM response WHERE id = ?", arguments: [id]) }
        try execute(
            sql: "INSERT OR REPLACE INTO response (id, status, headerFields, body) VALUES (?, ?, ?, ?)",
            arguments: [
                id, response.status.code, try JSONEncoder().encode(UploadRow.Field.list(response.headerFields)),
                response.body,
            ])
    }

    /// Records that an attempt begins. Until its outcome is known, it may have delivered the form.
    func noteAttempt(of id: QueuedUpload.ID) throws {
        try execute(
            sql: "INSERT OR IGNORE INTO delivery SELECT id, attempts FROM upload WHERE id = ?", arguments: [id])
    }

    /// Records that the latest attempt did not deliver the form.
    func ruleOutDelivery(of id: QueuedUpload.ID) throws {
        try execute(
            sql: "DELETE FROM delivery WHERE id = ? AND attempt = (SELECT attempts FROM upload WHERE id = delivery.id)",
            arguments: [id])
    }

    /// Delays an upload after an attempt.
    ///
    /// - Parameters:
    ///   - count: The way to count the attempt.
    ///   - mayHaveArrived: Whether the attempt may have delivered the form.
    func delayUpload(
        _ id: QueuedUpload.ID, until due: Date, because failure: QueuedUpload.Failure, as count: AttemptCount,
        mayHaveArrived: Bool
    ) throws {
        if !mayHaveArrived { try ruleOutDelivery(of: id) }
        let counts =
            switch count {
            case .failure(let conflicts):
                """
                failures = \(Self.increment("failures")), conflicts = \(conflicts), interruptions = 0, hasFreshFields = 0
                """
            case .staleFields, .staleForm: "hasFreshFields = 1, interruptions = 0"
            case .interruption: "interruptions = \(Self.increment("interruptions"))"
            case .nothing: "failures = failures"
            }
        try execute(
            sql: """
                UPDATE upload SET state = 'retrying', schedule = \(Self.place), due = max(?, coalesce(notBefore, 0)),
                    code = ?, reason = ?, advice = ?, session = NULL, \(counts)
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """,
            arguments: [due.timeIntervalSince1970, failure.code.rawValue, failure.message, failure.advice, id])
        guard changesCount == 1 else { return }
        try keep(failure.response, of: id)
        if case .staleForm = count { try endSignature(of: id, at: due) }
    }

    /// Whether any upload has an impossible time in the future, set while the clock was ahead: when it is due, when it
    /// was first attempted or when it was done.
    ///
    /// - Parameters:
    ///   - latest: The current time plus the longest plausible delay.
    ///   - session: The identifier of the sender's background session; `nil` for a sender in this process.
    func hasMisdatedUploads(at now: Date, after latest: Date, of session: String?) throws -> Bool {
        try Bool.fetchOne(
            self,
            sql: """
                SELECT EXISTS (SELECT 1 FROM upload WHERE \(Self.startsLater) OR \(Self.isDueTooLate))
                    OR EXISTS (SELECT 1 FROM upload INDEXED BY upload_done
                        WHERE state = 'done' AND ended IS NULL AND finished > :now)
                """,
            arguments: [
                "now": now.timeIntervalSince1970, "latest": latest.timeIntervalSince1970, "session": session,
            ]) ?? false
    }

    /// Replaces times in the future, set while the clock was ahead, by the current time. Otherwise the time limits of
    /// these uploads would begin late, and newer uploads that are done would be removed before older ones.
    func correctLaterTimes(to now: Date) throws {
        let arguments: StatementArguments = ["now": now.timeIntervalSince1970]
        try execute(sql: "UPDATE upload SET started = :now WHERE \(Self.startsLater)", arguments: arguments)
        try execute(
            sql: "UPDATE upload SET finished = :now WHERE state = 'done' AND finished > :now", arguments: arguments)
    }

    /// A condition for uploads whose first attempt has an impossible date in the future. A date up to `notBefore` is
    /// possible: the system may get an attempt before it is due.
    private static let startsLater = "typeof(started) = 'real' AND started > max(:now, coalesce(notBefore, 0))"

    /// A condition for uploads that are due later than both the longest delay and their own earliest time.
    private static let isDueTooLate = """
        state IN ('waiting', 'retrying') AND typeof(due) = 'real' AND due > max(:latest, coalesce(notBefore, 0))
            AND (session IS NULL OR session = :session)
        """

    /// Corrects due dates that are too late. Uploads of a background session are taken from the session, whose sender
    /// then cancels their attempts.
    func redateUploads(after latest: Date, of session: String?, to due: Date) throws {
        let ids = try QueuedUpload.ID.fetchAll(
            self, sql: "SELECT id FROM upload WHERE \(Self.isDueTooLate)",
            arguments: ["latest": latest.timeIntervalSince1970, "session": session])
        for id in ids {
            try notePausing(of: id)
            try execute(
                sql: """
                    UPDATE upload SET due = max(?, coalesce(notBefore, 0)), session = NULL, started = \(Self.begun),
                        schedule = coalesce(schedule, \(Self.place))
                    WHERE id = ?
                    """, arguments: [due.timeIntervalSince1970, id])
        }
    }

    /// Records that an object store has refused the presigned form of an upload as expired.
    private func endSignature(of id: QueuedUpload.ID, at time: Date) throws {
        guard let signed = try row(id)?.signed else { return }
        try execute(
            sql: "UPDATE request SET signed = ? WHERE id = ?",
            arguments: [try JSONEncoder().encode(signed.expired(at: time)), id])
    }

    /// The value of the column `schedule` for an upload that goes back into the queue: ``Schedule/behind`` if an
    /// earlier upload of its group has not ended, and otherwise ``Schedule/delayed``.
    static let place = """
        CASE WHEN sequence IS NOT NULL AND EXISTS (
            SELECT 1 FROM upload AS other WHERE other.sequence = upload.sequence AND other.id < upload.id
                AND other.state NOT IN ('done', 'cancelled')) THEN 2 ELSE 1 END
        """

    /// Puts an upload back into the queue after its attempt was interrupted.
    func returnUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', schedule = \(Self.place), due = coalesce(notBefore, 0),
                    session = NULL
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [id])
    }

    /// An expression that increments a count. It first limits the count to the range that `Row.count(_:)` reads,
    /// because a very negative count would never reach a limit.
    static func increment(_ column: String) -> String {
        "min(max(\(column), 0), \(Row.maximumCount - 1)) + 1"
    }

    /// Ends an upload that is not sent again.
    ///
    /// - Parameters:
    ///   - mayHaveArrived: Whether the latest attempt may have delivered the form. Defaults to `true`.
    ///   - includingPaused: Whether a paused upload fails too. Defaults to `false`.
    func failUpload(
        _ id: QueuedUpload.ID, because failure: QueuedUpload.Failure, mayHaveArrived: Bool = true,
        includingPaused: Bool = false
    ) throws {
        if !mayHaveArrived { try ruleOutDelivery(of: id) }
        try execute(
            sql: """
                UPDATE upload SET state = 'failed', schedule = NULL, session = NULL, code = ?, reason = ?, advice = ?,
                    failures = \(Self.increment("failures"))
                WHERE id = ? AND state NOT IN ('done', 'failed', 'cancelled') AND (state <> 'paused' OR ?)
                """, arguments: [failure.code.rawValue, failure.message, failure.advice, id, includingPaused])
        guard changesCount == 1 else { return }
        try noteEnd(of: id)
        try keep(failure.response, of: id)
        try forgetResumption(of: id)
    }

    /// Cancels all uploads that have not ended, including rows that cannot be read.
    func cancelAllUploads() throws {
        let open = try QueuedUpload.ID.fetchAll(
            self, sql: "SELECT id FROM upload WHERE state NOT IN ('done', 'failed', 'cancelled') ORDER BY id")
        try execute(
            sql: """
                UPDATE upload SET state = 'cancelled', schedule = NULL, session = NULL
                WHERE state NOT IN ('done', 'failed', 'cancelled')
                """)
        for id in open { try noteEnd(of: id) }
        try forgetResumptionsOfEndedUploads()
    }

    func cancelUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'cancelled', schedule = NULL, session = NULL
                WHERE id = ? AND state <> 'cancelled'
                """, arguments: [id])
        if changesCount == 1 { try noteEnd(of: id) }
        try forgetResumption(of: id)
        try releaseGroup(of: id)
    }

    func pauseUpload(_ id: QueuedUpload.ID) throws {
        try notePausing(of: id)
        try execute(
            sql: "UPDATE upload SET state = 'paused', schedule = NULL, session = NULL WHERE id = ?", arguments: [id])
    }

    /// Puts an upload back into the queue. A paused or retrying upload resumes; any other upload starts over. An upload
    /// that has expired no longer expires.
    ///
    /// - Parameter holdsBack: Whether the later uploads of its group wait for it again. Defaults to `true`.
    func retryUpload(_ id: QueuedUpload.ID, at now: Date, holdingBack holdsBack: Bool = true) throws {
        // The system may already have the next attempt, which has used the resume data of the previous one.
        try notePausing(of: id)
        try execute(
            sql: """
                DELETE FROM resumption
                WHERE id = ? AND id IN (SELECT id FROM upload WHERE state NOT IN ('retrying', 'paused'))
                """, arguments: [id])
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', session = NULL, failures = 0, conflicts = 0, interruptions = 0,
                    hasFreshFields = 0, started = NULL, expires = CASE WHEN expires > ? THEN expires END,
                    code = NULL, reason = NULL, advice = NULL, ended = NULL,
                    due = coalesce(notBefore, 0),
                    sent = CASE WHEN state IN ('retrying', 'paused') THEN sent ELSE 0 END,
                    resource = CASE WHEN state IN ('retrying', 'paused') THEN resource END,
                    schedule = \(Self.place)
                WHERE id = ?
                """, arguments: [now.timeIntervalSince1970, id])
        // The response belongs to an earlier failure.
        try keep(nil, of: id)
        if holdsBack { try holdBack(after: id) }
    }

    /// The SQL for the column `started` of an upload that is taken back from the system. It is `NULL` for a waiting
    /// upload: the system got the upload before it was due, and has not begun to send it.
    private static let begun = "CASE WHEN state = 'waiting' THEN NULL ELSE started END"

    /// Makes the later uploads of a group wait again for an upload that went back into the queue. Uploads that the
    /// system got early are taken back from it. An upload that is being sent continues.
    private func holdBack(after id: QueuedUpload.ID) throws {
        let later = "sequence = (SELECT sequence FROM upload WHERE id = ?) AND id > ?"
        let handedOver = try QueuedUpload.ID.fetchAll(
            self,
            sql: """
                SELECT id FROM upload INDEXED BY upload_session
                WHERE session IS NOT NULL AND state <> 'sending' AND \(later)
                """, arguments: [id, id])
        for id in handedOver { try notePausing(of: id) }
        try execute(
            sql: """
                UPDATE upload SET schedule = 2, session = NULL, started = \(Self.begun)
                WHERE \(later) AND (schedule IN (0, 1) OR session IS NOT NULL AND state <> 'sending')
                """, arguments: [id, id])
    }

    /// Puts an upload back into the queue with another URL.
    ///
    /// - Parameter keepsDelivery: Whether a form that may have arrived at the old URL may also be at the new URL.
    func readdressUpload(
        _ id: QueuedUpload.ID, to url: URL, keepingDelivery keepsDelivery: Bool, at now: Date
    ) throws {
        if !keepsDelivery { try execute(sql: "DELETE FROM delivery WHERE id = ?", arguments: [id]) }
        try retryUpload(id, at: now)
        try forgetResumption(of: id)
        try execute(
            sql: "UPDATE upload SET url = ?, resource = NULL, sent = 0 WHERE id = ?",
            arguments: [url.absoluteString, id])
    }

    /// The time at which the next upload expires; `nil` if no upload expires.
    func nextExpiry() throws -> Date? {
        let expires = try DatabaseValue.fetchOne(
            self,
            sql: """
                SELECT min(expires) FROM upload INDEXED BY upload_expires
                WHERE expires IS NOT NULL AND state NOT IN ('done', 'failed', 'cancelled')
                """)
        return expires.flatMap(Double.fromDatabaseValue).map(Date.init(timeIntervalSince1970:))
    }

    /// Fails the uploads that have expired. If one of them is being sent, its attempt is then cancelled.
    func failExpiredUploads(at now: Date) throws {
        let failure = QueuedUpload.Failure.expired
        let expired = try QueuedUpload.ID.fetchAll(
            self, sql: "SELECT id FROM upload WHERE \(Self.isExpired) ORDER BY id",
            arguments: [now.timeIntervalSince1970])
        // A stored response belongs to an earlier failure.
        try execute(
            sql: "DELETE FROM response WHERE id IN (SELECT id FROM upload WHERE \(Self.isExpired))",
            arguments: [now.timeIntervalSince1970])
        try execute(
            sql: """
                UPDATE upload SET state = 'failed', schedule = NULL, session = NULL, code = ?, reason = ?, advice = ?
                WHERE \(Self.isExpired)
                """,
            arguments: [failure.code.rawValue, failure.message, failure.advice, now.timeIntervalSince1970])
        for id in expired { try noteEnd(of: id) }
        try forgetResumptionsOfEndedUploads()
    }

    /// The condition for expired uploads, written like the condition of the index `upload_expires`, so that SQLite uses
    /// the index.
    private static let isExpired = "expires <= ? AND state NOT IN ('done', 'failed', 'cancelled')"

    /// Pauses or resumes the whole queue. The order of the uploads stays the same.
    func setQueuePaused(_ isPaused: Bool) throws {
        // The table has one row, unless another program has changed it.
        let done = try doneCount
        let ends = try Int64.fetchOne(self, sql: "SELECT CAST(max(ends) AS INTEGER) FROM queue") ?? 0
        try execute(sql: "DELETE FROM queue")
        try execute(
            sql: "INSERT INTO queue (isPaused, done, ends) VALUES (?, ?, ?)", arguments: [isPaused, done, ends])
        guard isPaused else { return }
        try notePausing()
        try execute(
            sql: """
                UPDATE upload SET state = CASE WHEN state = 'sending' THEN 'waiting' ELSE state END,
                    schedule = \(Self.place), session = NULL, started = \(Self.begun)
                WHERE state = 'sending' OR session IS NOT NULL
                """)
    }

    /// The uploads in the given states.
    func ids(in states: Set<QueuedUpload.State.Kind>) throws -> [QueuedUpload.ID] {
        let names = states.map { "'\($0.rawValue)'" }.joined(separator: ", ")
        return try QueuedUpload.ID.fetchAll(self, sql: "SELECT id FROM upload WHERE state IN (\(names)) ORDER BY id")
    }

    /// Removes uploads.
    ///
    /// - Returns: The number of removed uploads, the names of their bodies, and the identifiers of the background
    ///   sessions that had them.
    func removeUploads(_ ids: [QueuedUpload.ID]) throws -> (count: Int, bodies: [UUID], sessions: Set<String>) {
        var (count, bodies, sessions) = (0, [UUID](), Set<String>())
        var groups: Set<DatabaseValue> = []
        let read = try cachedStatement(sql: "SELECT uuid, sequence, session FROM upload WHERE id = ?")
        let delete = try cachedStatement(sql: "DELETE FROM upload WHERE id = ?")
        for id in ids {
            guard let row = try Row.fetchOne(read, arguments: [id]) else { continue }
            count += 1
            if let body = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")) { bodies.append(body) }
            let group = try row.decode(DatabaseValue.self, forColumn: "sequence")
            if !group.isNull { groups.insert(group) }
            let session = String.fromDatabaseValue(try row.decode(DatabaseValue.self, forColumn: "session"))
            if let session { sessions.insert(session) }
            try delete.execute(arguments: [id])
        }
        for group in groups { try release(group) }
        return (count, bodies, sessions)
    }

    private func releaseGroup(of id: QueuedUpload.ID) throws {
        let group = try DatabaseValue.fetchOne(self, sql: "SELECT sequence FROM upload WHERE id = ?", arguments: [id])
        if let group, !group.isNull { try release(group) }
    }

    /// Schedules the first upload of a group that is not done or cancelled, if that upload waited for earlier ones.
    private func release(_ group: DatabaseValue) throws {
        try execute(
            sql: """
                UPDATE upload SET schedule = 1, due = CASE WHEN state = 'retrying' THEN due ELSE coalesce(notBefore, 0) END
                WHERE schedule = 2 AND id = (SELECT id FROM upload
                    WHERE sequence = ? AND state NOT IN ('done', 'cancelled') ORDER BY id LIMIT 1)
                """, arguments: [group])
    }
}
