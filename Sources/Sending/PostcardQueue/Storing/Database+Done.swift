import GRDB
import PostcardFoundation

/// Uploads that are done: how many there were, and which are no longer listed. An upload whose end the app has not
/// acknowledged is listed. Each is called within one transaction.
extension Database {
    /// The number of uploads that were done, including those that were removed since.
    var doneCount: Int {
        get throws {
            // There is one row, unless someone has changed that.
            let count = try Int64.fetchOne(self, sql: "SELECT CAST(max(done) AS INTEGER) FROM queue") ?? 0
            return Int(clamping: min(max(count, 0), Row.maximumCount))
        }
    }

    /// The uploads that were done and need no longer be listed.
    func oldDoneUploads(_ kept: DoneUploads, at now: Date) throws -> Set<QueuedUpload.ID> {
        let done = "SELECT id FROM upload INDEXED BY upload_done WHERE state = 'done' AND ended IS NULL"
        var old: Set<QueuedUpload.ID> = []
        if let age = kept.maximumAge {
            let limit = now.addingTimeInterval(-(age / .seconds(1))).timeIntervalSince1970
            old.formUnion(try QueuedUpload.ID.fetchAll(self, sql: "\(done) AND finished < ?", arguments: [limit]))
        }
        if let count = kept.maximumCount {
            old.formUnion(
                try QueuedUpload.ID.fetchAll(
                    self, sql: "\(done) ORDER BY finished DESC, id DESC LIMIT -1 OFFSET ?", arguments: [count]))
        }
        return old
    }

    /// Removes the uploads that were done and need no longer be listed. Their bodies are removed already.
    func removeOldDoneUploads(_ kept: DoneUploads, at now: Date) throws {
        for id in try oldDoneUploads(kept, at: now) {
            try execute(sql: "DELETE FROM upload WHERE id = ?", arguments: [id])
        }
    }
}
