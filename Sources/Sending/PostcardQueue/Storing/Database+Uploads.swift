import GRDB
import HTTPTypes
import PostcardClient
import PostcardFoundation

/// Enqueues, reads and marks uploads. Each method is called within one transaction.
///
/// Rows are decoded while a cursor points to them, because reading a copied row compares column names for each value.
extension Database {
    /// Inserts an upload at the end of the queue.
    func insert(_ new: NewUpload, at now: Date) throws -> QueuedUpload.ID {
        let (form, conditions) = (new.form, new.conditions)
        let isBehind =
            try conditions.group.map { group in
                try Bool.fetchOne(
                    self,
                    sql: """
                        SELECT EXISTS (SELECT 1 FROM upload
                            WHERE sequence = ? AND state NOT IN ('done', 'cancelled'))
                        """, arguments: [group]) ?? false
            } ?? false
        let isEarly = conditions.notBefore.map { $0 > now } ?? false
        let schedule = isBehind ? Schedule.behind : isEarly ? .delayed : .ready
        try execute(
            sql: """
                INSERT INTO upload (uuid, url, method, state, schedule, due, priority, networks, sequence, notBefore,
                    expires, tag, total, enqueued)
                VALUES (?, ?, ?, 'waiting', ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                form.uuid.uuidString, form.url.absoluteString, form.method.rawValue, schedule.rawValue,
                conditions.notBefore?.timeIntervalSince1970 ?? 0, conditions.priority, conditions.networks.mask,
                conditions.group, conditions.notBefore?.timeIntervalSince1970,
                conditions.expires?.timeIntervalSince1970, new.tag, form.totalBytes, now.timeIntervalSince1970,
            ])
        let id = lastInsertedRowID
        var fields = form.headerFields
        fields[.idempotencyKey] = nil
        try insertRequest(
            of: id, key: form.headerFields[.idempotencyKey] ?? "\"\(form.uuid.uuidString)\"",
            headerFields: UploadRow.Field.list(fields),
            contentType: form.contentType, parts: form.parts, signed: form.signed, accepting: form.acceptedStatuses)
        return id
    }

    func insertRequest(
        of id: QueuedUpload.ID, key: String, headerFields: [UploadRow.Field], contentType: String,
        parts: [UploadRow.Part], signed: SignedAddress?, accepting statuses: Set<Int>? = nil
    ) throws {
        let encoder = JSONEncoder()
        try execute(
            sql: """
                INSERT INTO request (id, idempotencyKey, headerFields, contentType, parts, signed, statuses)
                VALUES (?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                id, key, try encoder.encode(headerFields), contentType, try encoder.encode(parts),
                try signed.map { try encoder.encode($0) }, try statuses.map { try encoder.encode($0.sorted()) },
            ])
    }

    var isQueuePaused: Bool {
        get throws { try Bool.fetchOne(self, sql: "SELECT EXISTS (SELECT 1 FROM queue WHERE isPaused <> 0)") ?? false }
    }

    /// The number of uploads in each state, by the state's name in the database.
    func counts() throws -> [String: Int] {
        let rows = try Row.fetchAll(
            self, sql: "SELECT CAST(state AS TEXT) AS name, count(*) AS number FROM upload GROUP BY name")
        return try rows.reduce(into: [:]) { counts, row in
            counts[try row.decode(String.self, forColumn: "name")] = try row.count("number")
        }
    }

    /// Reads an upload. Returns `nil` if no upload has the identifier.
    ///
    /// - Throws: ``RowDamage`` if the row cannot be read.
    func upload(_ id: QueuedUpload.ID) throws -> QueuedUpload? {
        try RowDamage.naming(id) {
            let statement = try cachedStatement(sql: "\(QueuedUpload.columns) WHERE upload.id = ?")
            return try Row.fetchCursor(statement, arguments: [id]).map(QueuedUpload.init).next()
        }
    }

    /// Reads the row of an upload with everything needed to send it. Returns `nil` if no upload has the identifier.
    ///
    /// - Throws: ``RowDamage`` if the row cannot be read.
    func row(_ id: QueuedUpload.ID) throws -> UploadRow? {
        try RowDamage.naming(id) {
            let statement = try cachedStatement(
                sql: """
                    SELECT * FROM upload JOIN request USING (id) LEFT JOIN delivery USING (id)
                        LEFT JOIN resumption USING (id)
                    WHERE id = ?
                    """)
            return try Row.fetchCursor(statement, arguments: [id]).map(UploadRow.init).next()
        }
    }

