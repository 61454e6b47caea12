import GRDB
import PostcardFiles
import PostcardFoundation
import PostcardWire
import SystemPackage

extension UploadQueue {
    /// Returns the uploads in the order in which they were enqueued, except uploads with damaged rows in the database.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of uploads. Defaults to no limit.
    ///   - id: The identifier after which the list starts. Defaults to 0, the beginning.
    /// - Throws: ``UploadQueueError`` if the database cannot be read.
    public func uploads(
        limit: Int = .max, after id: QueuedUpload.ID = 0
    ) async throws(UploadQueueError) -> [QueuedUpload] {
        try await current(try await rows(limit: limit, after: id))
    }

    /// Reads the rows of uploads, in the order in which they were enqueued.
    ///
    /// - Parameter id: The identifier after which the rows start, or `nil` for the newest rows.
    func rows(limit: Int, after id: QueuedUpload.ID?) async throws(UploadQueueError) -> [QueuedUpload] {
        try await work { store throws(UploadQueueError) in
            if let id { return try store.rows(limit: limit, after: id) }
            return try store.rows(limit: limit, after: try store.idBeforeNewest(limit))
        }
    }

    /// Updates uploads whose rows were read before, with their current progress.
    func current(_ rows: [QueuedUpload]) async throws(UploadQueueError) -> [QueuedUpload] {
        try await work { [time] store throws(UploadQueueError) in rows.map { store.current($0, at: time.date()) } }
    }

    /// Returns an upload, or `nil` if there is none with the identifier.
    ///
    /// - Throws: ``UploadQueueError`` if the database cannot be read or the upload's row is damaged.
    public func upload(_ id: QueuedUpload.ID) async throws(UploadQueueError) -> QueuedUpload? {
        try await work { [time] store throws(UploadQueueError) in
            try store.database.read { try $0.upload(id) }.map { store.current($0, at: time.date()) }
        }
    }

    /// The number of uploads that servers have accepted since the queue was made, even if they are no longer listed.
    ///
    /// - Throws: ``UploadQueueError`` if the database cannot be read.
    public var doneCount: Int {
        get async throws(UploadQueueError) {
            try await work { store throws(UploadQueueError) in try store.database.read { try $0.doneCount } }
        }
    }

    /// Whether the whole queue is paused.
    ///
    /// - Throws: ``UploadQueueError`` if the database cannot be read.
    public var isPaused: Bool {
        get async throws(UploadQueueError) {
            try await work { store throws(UploadQueueError) in try store.database.read { try $0.isQueuePaused } }
        }
    }

    /// Describes the queue in a text for a support mail: the events that the queue waits for, the attempts and errors
    /// of the uploads that are not done, and the log of this process. The system's log has the log of this process too
    /// (subsystem `Postcard`).
    ///
    /// ```swift
    /// mail.attach(await queue.diagnostics())
    /// ```
    ///
    /// The text names servers, but contains no field values, filenames, header fields or paths of URLs. It is for
    /// people, so its format may change. If the queue cannot be opened, the text has the error.
    @concurrent public func diagnostics() async -> String {
        let now = time.date()
        var lines = ["Queue of uploads at \(now.formatted(.iso8601))"]
        lines.append("Background session: \(session?.identifier ?? "none")")
        do throws(UploadQueueError) {
            let store = try await opening.store()
            lines += try store.diagnosis(at: now)
        } catch {
            lines.append("The queue cannot be read (\(error.code)): \(error.message)")
        }
        return (lines + ["", "In this process:"] + opening.log.lines).joined(separator: "\n") + "\n"
    }
}

extension QueueStore {
    private static let maximumDescribed = 100

    /// The state of the queue in the database and on disk, as lines of text.
    fileprivate func diagnosis(at now: Date) throws(UploadQueueError) -> [String] {
        let (counts, isPaused, ids) = try database.read { db in
            try (
                db.counts(), db.isQueuePaused,
                QueuedUpload.ID.fetchAll(
                    db, sql: "SELECT id FROM upload WHERE state <> 'done' ORDER BY id LIMIT ?",
                    arguments: [Self.maximumDescribed])
            )
        }
        let states = counts.sorted { $0.key < $1.key }.map { "\($0.value) \($0.key)" }
        var lines = ["Uploads: \(states.isEmpty ? "none" : states.joined(separator: ", "))"]
        if isPaused { lines.append("The queue is paused.") }
        if let room = try? DurableFiles.freeRoom(at: directory.root.path) {
            lines.append("Free space: \(room.bytes) bytes")
        }
        for id in ids {
            // An upload with a damaged row is described only by its identifier.
            let row = try? database.read { try $0.row(id) }
            lines.append(row.map { line(of: $0, at: now) } ?? "Upload \(id): its row is damaged.")
        }
        return lines
    }

    private func line(of row: UploadRow, at now: Date) -> String {
        let upload = current(row.upload, at: now)
        var line =
            "Upload \(upload.id): \(upload.state.name), \(upload.attempts) attempts, \(row.failures) failures, "
            + "\(upload.bytesSent) of \(upload.totalBytes) bytes, to \(upload.url.origin)"
        if let session = row.session { line += ", in the session \(session)" }
        if row.possibleDelivery != nil { line += ", may have arrived" }
        if upload.state.kind != .importing, !hasBody(row) { line += ", its form is missing" }
        switch upload.state {
        case .importing(because: let failure?), .failed(because: let failure):
            line += ": \(failure.code). \(failure.message)"
        case .retrying(let due, let failure):
            line += ", due \(due.formatted(.iso8601)): \(failure.code). \(failure.message)"
        case .importing(because: nil), .waiting, .waitingForNetwork, .sending, .paused, .done, .cancelled:
            if let reason = row.reason { line += ": \(reason)" }
        }
        return line
    }

    fileprivate func rows(limit: Int, after id: QueuedUpload.ID) throws(UploadQueueError) -> [QueuedUpload] {
        try database.read { db in
            // Rows are read one by one, so that only a row that is too large is left out.
            try QueuedUpload.ID.fetchAll(
                db, sql: "SELECT id FROM upload WHERE id > ? ORDER BY id LIMIT ?", arguments: [id, limit]
            ).compactMap { id in
                do { return try db.upload(id) } catch is RowDamage { return nil }
            }
        }
    }

    /// The identifier of the newest upload that is older than the newest `count` uploads; 0 if there is none.
    fileprivate func idBeforeNewest(_ count: Int) throws(UploadQueueError) -> QueuedUpload.ID {
        try database.read { db in
            try Int64.fetchOne(
                db, sql: "SELECT id FROM upload ORDER BY id DESC LIMIT 1 OFFSET ?", arguments: [max(count, 0)]) ?? 0
        }
    }

    /// Whether the body of an upload is still on disk.
    func hasBody(_ row: UploadRow) -> Bool {
        guard let file = try? directory.openBody(row.uuid, length: row.upload.totalBytes) else { return false }
        try? file.close()
        return true
    }
}
