import GRDB
import HTTPTypes
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The steps of an upload as changes of its rows. Each is called within one write.
extension Database {
    /// Puts an upload at the end.
    func insert(_ new: NewUpload, at now: Date) throws -> QueuedUpload.ID {
        let conditions = new.conditions
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
                    total, enqueued)
                VALUES (?, ?, ?, 'waiting', ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                new.uuid.uuidString, new.url.absoluteString, new.method.rawValue, schedule.rawValue,
                conditions.notBefore?.timeIntervalSince1970 ?? 0, conditions.priority, conditions.networks.mask,
                conditions.group, conditions.notBefore?.timeIntervalSince1970, new.totalBytes,
                now.timeIntervalSince1970,
            ])
        let id = lastInsertedRowID
        var fields = new.headerFields
        fields.idempotencyKey = nil
        try insertRequest(
            of: id, key: new.headerFields.idempotencyKey ?? "\"\(new.uuid.uuidString)\"",
            headerFields: fields.map { UploadRecord.Field(name: $0.name.rawName, value: $0.value) },
            contentType: new.contentType, parts: new.parts)
        return id
    }

    func insertRequest(
        of id: QueuedUpload.ID, key: String, headerFields: [UploadRecord.Field], contentType: String,
        parts: [UploadRecord.Part]
    ) throws {
        let encoder = JSONEncoder()
        try execute(
            sql: "INSERT INTO request (id, idempotencyKey, headerFields, contentType, parts) VALUES (?, ?, ?, ?, ?)",
            arguments: [id, key, try encoder.encode(headerFields), contentType, try encoder.encode(parts)])
    }

    var isQueuePaused: Bool {
        get throws { try Bool.fetchOne(self, sql: "SELECT EXISTS (SELECT 1 FROM queue WHERE isPaused <> 0)") ?? false }
    }

    /// One upload; `nil` if there is none with that identifier.
    ///
    /// - Throws: ``RowDamage`` if the row cannot be read.
    func upload(_ id: QueuedUpload.ID) throws -> QueuedUpload? {
        try RowDamage.naming(id) {
            let statement = try cachedStatement(sql: "\(QueuedUpload.columns) WHERE upload.id = ?")
            return try Row.fetchOne(statement, arguments: [id]).map(QueuedUpload.init)
        }
    }

    /// All that is needed to send an upload; `nil` if there is none with that identifier.
    ///
    /// - Throws: ``RowDamage`` if the row cannot be read.
    func record(_ id: QueuedUpload.ID) throws -> UploadRecord? {
        try RowDamage.naming(id) {
            let statement = try cachedStatement(
                sql: "SELECT * FROM upload JOIN request USING (id) LEFT JOIN delivery USING (id) WHERE id = ?")
            return try Row.fetchOne(statement, arguments: [id]).map(UploadRecord.init)
        }
    }

    /// The state of an upload, also of one that cannot be read otherwise; `nil` if there is none with that identifier.
    func state(_ id: QueuedUpload.ID) throws -> QueuedUpload.State.Kind? {
        let state = try DatabaseValue.fetchOne(self, sql: "SELECT state FROM upload WHERE id = ?", arguments: [id])
        return state.map { String.fromDatabaseValue($0).flatMap(QueuedUpload.State.Kind.init(rawValue:)) ?? .failed }
    }

    /// All that is needed to settle a transfer. An upload that cannot be read fails, and none is given.
    func record(named uuid: UUID) throws -> UploadRecord? {
        let id = try QueuedUpload.ID.fetchOne(
            self, sql: "SELECT id FROM upload WHERE uuid = ?", arguments: [uuid.uuidString])
        return try id.flatMap(readable)
    }

    /// The names of the bodies that are still needed.
    func uuids() throws -> Set<UUID> {
        let names = try DatabaseValue.fetchAll(self, sql: "SELECT uuid FROM upload WHERE state <> 'done'")
        return Set(names.compactMap(UUID.init(bodyName:)))
    }

    /// Whether a background session still has uploads, or may be given more.
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

// MARK: - Sending in this process