    /// Reads the state of an upload, even if its row is otherwise damaged. Returns `nil` if there is no such upload.
    func state(_ id: QueuedUpload.ID) throws -> QueuedUpload.State.Kind? {
        let state = try DatabaseValue.fetchOne(self, sql: "SELECT state FROM upload WHERE id = ?", arguments: [id])
        return state.map { String.fromDatabaseValue($0).flatMap(QueuedUpload.State.Kind.init(rawValue:)) ?? .failed }
    }

    /// Reads the upload of a transfer. Returns `nil` if there is none. If its row cannot be read, the upload fails.
    func row(named uuid: UUID) throws -> UploadRow? {
        let id = try QueuedUpload.ID.fetchOne(
            self, sql: "SELECT id FROM upload WHERE uuid = ?", arguments: [uuid.uuidString])
        return try id.flatMap(readable)
    }

    /// Reads the upload of a transfer. Returns `nil` if there is none, or if its row cannot be read.
    func readRow(named uuid: UUID) throws -> UploadRow? {
        let id = try QueuedUpload.ID.fetchOne(
            self, sql: "SELECT id FROM upload WHERE uuid = ?", arguments: [uuid.uuidString])
        do { return try id.flatMap(row) } catch is RowDamage { return nil }
    }

    /// The names of the bodies that are still needed.
    func bodyNames() throws -> Set<UUID> {
        let names = try DatabaseValue.fetchAll(self, sql: "SELECT uuid FROM upload WHERE state <> 'done'")
        return Set(names.compactMap(UUID.init(bodyName:)))
    }

    /// Whether a background session has uploads or can get uploads.
    func hasOpenUploads(of session: String) throws -> Bool {
        try Bool.fetchOne(
            self,
            sql: """
                SELECT EXISTS (SELECT 1 FROM upload INDEXED BY upload_session WHERE session = ?)
                    OR (NOT EXISTS (SELECT 1 FROM queue WHERE isPaused <> 0)
                        AND (EXISTS (SELECT 1 FROM upload INDEXED BY upload_ready WHERE schedule = 0)
                            OR EXISTS (SELECT 1 FROM upload INDEXED BY upload_due WHERE schedule = 1)))
                """, arguments: [session]) ?? false
    }
}

// MARK: - Claiming for this process

extension Database {
    /// Marks the next upload that may be sent as being sent. Call ``noteAttempt(of:)`` before the attempt begins.
    ///
    /// - Parameters:
    ///   - masks: The values of ``PostcardClient/AllowedNetworks/mask`` with which an upload may be sent now.
    ///   - active: Uploads with attempts that have not ended. They are skipped even if they were cancelled and retried.
    func claimUpload(
        allowedBy masks: [Int64], excluding active: Set<QueuedUpload.ID>, at now: Date
    ) throws -> UploadRow? {
        if try isQueuePaused { return nil }
        // A value that is not a time counts as due. Otherwise the run would check the upload forever.
        try execute(
            sql: "UPDATE upload SET schedule = 0 WHERE schedule = 1 AND (due <= ? OR typeof(due) <> 'real')",
            arguments: [now.timeIntervalSince1970])
        while true {
            // The rows are sorted by the stored column `upload.priority`, not by the converted value. So SQLite uses
            // the order of the index.
            let candidates = try masks.compactMap { mask in
                try Row.fetchOne(
                    self,
                    sql: """
                        SELECT id, CAST(priority AS INTEGER) AS priority FROM upload INDEXED BY upload_ready
                        WHERE schedule = 0 AND networks = ?
                            AND id NOT IN (\(active.map(String.init).joined(separator: ", ")))
                        ORDER BY upload.priority DESC, id LIMIT 1
                        """, arguments: [mask])
            }.map { row in
                (
                    priority: try row.decode(Int64.self, forColumn: "priority"),
                    id: try row.decode(Int64.self, forColumn: "id")
                )
            }
            let next = candidates.min { $0.priority == $1.priority ? $0.id < $1.id : $0.priority > $1.priority }
            guard let id = next?.id else { return nil }
            try execute(
                sql: """
                    UPDATE upload SET state = 'sending', schedule = NULL, session = NULL, attempts = \(Self.increment("attempts")),
                        started = coalesce(started, ?), sent = CASE WHEN resource IS NULL THEN 0 ELSE sent END
                    WHERE id = ? AND schedule = 0
                    """, arguments: [now.timeIntervalSince1970, id])
            guard changesCount == 1 else {
                // The index is damaged. The error ends the loop, which would find the same upload again.
                throw DatabaseError(resultCode: .SQLITE_CORRUPT, message: "an index does not match its table")
            }
            // Only the system can use resume data, so an attempt of this process removes it.
            try forgetResumption(of: id)
            if let row = try readable(id) { return row }
        }
    }

