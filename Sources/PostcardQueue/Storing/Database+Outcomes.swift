import GRDB
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The ends of uploads and the changes by hand, as changes to their rows. Each is called within one write.
extension Database {
    /// Ends an upload that the server accepted. This also applies if it was cancelled or paused since: the server has
    /// it.
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

    /// Notes that an attempt begins. Until its outcome is known, it may have delivered the form.
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

    /// Delays an upload after an attempt.
    ///
    /// - Parameters:
    ///   - conflicts: The number of conflicts in a row, if the attempt counts as a failure; `nil` if it does not count.
    ///   - mayHaveArrived: Whether the attempt may have delivered the form.
    func delayUpload(
        _ id: QueuedUpload.ID, until due: Date, because reason: String, conflicts: Int?, mayHaveArrived: Bool
    ) throws {
        if !mayHaveArrived { try ruleOutDelivery(of: id) }
        try execute(
            sql: """
                UPDATE upload SET state = 'retrying', schedule = 1, due = max(?, coalesce(notBefore, 0)), reason = ?,
                    session = NULL, conflicts = coalesce(?, conflicts),
                    failures = \(Self.increment("failures", by: "?"))
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [due.timeIntervalSince1970, reason, conflicts, conflicts == nil ? 0 : 1, id])
    }

    /// Puts an upload back into the queue whose attempt was interrupted.
    func returnUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', schedule = 1, due = coalesce(notBefore, 0), session = NULL
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [id])
    }

    /// An expression that increments a count. It first moves the count into the range in which `Row.count(_:)` reads
    /// it: a very negative count would never reach a limit.
    static func increment(_ column: String, by step: String = "1") -> String {
        "min(max(\(column), 0), \(Row.maximumCount - 1)) + \(step)"
    }

    /// Ends an upload that is not sent again.
    ///
    /// - Parameter mayHaveArrived: Whether the latest attempt may have delivered the form. Defaults to `true`.
    func failUpload(_ id: QueuedUpload.ID, because reason: String, mayHaveArrived: Bool = true) throws {
        if !mayHaveArrived { try ruleOutDelivery(of: id) }
        try execute(
            sql: """
                UPDATE upload SET state = 'failed', schedule = NULL, session = NULL, reason = ?,
                    failures = \(Self.increment("failures"))
                WHERE id = ? AND state IN ('waiting', 'sending', 'retrying')
                """, arguments: [reason, id])
    }

    /// Cancels all uploads that have not ended, including rows that cannot be read.
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

    /// Puts an upload back into the queue. It starts over, unless it was paused or waited for its next attempt: then it
    /// resumes.
    func retryUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'waiting', session = NULL, failures = 0, conflicts = 0, started = NULL,
                    reason = NULL,
                    due = CASE WHEN state = 'paused' THEN coalesce(notBefore, 0) ELSE 0 END,
                    sent = CASE WHEN state IN ('retrying', 'paused') THEN sent ELSE 0 END,
                    resource = CASE WHEN state IN ('retrying', 'paused') THEN resource END,
                    schedule = CASE WHEN sequence IS NOT NULL AND EXISTS (
                        SELECT 1 FROM upload AS other WHERE other.sequence = upload.sequence AND other.id < upload.id
                            AND other.state NOT IN ('done', 'cancelled')) THEN 2 ELSE 1 END
                WHERE id = ?
                """, arguments: [id])
        // The later ones of its group wait for it again.
        try execute(
            sql: """
                UPDATE upload SET schedule = 2
                WHERE sequence = (SELECT sequence FROM upload WHERE id = ?) AND id > ? AND schedule IN (0, 1)
                """, arguments: [id, id])
    }

    /// Pauses or resumes the whole queue. Uploads keep their places.
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

    /// Removes all uploads that have ended.
    ///
    /// - Returns: Their number, and the names of their bodies.
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

    /// Schedules the first upload of a group that has not ended, if it waited for earlier ones.
    private func release(_ group: DatabaseValue) throws {
        try execute(
            sql: """
                UPDATE upload SET schedule = 1, due = coalesce(notBefore, 0)
                WHERE schedule = 2 AND id = (SELECT id FROM upload
                    WHERE sequence = ? AND state NOT IN ('done', 'cancelled') ORDER BY id LIMIT 1)
                """, arguments: [group])
    }
}
