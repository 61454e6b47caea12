import GRDB
import PostcardFoundation

/// What stops attempts and what they leave, as changes to the table `resumption`. Each is called within one write.
extension Database {
    /// More than the system needs to describe a file and a request, in bytes.
    private static let maximumResumeDataBytes = 1 << 20

    /// The attempts that are to be stopped so that their uploads can continue.
    func pausingAttempts() throws -> Set<AttemptID> {
        let rows = try Row.fetchAll(
            self, sql: "SELECT uuid, stopped FROM resumption JOIN upload USING (id) WHERE resumeData IS NULL")
        return try Set(
            rows.compactMap { row in
                guard let uuid = UUID(bodyName: try row.decode(DatabaseValue.self, forColumn: "uuid")),
                    let number = try? row.count("stopped")
                else { return nil }
                return AttemptID(upload: uuid, number: max(number, 1))
            })
    }

    /// Notes that an attempt was stopped. Without data, the upload starts over.
    ///
    /// - Parameters:
    ///   - progress: How far uploads were, as far as it is known.
    ///   - failure: The failure of an upload whose bytes had all been sent. `nil` lets it start over, as any other.
    func notePause(
        of attempt: AttemptID, resumingWith data: Data?, _ progress: [QueuedUpload.ID: Int64],
        failing failure: QueuedUpload.Failure?
    ) throws {
        let id = try QueuedUpload.ID.fetchOne(
            self,
            sql: """
                SELECT id FROM upload JOIN resumption USING (id)
                WHERE uuid = ? AND stopped = ? AND resumeData IS NULL
                """, arguments: [attempt.upload.uuidString, attempt.number])
        guard let id else { return }
        if let data, data.count <= Self.maximumResumeDataBytes {
            try execute(sql: "UPDATE resumption SET resumeData = ? WHERE id = ?", arguments: [data, id])
            guard let bytesSent = progress[id] else { return }
            try execute(sql: "UPDATE upload SET sent = ? WHERE id = ?", arguments: [bytesSent, id])
        } else {
            try forgetResumption(of: id)
            if let failure, let sent = progress[id], let row = try row(id), sent >= row.upload.totalBytes {
                return try failUpload(id, because: failure, includingPaused: true)
            }
            try execute(sql: "UPDATE upload SET sent = 0 WHERE id = ?", arguments: [id])
        }
    }

    /// Notes what an attempt has used and left. The system resumes with the same data only once.
    func noteResumption(
        after attempt: QueueMachine.EndedAttempt, _ settlement: Settlement, of id: QueuedUpload.ID
    ) throws {
        if attempt.hasBegun {
            try execute(
                sql: "DELETE FROM resumption WHERE id = ? AND stopped < ?", arguments: [id, attempt.id.number])
        }
        guard case .delay = settlement, let data = attempt.resumeData, data.count <= Self.maximumResumeDataBytes
        else { return }
        try execute(
            sql: "INSERT OR REPLACE INTO resumption (id, stopped, resumeData) VALUES (?, ?, ?)",
            arguments: [id, attempt.id.number, data])
    }
}
