import GRDB
import HTTPTypes
import PostcardClient
import PostcardFoundation

/// The steps of uploads that a background session sends, as changes to their rows. Each is called within one write.
extension Database {
    /// Marks uploads as handed to a background session, also those whose time has not come: the system waits for it.
    ///
    /// - Parameter ids: The uploads, as returned by ``transfersToClaim(_:for:at:)``.
    /// - Returns: Those that were still to be claimed and can be read, in the same order.
    func claimTransfers(_ ids: [QueuedUpload.ID], for session: String, at now: Date) throws -> [UploadRow] {
        if try isQueuePaused { return [] }
        return try ids.compactMap { id in
            try execute(
                sql: """
                    UPDATE upload SET state = CASE WHEN due > ? THEN state ELSE 'sending' END, schedule = NULL,
                        session = ?, attempts = \(Self.increment("attempts")), resource = NULL,
                        sent = CASE WHEN id IN (SELECT id FROM resumption WHERE resumeData IS NOT NULL) THEN sent ELSE 0 END,
                        started = coalesce(started, max(?, coalesce(notBefore, 0)))
                    WHERE id = ? AND schedule IN (0, 1)
                    """, arguments: [now.timeIntervalSince1970, session, now.timeIntervalSince1970, id])
            // Another process may have claimed it since.
            guard changesCount == 1 else { return nil }
            try noteAttempt(of: id)
            try forgetPausing(of: id)
            return try readable(id)
        }
    }

    /// Puts another form in the place of one whose signature has ended, and the upload back into the queue: the attempt
    /// for which it was claimed has not begun, and does not count.
    ///
    /// - Returns: Whether the upload was still claimed for that attempt. Otherwise nothing is changed.
    func replaceForm(of row: UploadRow, with form: NewForm) throws -> Bool {
        let id = row.upload.id
        guard let current = try self.row(id), current.attempt == row.attempt, current.isHeld(by: row.session) else {
            return false
        }
        try ruleOutDelivery(of: id)
        try forgetResumption(of: id)
        try execute(
            sql: """
                UPDATE upload SET uuid = ?, url = ?, method = ?, total = ?, sent = 0, attempts = max(attempts, 1) - 1,
                    session = NULL, schedule = \(Self.place), state = CASE WHEN state = 'sending' THEN 'waiting' ELSE state END
                WHERE id = ?
                """,
            arguments: [form.uuid.uuidString, form.url.absoluteString, form.method.rawValue, form.totalBytes, id])
        var fields = form.headerFields
        fields.idempotencyKey = nil
        let encoder = JSONEncoder()
        try execute(
            sql: "UPDATE request SET headerFields = ?, contentType = ?, parts = ?, signed = ? WHERE id = ?",
            arguments: [
                try encoder.encode(UploadRow.Field.list(fields)), form.contentType, try encoder.encode(form.parts),
                try form.signed.map { try encoder.encode($0) }, id,
            ])
        return true
    }

    /// The sessions that have an upload, or any upload.
    ///
    /// - Parameter holdsBack: Whether those count as well that have later uploads of its group before their time.
    func sessions(of id: QueuedUpload.ID? = nil, holdingBack holdsBack: Bool = false) throws -> Set<String> {
        let values = try DatabaseValue.fetchAll(
            self,
            sql: """
                SELECT DISTINCT session FROM upload INDEXED BY upload_session
                WHERE session IS NOT NULL
                    AND (:id IS NULL OR id = :id OR :holdsBack AND id > :id AND state <> 'sending'
                        AND sequence = (SELECT sequence FROM upload WHERE id = :id))
                """, arguments: ["id": id, "holdsBack": holdsBack])
        return Set(values.compactMap(String.fromDatabaseValue))
    }

    /// The uploads that may be handed to a background session next: those that are due, the highest priority first, and
    /// then those that are due later, the earliest first.
    func transfersToClaim(
        _ claim: QueueMachine.Claim, for session: String, at now: Date
    ) throws -> [QueuedUpload.ID] {
        if try isQueuePaused { return [] }
        let waiting = """
            SELECT id FROM upload
            WHERE schedule IN (0, 1) AND id NOT IN (\(claim.excluded.map(String.init).joined(separator: ", ")))
            """
        let time = now.timeIntervalSince1970
        // A value that is not a time is due, or else its upload would never be sent.
        let due = try QueuedUpload.ID.fetchAll(
            self,
            sql: "\(waiting) AND (due <= ? OR typeof(due) <> 'real') ORDER BY priority DESC, id LIMIT ?",
            arguments: [time, claim.count])
        // An earlier process may have handed them over.
        let handedOver = try Int.fetchOne(
            self,
            sql: """
                SELECT count(*) FROM upload INDEXED BY upload_session
                WHERE session = ? AND state <> 'sending' AND due > ? AND typeof(due) = 'real'
                """, arguments: [session, time])
        let room = min(claim.count - due.count, claim.later - (handedOver ?? 0))
        guard room > 0 else { return due }
        return try due
            + QueuedUpload.ID.fetchAll(
                self,
                sql: "\(waiting) AND due > ? AND typeof(due) = 'real' ORDER BY due, priority DESC, id LIMIT ?",
                arguments: [time, room])
    }
}
