#if Queue
import GRDB

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a background session was given, or is about to be given: it outlives the upload's attempt, and the upload, until
/// it was removed there.
struct Handover: Sendable {
    let id: QueuedUpload.ID
    /// By which the background session has it.
    let identity: UUID
    /// Whether it is the upload's last attempt; no other has begun since.
    let isCurrent: Bool
    /// What has become of the upload since; `nil` where it was cleared.
    let kind: QueuedUpload.State.Kind?
}

extension Database {
    /// Notes under which identity an upload is going to be handed over.
    func beginHandover(of id: QueuedUpload.ID, as identity: UUID) throws {
        try execute(
            sql: "INSERT INTO handover (identity, id, isCurrent) VALUES (?, ?, 1)",
            arguments: [identity.uuidString, id])
    }

    func endHandover(as identity: UUID) throws {
        try execute(sql: "DELETE FROM handover WHERE identity = ?", arguments: [identity.uuidString])
    }

    func handovers() throws -> [Handover] {
        try Row.fetchAll(
            self, sql: "SELECT handover.*, state FROM handover LEFT JOIN upload USING (id) ORDER BY id"
        ).map { row in
            guard let identity = UUID(uuidString: row["identity"]) else {
                throw DatabaseError(
                    resultCode: .SQLITE_CORRUPT, message: "the handover of upload \(row["id"] as Int64) cannot be read")
            }
            let state: String? = row["state"]
            return Handover(
                id: row["id"], identity: identity, isCurrent: row["isCurrent"],
                kind: state.flatMap(QueuedUpload.State.Kind.init))
        }
    }

    /// Marks an upload as on its way again, which it is, though it was cancelled and retried.
    func resumeUpload(_ id: QueuedUpload.ID, as identity: UUID) throws {
        try execute(
            sql: "UPDATE handover SET isCurrent = identity = ? WHERE id = ?", arguments: [identity.uuidString, id])
        try execute(
            sql: """
                UPDATE upload SET state = 'sending', schedule = NULL
                WHERE id = ? AND state IN ('waiting', 'retrying')
                """, arguments: [id])
    }

    /// Counts an upload that is begun anew with the body that was handed over.
    func restartUpload(_ id: QueuedUpload.ID) throws {
        try execute(
            sql: "UPDATE upload SET attempts = attempts + 1, sent = 0 WHERE id = ? AND state = 'sending'",
            arguments: [id])
    }
}
#endif
