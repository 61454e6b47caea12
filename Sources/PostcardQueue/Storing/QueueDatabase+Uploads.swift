#if Queue
import GRDB
import HTTPTypes

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The steps of an upload as changes of its rows. Each is called within one write.
extension Database {
    /// Puts an upload at the end.
    func insertUpload(_ request: EnqueuedRequest, at now: Date) throws -> QueuedUpload.ID {
        let conditions = request.conditions
        let isBehind =
            try conditions.group.map { group in
                try Bool.fetchOne(
                    self,
                    sql: """
                        SELECT EXISTS (SELECT 1 FROM upload
                            WHERE sequence = ? AND state NOT IN ('done', 'cancelled'))
                        """, arguments: [group]) ?? false
            } ?? false
        let schedule = Schedule(isBehind: isBehind, notBefore: conditions.notBefore, now: now)
        try execute(
            sql: """
                INSERT INTO upload (url, method, state, schedule, due, priority, unmetered, sequence, notBefore, total,
                    enqueued)
                VALUES (?, ?, 'waiting', ?, ?, ?, ?, ?, ?, ?, ?)
                """,
            arguments: [
                request.url.absoluteString, request.method.rawValue, schedule.rawValue,
                conditions.notBefore?.timeIntervalSince1970 ?? 0, conditions.priority,
                conditions.needsUnmeteredNetwork, conditions.group, conditions.notBefore?.timeIntervalSince1970,
                request.totalBytes, now.timeIntervalSince1970,
            ])
        let id = lastInsertedRowID
        let encoder = JSONEncoder()
        try execute(
            sql: "INSERT INTO request (id, idempotencyKey, headerFields, form, folder) VALUES (?, ?, ?, ?, ?)",
            arguments: [
                id, request.idempotencyKey, try encoder.encode(request.headerFields), try encoder.encode(request.form),
                request.folder,
            ])
        return id
    }

    /// Takes the next upload that may be sent, and marks it as on its way.
    ///
    /// - Parameter active: Those whose attempts have not ended yet, whatever has been decided about them since.
    func claimUpload(
        isUnmetered: Bool, excluding active: Set<QueuedUpload.ID>, at now: Date
    ) throws -> ClaimedUpload? {
        try execute(
            sql: "UPDATE upload SET schedule = 0 WHERE schedule = 1 AND due <= ?",
            arguments: [now.timeIntervalSince1970])
        let candidates = try (isUnmetered ? [0, 1] : [0]).compactMap { unmetered in
            try Row.fetchOne(
                self,
                sql: """
                    SELECT id, priority FROM upload INDEXED BY upload_ready
                    WHERE schedule = 0 AND unmetered = ?
                        AND id NOT IN (\(active.map(String.init).joined(separator: ", ")))
                    ORDER BY priority DESC, id LIMIT 1
                    """, arguments: [unmetered])
        }
        let next = candidates.min { left, right in
            let (first, second): (Int, Int) = (left["priority"], right["priority"])
            return first == second ? (left["id"] as Int64) < right["id"] : first > second
        }
        guard let id: QueuedUpload.ID = next?["id"] else { return nil }
        try execute(
            sql: """
                UPDATE upload SET state = 'sending', schedule = NULL, attempts = attempts + 1,
                    sent = CASE WHEN resource IS NULL THEN 0 ELSE sent END
                WHERE id = ?
                """, arguments: [id])
        try execute(sql: "UPDATE handover SET isCurrent = 0 WHERE id = ?", arguments: [id])
        return try claimedUpload(id)
    }

    func claimedUpload(_ id: QueuedUpload.ID) throws -> ClaimedUpload? {
        try Row.fetchOne(
            self, sql: "SELECT * FROM upload JOIN request USING (id) WHERE id = ?", arguments: [id]
        ).map(ClaimedUpload.init)
    }

    /// When the next upload whose time has not come may be sent.
    func nextDue() throws -> Date? {
        try Double.fetchOne(self, sql: "SELECT min(due) FROM upload INDEXED BY upload_due WHERE schedule = 1")
            .map(Date.init(timeIntervalSince1970:))
    }

    /// Those that are marked as on their way.
    func sendingUploads() throws -> Set<QueuedUpload.ID> {
        try QueuedUpload.ID.fetchSet(
            self, sql: "SELECT id FROM upload INDEXED BY upload_sending WHERE state = 'sending'")
    }

