import GRDB
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// The steps of uploads that a background session sends, as changes to their rows. Each is called within one write.
extension Database {
    /// Marks uploads as handed to a background session, also those whose time has not come: the system waits for it.
    ///
    /// - Parameter ids: The uploads, as returned by ``transfersToClaim(excluding:limit:)``.
    /// - Returns: Those that were still to be claimed and can be read, in the same order.
    func claimTransfers(_ ids: [QueuedUpload.ID], for session: String, at now: Date) throws -> [UploadRow] {
        if try isQueuePaused { return [] }
        return try ids.compactMap { id in
            try execute(
                sql: """
                    UPDATE upload SET state = CASE WHEN due > ? THEN state ELSE 'sending' END, schedule = NULL,
                        session = ?, attempts = \(Self.increment("attempts")), sent = 0, resource = NULL,
                        started = coalesce(started, max(?, coalesce(notBefore, 0)))
                    WHERE id = ? AND schedule IN (0, 1)
                    """, arguments: [now.timeIntervalSince1970, session, now.timeIntervalSince1970, id])
            // Another process may have claimed it since.
            guard changesCount == 1 else { return nil }
            try noteAttempt(of: id)
            return try readable(id)
        }
    }

    /// The uploads that may be handed to a background session next, those with the highest priority first.
    ///
    /// - Parameter postponed: Uploads that must wait even if the database has them as due.
    func transfersToClaim(excluding postponed: [QueuedUpload.ID], limit: Int) throws -> [QueuedUpload.ID] {
        if try isQueuePaused { return [] }
        return try QueuedUpload.ID.fetchAll(
            self,
            sql: """
                SELECT id FROM upload
                WHERE schedule IN (0, 1) AND id NOT IN (\(postponed.map(String.init).joined(separator: ", ")))
                ORDER BY priority DESC, id LIMIT ?
                """, arguments: [limit])
    }

    /// The transfers that a background session should have.
    func transfers(of session: String) throws -> [Transfer.ID: QueuedUpload.ID] {
        let rows = try Row.fetchAll(
            self, sql: "SELECT id, uuid, attempts FROM upload INDEXED BY upload_session WHERE session = ?",
            arguments: [session])
        var transfers: [Transfer.ID: QueuedUpload.ID] = [:]
        for row in rows {
            guard let uuid = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")) else { continue }
            let attempt = try? row.count("attempts")
            guard let attempt else { continue }
            transfers[Transfer.ID(upload: uuid, attempt: max(attempt, 1))] = try row.decode(
                Int64.self, forColumn: "id")
        }
        return transfers
    }

    /// Marks an upload that was handed over before its time as being sent.
    func beginTransfer(of id: QueuedUpload.ID) throws {
        try execute(
            sql: """
                UPDATE upload SET state = 'sending'
                WHERE id = ? AND session IS NOT NULL AND state IN ('waiting', 'retrying')
                """, arguments: [id])
    }

    /// Records the outcome of a transfer that did not deliver the form, as far as is known.
    func record(_ outcome: TransferOutcome, of row: UploadRow, for session: BackgroundSession, at now: Date) throws {
        switch outcome {
        case .accepted: break
        case .interrupted:
            try delayUpload(
                row.upload.id, until: now.addingTimeInterval(session.lossDelay / .seconds(1)),
                because:
                    "The system cancelled the upload, for example because the app was quit. It will be sent again.",
                isFailure: false, mayHaveArrived: true)
        case .misdirected(let reason): try failUpload(row.upload.id, because: reason)
        case .failed(let error):
            // The system repeats a request whose connection broke and does not report it: without a response, the form
            // may have arrived, even if the last failure was another one. A 409 may be about an earlier request.
            try recordFailure(
                RetrySchedule.Failure(error, at: now), of: row, by: session.schedule(for: row),
                after: .responseLost(resource: nil), mayHaveArrived: error.response == nil || error.mayHaveArrived,
                at: now)
        }
    }
}

extension BackgroundSession {
    /// The system applies ``totalTimeout`` to each transfer.
    func schedule(for row: UploadRow) -> RetrySchedule { RetrySchedule(retryPolicy, for: row.upload.url) }
}

extension UploadRow {
    /// The identifier of the current attempt in a background session.
    var transfer: Transfer.ID { Transfer.ID(upload: uuid, attempt: max(upload.attempts, 1)) }
}
