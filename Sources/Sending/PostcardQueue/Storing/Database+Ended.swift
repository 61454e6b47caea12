import GRDB
import PostcardFoundation

/// Reads and changes the unacknowledged ends of uploads. Each method is called within one transaction.
extension Database {
    /// The sequence numbers of ends that the app has not acknowledged, with their uploads.
    ///
    /// - Parameters:
    ///   - end: Only ends with a higher sequence number are returned.
    ///   - limit: The maximum number of ends to return.
    func unacknowledgedEnds(after end: Int64, limit: Int) throws -> [(end: Int64, id: QueuedUpload.ID)] {
        // The queue writes only values of this type.
        try Row.fetchAll(
            self,
            sql: """
                SELECT ended, id FROM upload INDEXED BY upload_ended
                WHERE ended IS NOT NULL AND ended > ? AND typeof(ended) = 'integer' ORDER BY ended, id LIMIT ?
                """, arguments: [end, limit]
        ).map { (try $0.decode(Int64.self, forColumn: "ended"), try $0.decode(Int64.self, forColumn: "id")) }
    }

    /// Records that the app has acknowledged the end of an upload. Does nothing if the upload has ended again.
    func acknowledge(_ end: Int64, of id: QueuedUpload.ID) throws {
        try cachedStatement(sql: "UPDATE upload SET ended = NULL WHERE id = ? AND ended = ?")
            .execute(arguments: [id, end])
    }
}

extension QueueStore {
    /// The maximum number of uploads to read at once, because each may have a response of 64 KiB.
    private static let batch = 50

    func unacknowledged(after end: Int64) throws(UploadQueueError) -> (uploads: [QueuedUpload], last: Int64) {
        try database.read { db in
            let ends = try db.unacknowledgedEnds(after: end, limit: Self.batch)
            let uploads = try ends.compactMap { end in
                do { return try db.upload(end.id) } catch is RowDamage { return nil }
            }
            return (uploads, ends.last?.end ?? end)
        }
    }

    func acknowledge(_ uploads: [QueuedUpload], at now: Date) throws(UploadQueueError) {
        let ends = uploads.compactMap { upload in upload.end.map { (end: $0, id: upload.id) } }
        if ends.isEmpty { return }
        try database.write { db in
            for (end, id) in ends { try db.acknowledge(end, of: id) }
            try db.removeOldDoneUploads(retention, at: now)
        }
        updates.notify()
    }
}

/// Counts the uploads that are done, and finds those that are no longer listed. An upload whose end the app has not
/// acknowledged is always listed. Each method is called within one transaction.
extension Database {
    /// The number of uploads that servers have accepted, even if they were removed later.
    var doneCount: Int {
        get throws {
            // The table has one row, unless another program has changed it.
            let count = try Int64.fetchOne(self, sql: "SELECT CAST(max(done) AS INTEGER) FROM queue") ?? 0
            return Int(clamping: min(max(count, 0), Row.maximumCount))
        }
    }

    /// The uploads that are done and no longer listed.
    func oldDoneUploads(_ retention: UploadRetention, at now: Date) throws -> Set<QueuedUpload.ID> {
        let done = "SELECT id FROM upload INDEXED BY upload_done WHERE state = 'done' AND ended IS NULL"
        var old: Set<QueuedUpload.ID> = []
        if let age = retention.maximumAge {
            let limit = now.addingTimeInterval(-(age / .seconds(1))).timeIntervalSince1970
            old.formUnion(try QueuedUpload.ID.fetchAll(self, sql: "\(done) AND finished < ?", arguments: [limit]))
        }
        if let count = retention.maximumCount {
            old.formUnion(
                try QueuedUpload.ID.fetchAll(
                    self, sql: "\(done) ORDER BY finished DESC, id DESC LIMIT -1 OFFSET ?", arguments: [count]))
        }
        return old
    }

    /// Removes the uploads that are done and no longer listed. Their bodies were removed before.
    func removeOldDoneUploads(_ retention: UploadRetention, at now: Date) throws {
        for id in try oldDoneUploads(retention, at: now) {
            try execute(sql: "DELETE FROM upload WHERE id = ?", arguments: [id])
        }
    }
}