extension Database {
    /// Takes the next upload that may be sent, and marks it as being sent.
    ///
    /// - Parameters:
    ///   - masks: The combinations of forbidden networks with which an upload may be sent now.
    ///   - active: Those whose attempts have not ended yet, whatever has been decided about them since.
    func claimUpload(
        allowedBy masks: [Int64], excluding active: Set<QueuedUpload.ID>, at now: Date
    ) throws -> UploadRecord? {
        if try isQueuePaused { return nil }
        // What is no time would never be due, and would be looked at without end.
        try execute(
            sql: "UPDATE upload SET schedule = 0 WHERE schedule = 1 AND (due <= ? OR typeof(due) <> 'real')",
            arguments: [now.timeIntervalSince1970])
        while true {
            let candidates = try masks.compactMap { mask in
                try Row.fetchOne(
                    self,
                    sql: """
                        SELECT id, CAST(priority AS INTEGER) AS priority FROM upload INDEXED BY upload_ready
                        WHERE schedule = 0 AND networks = ?
                            AND id NOT IN (\(active.map(String.init).joined(separator: ", ")))
                        ORDER BY priority DESC, id LIMIT 1
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
                        sent = CASE WHEN resource IS NULL THEN 0 ELSE sent END
                    WHERE id = ? AND schedule = 0
                    """, arguments: [id])
            guard changesCount == 1 else {
                // Found by the index, which would find it again and again.
                throw DatabaseError(
                    resultCode: .SQLITE_CORRUPT, message: "an index does not say the same as its table")
            }
            try noteAttempt(of: id)
            if let record = try readable(id) { return record }
        }
    }

    /// Notes that an attempt begins, which may deliver the form without the queue learning of it.
    func noteAttempt(of id: QueuedUpload.ID) throws {
        try execute(
            sql: "INSERT OR IGNORE INTO delivery SELECT id, attempts FROM upload WHERE id = ?", arguments: [id])
    }

    /// Notes that the latest attempt did not deliver the form.
    private func ruleOutDelivery(of id: QueuedUpload.ID) throws {
        try execute(
            sql: "DELETE FROM delivery WHERE id = ? AND attempt = (SELECT attempts FROM upload WHERE id = delivery.id)",
            arguments: [id])
    }

    /// Reads an upload that is about to be sent. One that cannot be read fails, so that it does not block the others.
    func readable(_ id: QueuedUpload.ID) throws -> UploadRecord? {
        do {
            if let record = try record(id) { return record }
            try failUpload(id, because: "Its request is missing from the queue's database. Enqueue the form again.")
        } catch let error as RowDamage {
            try failUpload(
                id, because: "What the queue's database holds of it cannot be read. Enqueue the form again. (\(error))")
        }
        return nil
    }

    /// When the next upload whose time has not come may be sent.
    func nextDue() throws -> Date? {
        let due = try DatabaseValue.fetchOne(
            self, sql: "SELECT min(due) FROM upload INDEXED BY upload_due WHERE schedule = 1")
        guard let due, !due.isNull else { return nil }
        // What is no time is due: the next claim lets it go.
        return Date(timeIntervalSince1970: Double.fromDatabaseValue(due) ?? 0)
    }

    /// Those that are being sent in this process.
    func sendingUploads() throws -> Set<QueuedUpload.ID> {
        try QueuedUpload.ID.fetchSet(
            self, sql: "SELECT id FROM upload INDEXED BY upload_sending WHERE state = 'sending' AND session IS NULL")
    }

    /// Puts back what was being sent when a process ended.
    func recoverUploads() throws {
        try execute(
            sql: "UPDATE upload SET state = 'waiting', schedule = 0 WHERE state = 'sending' AND session IS NULL")
    }

    func noteProgress(of id: QueuedUpload.ID, bytesSent: Int64) throws {
        try execute(
            sql: "UPDATE upload SET sent = ? WHERE id = ? AND state = 'sending'", arguments: [bytesSent, id])
    }

    /// Notes where the server keeps what it has of a body; `nil` if it keeps nothing.
    func noteResource(_ resource: URL?, of id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET resource = ? WHERE id = ? AND state = 'sending' AND session IS NULL",
            arguments: [resource?.absoluteString, id])
    }
}

// MARK: - What becomes of an upload