    /// The folders that belong to uploads.
    func folders() throws -> Set<String> {
        try String.fetchSet(self, sql: "SELECT folder FROM request WHERE folder IS NOT NULL")
    }

    /// Puts back what was on its way when a process ended: nobody else sends, but for a background session.
    func recoverUploads() throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', schedule = 0
                WHERE state = 'sending' AND id NOT IN (SELECT id FROM handover WHERE isCurrent)
                """)
    }

    func noteProgress(of id: QueuedUpload.ID, bytesSent: Int64) throws {
        try execute(
            sql: "UPDATE upload SET sent = ? WHERE id = ? AND state = 'sending'", arguments: [bytesSent, id])
    }

    /// Notes where the server keeps what it has of a form; `nil` where it keeps nothing.
    func noteResource(_ resource: URL?, of id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET resource = ? WHERE id = ? AND state = 'sending'",
            arguments: [resource?.absoluteString, id])
    }

    /// Ends an upload that the server took; whatever was decided meanwhile, it is there. One that was cleared is
    /// gone.
    func finishUpload(_ id: QueuedUpload.ID, with response: QueuedUpload.Response) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'done', schedule = NULL, sent = total, reason = NULL, resource = NULL
                WHERE id = ?
                """, arguments: [id])
        guard changesCount == 1 else { return }
        try execute(
            sql: "INSERT OR REPLACE INTO response (id, status, contentType, body) VALUES (?, ?, ?, ?)",
            arguments: [id, response.status, response.contentType, response.body])
        try releaseGroup(of: id)
    }

    /// Puts off an upload that failed, or one that was interrupted.
    func delayUpload(_ id: QueuedUpload.ID, until due: Date, because reason: String) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'retrying', schedule = 1, due = ?, reason = ?, failures = failures + 1
                WHERE id = ? AND state = 'sending'
                """, arguments: [due.timeIntervalSince1970, reason, id])
    }

    /// Gives back an upload that was not sent to its end for no fault of its own.
    func returnUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET state = 'waiting', schedule = 0 WHERE id = ? AND state = 'sending'",
            arguments: [id])
    }

    func failUpload(_ id: QueuedUpload.ID, because reason: String) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'failed', schedule = NULL, reason = ?, failures = failures + 1
                WHERE id = ? AND state = 'sending'
                """, arguments: [reason, id])
    }

    func cancelUpload(_ id: QueuedUpload.ID) throws {
        try execute(sql: "UPDATE upload SET state = 'cancelled', schedule = NULL WHERE id = ?", arguments: [id])
        try releaseGroup(of: id)
    }

    /// Lets an ended upload go again from its beginning, with all its attempts before it; one that waits for its next
    /// attempt goes on at once.
    func retryUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', due = 0, failures = 0, reason = NULL,
                    sent = CASE WHEN state = 'retrying' THEN sent ELSE 0 END,
                    resource = CASE WHEN state = 'retrying' THEN resource END,
                    schedule = CASE WHEN sequence IS NOT NULL AND EXISTS (
                        SELECT 1 FROM upload AS other WHERE other.sequence = upload.sequence AND other.id < upload.id
                            AND other.state NOT IN ('done', 'cancelled')) THEN 2 ELSE 0 END
                WHERE id = ?
                """, arguments: [id])
    }

    func removeUpload(_ id: QueuedUpload.ID) throws {
        let group = try String.fetchOne(self, sql: "SELECT sequence FROM upload WHERE id = ?", arguments: [id])
        try execute(sql: "DELETE FROM upload WHERE id = ?", arguments: [id])
        if let group { try release(group) }
    }

    private func releaseGroup(of id: QueuedUpload.ID) throws {
        if let group = try String.fetchOne(self, sql: "SELECT sequence FROM upload WHERE id = ?", arguments: [id]) {
            try release(group)
        }
    }

    /// Lets the first of a group that has not ended go, where it waits for those before it.
    private func release(_ group: String) throws {
        try execute(
            sql: """
                UPDATE upload SET schedule = 1, due = coalesce(notBefore, 0)
                WHERE schedule = 2 AND id = (SELECT id FROM upload
                    WHERE sequence = ? AND state NOT IN ('done', 'cancelled') ORDER BY id LIMIT 1)
                """, arguments: [group])
    }
}

extension Schedule {
    fileprivate init(isBehind: Bool, notBefore: Date?, now: Date) {
        if isBehind {
            self = .behind
        } else {
            self = notBefore.map { $0 > now } ?? false ? .delayed : .ready
        }
    }
}
#endif
