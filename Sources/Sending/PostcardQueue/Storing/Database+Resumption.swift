import GRDB
import PostcardFoundation

/// The data with which the system resumes uploads that it has stopped, as changes to the table `resumption`. Each
/// function is called within one write.
extension Database {
    /// Notes that a background session is to stop an upload so that it can continue, or all of them: call this before
    /// they are taken from the session.
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

    /// Notes that an upload is sent again before the system has stopped it.
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