extension Database {
    /// Ends an upload that the server accepted; whatever was decided meanwhile, the server has it.
    ///
    /// - Returns: Whether there was such an upload.
    func finishUpload(_ id: QueuedUpload.ID, with response: QueuedUpload.Response) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'done', schedule = NULL, session = NULL, sent = total, reason = NULL,
                    resource = NULL
                WHERE id = ?
                """, arguments: [id])
        guard changesCount == 1 else { return }
        try execute(
            sql: "INSERT OR REPLACE INTO response (id, status, contentType, body) VALUES (?, ?, ?, ?)",
            arguments: [id, response.status, response.contentType, response.body])
        try releaseGroup(of: id)
    }

    /// Puts off an upload whose attempt failed.
    ///
    /// - Parameters:
    ///   - isFailure: Whether the attempt counts as one that failed.
    ///   - mayHaveArrived: Whether the attempt may have delivered the form.
    func delayUpload(
        _ id: QueuedUpload.ID, until due: Date, because reason: String, isFailure: Bool = true, mayHaveArrived: Bool
    ) throws {
        if !mayHaveArrived { try ruleOutDelivery(of: id) }
        try execute(
            sql: """
                UPDATE upload SET state = 'retrying', schedule = 1, due = max(?, coalesce(notBefore, 0)), reason = ?,
                    session = NULL,
                    failures = \(Self.increment("failures", by: "?"))
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [due.timeIntervalSince1970, reason, isFailure ? 1 : 0, id])
    }

    /// Gives back an upload whose attempt was interrupted.
    func returnUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', schedule = 1, due = coalesce(notBefore, 0), session = NULL
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [id])
    }

    /// Counts up in the range in which numbers are read: what was written below it would never be reached.
    static func increment(_ column: String, by step: String = "1") -> String {
        "min(max(\(column), 0), \(Row.maximumCount - 1)) + \(step)"
    }

    /// - Parameter mayHaveArrived: Whether the latest attempt may have delivered the form.
    func failUpload(_ id: QueuedUpload.ID, because reason: String, mayHaveArrived: Bool = true) throws {
        if !mayHaveArrived { try ruleOutDelivery(of: id) }
        try execute(
            sql: """
                UPDATE upload SET state = 'failed', schedule = NULL, session = NULL, reason = ?,
                    failures = \(Self.increment("failures"))
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [reason, id])
    }

    /// Cancels everything that has not ended, also what cannot be read.
    func cancelAllUploads() throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'cancelled', schedule = NULL, session = NULL
                WHERE state NOT IN ('done', 'failed', 'cancelled')
                """)
    }

    func cancelUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET state = 'cancelled', schedule = NULL, session = NULL WHERE id = ?", arguments: [id])
        try releaseGroup(of: id)
    }

    func pauseUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET state = 'paused', schedule = NULL, session = NULL WHERE id = ?", arguments: [id])
    }

    /// Lets an upload be sent again: from its beginning with all its attempts before it, or, if it was paused or waited for
    /// its next attempt, from where it stopped.
    func retryUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', session = NULL, failures = 0, reason = NULL,
                    due = CASE WHEN state = 'paused' THEN coalesce(notBefore, 0) ELSE 0 END,
                    sent = CASE WHEN state IN ('retrying', 'paused') THEN sent ELSE 0 END,
                    resource = CASE WHEN state IN ('retrying', 'paused') THEN resource END,
                    schedule = CASE WHEN sequence IS NOT NULL AND EXISTS (
                        SELECT 1 FROM upload AS other WHERE other.sequence = upload.sequence AND other.id < upload.id
                            AND other.state NOT IN ('done', 'cancelled')) THEN 2 ELSE 1 END
                WHERE id = ?
                """, arguments: [id])
        // Those of its group that were let go meanwhile wait for it again.
        try execute(
            sql: """
                UPDATE upload SET schedule = 2
                WHERE sequence = (SELECT sequence FROM upload WHERE id = ?) AND id > ? AND schedule IN (0, 1)
                """, arguments: [id, id])
    }

    /// Stops everything, or lets it go again. Uploads keep their places.
    func setQueuePaused(_ isPaused: Bool) throws {
        try execute(sql: "DELETE FROM queue")
        try execute(sql: "INSERT INTO queue VALUES (?)", arguments: [isPaused])
        guard isPaused else { return }
        try execute(
            sql: """
                UPDATE upload SET state = CASE WHEN state = 'sending' THEN 'waiting' ELSE state END, schedule = 1,
                    session = NULL
                WHERE state = 'sending' OR session IS NOT NULL
                """)
    }

    /// Removes every upload that has ended.
    ///
    /// - Returns: How many, and the names of their bodies.
    func removeEndedUploads() throws -> (count: Int, bodies: [UUID]) {
        let ended = "state IN ('done', 'failed', 'cancelled')"
        let names = try DatabaseValue.fetchAll(self, sql: "SELECT uuid FROM upload WHERE \(ended)")
        let groups = try DatabaseValue.fetchSet(
            self, sql: "SELECT sequence FROM upload WHERE \(ended) AND sequence IS NOT NULL")
        try execute(sql: "DELETE FROM upload WHERE \(ended)")
        for group in groups { try release(group) }
        return (names.count, names.compactMap(UUID.init(bodyName:)))
    }

    private func releaseGroup(of id: QueuedUpload.ID) throws {
        let group = try DatabaseValue.fetchOne(self, sql: "SELECT sequence FROM upload WHERE id = ?", arguments: [id])
        if let group, !group.isNull { try release(group) }
    }

    /// Lets the first of a group that has not ended go, if it waits for those before it.
    private func release(_ group: DatabaseValue) throws {
        try execute(
            sql: """
                UPDATE upload SET schedule = 1, due = coalesce(notBefore, 0)
                WHERE schedule = 2 AND id = (SELECT id FROM upload
                    WHERE sequence = ? AND state NOT IN ('done', 'cancelled') ORDER BY id LIMIT 1)
                """, arguments: [group])
    }
}
