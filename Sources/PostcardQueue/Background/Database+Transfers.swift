import GRDB

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
    func transfersToClaim(excluding postponed: Set<QueuedUpload.ID>, limit: Int) throws -> [QueuedUpload.ID] {
        if try isQueuePaused { return [] }
        return try QueuedUpload.ID.fetchAll(
            self,
            sql: """
                SELECT id FROM upload
                WHERE schedule IN (0, 1) AND id NOT IN (\(postponed.map(String.init).joined(separator: ", ")))
                ORDER BY priority DESC, id LIMIT ?
                """, arguments: [limit])
    }
}