    /// Reads an upload to be sent. If the row cannot be read, the upload fails, so that it does not block others.
    func readable(_ id: QueuedUpload.ID) throws -> UploadRow? {
        do {
            if let row = try row(id) { return row }
            try failUpload(id, because: .damaged("The request is missing from the queue's database."))
        } catch let error as RowDamage {
            try failUpload(id, because: .damaged("The queue's database is damaged: \(error)."))
        }
        return nil
    }

    /// The earliest time at which a delayed upload may be sent; `nil` if no upload is delayed.
    ///
    /// - Parameter ofRetries: Whether to consider only uploads that have failed before. Defaults to `false`.
    func nextDue(ofRetries: Bool = false) throws -> Date? {
        let due = try DatabaseValue.fetchOne(
            self,
            sql: """
                SELECT min(due) FROM upload INDEXED BY upload_due
                WHERE schedule = 1 \(ofRetries ? "AND state = 'retrying'" : "")
                """)
        guard let due, !due.isNull else { return nil }
        // A value that is not a time is due at once: `claimUpload` then marks its upload as ready.
        return Date(timeIntervalSince1970: Double.fromDatabaseValue(due) ?? 0)
    }

    /// Puts back into the queue the uploads that an earlier process was sending when the process ended.
    ///
    /// - Parameter failure: The failure of uploads whose form may have arrived and that have no upload resource, so
    ///   that no server can be asked what has arrived. Defaults to `nil`: these uploads are put back too.
    func recoverUploads(failingUnclear failure: QueuedUpload.Failure? = nil) throws {
        if let failure {
            let unclear = try QueuedUpload.ID.fetchAll(
                self,
                sql: """
                    SELECT id FROM upload INDEXED BY upload_sending JOIN delivery USING (id)
                    WHERE state = 'sending' AND session IS NULL AND resource IS NULL
                    """)
            for id in unclear { try failUpload(id, because: failure) }
        }
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', schedule = \(Self.place), due = coalesce(notBefore, 0)
                WHERE state = 'sending' AND session IS NULL
                """)
    }

    func noteProgress(of id: QueuedUpload.ID, bytesSent: Int64) throws {
        try execute(
            sql: "UPDATE upload SET sent = ? WHERE id = ? AND state = 'sending'", arguments: [bytesSent, id])
    }

    /// Saves the URL of an upload's upload resource. If `resource` is `nil`, removes the saved URL.
    func noteResource(_ resource: URL?, of id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET resource = ? WHERE id = ? AND state = 'sending' AND session IS NULL",
            arguments: [resource?.absoluteString, id])
    }
}

/// Changes the resume data of stopped uploads in the table `resumption`. Each method is called within one write.
extension Database {
    /// Records that a background session is about to stop an upload or all its uploads, so that they can resume later.
    /// Must be called before the uploads are taken from the session.
    func notePausing(of id: QueuedUpload.ID? = nil) throws {
        try execute(
            sql: """
                INSERT OR REPLACE INTO resumption (id, stopped)
                SELECT id, max(attempts, 1) FROM upload INDEXED BY upload_session
                WHERE session IS NOT NULL AND coalesce(id = ?, 1)
                """, arguments: [id])
    }

    func forgetResumption(of id: QueuedUpload.ID) throws {
        try execute(sql: "DELETE FROM resumption WHERE id = ?", arguments: [id])
    }

    /// Removes the record of a pause, because the upload is sent again before the system has stopped the old attempt.
    func forgetPausing(of id: QueuedUpload.ID) throws {
        try execute(sql: "DELETE FROM resumption WHERE id = ? AND resumeData IS NULL", arguments: [id])
    }

    func forgetResumptionsOfEndedUploads() throws {
        try execute(
            sql: """
                DELETE FROM resumption
                WHERE id IN (SELECT id FROM upload WHERE state IN ('done', 'failed', 'cancelled'))
                """)
    }
}

/// The ways to count an attempt that did not deliver the form.
enum AttemptCount: Sendable, Equatable {
    /// A failure that counts against `RetryPolicy.maximumAttempts`.
    ///
    /// - Parameter conflicts: The number of conflicts in a row.
    case failure(conflicts: Int)
    /// A request with outdated header fields. The next request gets new ones.
    case staleFields
    /// A presigned form that has expired. The next attempt gets a new one.
    case staleForm
    /// An interruption by the system, which may be one of several in a row.
    case interruption
    case nothing
}
