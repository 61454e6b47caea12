#if Queue
import GRDB
public import HTTPTypes
public import PostcardForm

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Uploads that outlive the process: each form is sent once, whatever ends in between.
///
/// ```swift
/// let queue = try UploadQueue(directory: folder)
/// try queue.enqueue(form, to: url)
/// try await queue.run(UploadClient())
/// ```
///
/// ``enqueue(_:to:method:headerFields:files:conditions:)`` returns when the form is on disk. ``run(_:options:)`` sends
/// what is in the queue, until its task is cancelled. An upload carries the same `Idempotency-Key` in every attempt of
/// every process, so that a server that heeds it stores the form once. In an app ``run(in:options:)`` does so by uploads
/// that go on without it.
///
/// The queue is a directory with an SQLite database. Several processes may put uploads into it and look at it; one at
/// a time sends. Header fields are kept as they are, secrets included, in files that only their owner may read: give
/// secrets to the client's interceptors instead, where it is a client that sends.
public final class UploadQueue: Sendable {
    let directory: QueueDirectory
    let database: QueueDatabase
    /// Wakes who sends.
    let changes = QueueChanges()
    /// Wakes who looks on.
    let sights = QueueChanges()
    let progress = QueueProgress()

    /// Opens a queue, or makes it.
    ///
    /// - Parameter directory: Where it lives.
    /// - Throws: ``UploadQueueError`` where the directory cannot be used, or where the database in it is damaged or
    ///   newer: it is then left as it is.
    public init(directory: URL) throws(UploadQueueError) {
        self.directory = try QueueDirectory(directory)
        database = try QueueDatabase(path: self.directory.databasePath)
    }

    /// Puts a form into the queue. When this returns it is on disk and will be sent.
    ///
    /// - Parameters:
    ///   - form: The form. Streams are refused: they end with the process.
    ///   - url: Where it goes, `http` or `https`.
    ///   - method: POST unless given.
    ///   - headerFields: Further header fields. An `Idempotency-Key` is added unless there is one.
    ///   - files: Whether the form's files stay where they are or are copied.
    ///   - conditions: What has to hold before it is sent.
    /// - Returns: By which the queue knows the upload.
    /// - Throws: `FormError` where a file cannot be read; ``UploadQueueError`` where the queue cannot take the form,
    ///   and then holds nothing of it.
    @discardableResult
    public func enqueue(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), files: QueuedFiles = .referenced,
        conditions: UploadConditions = UploadConditions()
    ) throws -> QueuedUpload.ID {
        var recording = FormRecording(form, in: directory, files: files)
        do {
            let (recorded, totalBytes) = try recording.record()
            let request = EnqueuedRequest(
                url: url, method: method, headerFields: headerFields.withoutKey.map(QueuedForm.HeaderField.init),
                idempotencyKey: headerFields.key ?? "\"\(UUID().uuidString)\"", form: recorded,
                folder: recording.folder, totalBytes: totalBytes, conditions: conditions)
            let id = try database.write { try $0.insertUpload(request, at: Date()) }
            noteChange()
            return id
        } catch {
            if let folder = recording.folder { directory.remove(folder) }
            throw error
        }
    }

    /// The uploads in the order in which they were enqueued.
    ///
    /// - Parameters:
    ///   - limit: The most of them.
    ///   - id: Those behind this one.
    public func uploads(limit: Int = .max, after id: QueuedUpload.ID = 0) throws(UploadQueueError) -> [QueuedUpload] {
        try database.read { db in
            try Row.fetchAll(
                db, sql: "\(QueuedUpload.columns) WHERE upload.id > ? ORDER BY upload.id LIMIT ?",
                arguments: [id, limit]
            ).map(QueuedUpload.init)
        }.map(progress.applied(to:))
    }

    /// One upload; `nil` where there is none of that identifier.
    public func upload(_ id: QueuedUpload.ID) throws(UploadQueueError) -> QueuedUpload? {
        try database.read { db in try Self.upload(id, in: db) }.map(progress.applied(to:))
    }

    /// Lets an upload that failed or was cancelled go again, as if it had just been enqueued. One whose reason says that
    /// the server has taken it, and that its answer was found wanting, is then there twice.
    ///
    /// - Throws: ``UploadQueueError`` where there is none, or where it is not ended, or where its copies are gone.
    public func retry(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try database.write { db in
            guard let upload = try Self.upload(id, in: db) else { throw UploadQueueError.unknown(id) }
            switch upload.state {
            case .failed, .cancelled: try db.retryUpload(id)
            case .retrying: try db.retryUpload(id)
            case .waiting, .sending, .done: throw UploadQueueError.state(id, upload.state, cannot: "retried")
            }
        }
        noteChange()
    }

    /// Gives an upload up. One that is on its way is ended by who runs the queue, or by the next run where it goes on
    /// in the background; if the server has taken it by then, it is done.
    ///
    /// - Throws: ``UploadQueueError`` where there is none, or where it is done.
    public func cancel(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try database.write { db in
            guard let upload = try Self.upload(id, in: db) else { throw UploadQueueError.unknown(id) }
            if case .done = upload.state { throw UploadQueueError.state(id, upload.state, cannot: "cancelled") }
            try db.cancelUpload(id)
        }
        noteChange()
    }

    /// Takes every upload that is done, failed or cancelled out of the queue, with its copies.
    ///
    /// - Returns: How many.
    @discardableResult
    public func clear() throws(UploadQueueError) -> Int {
        let folders = try database.write { db in
            let ended = try Row.fetchAll(
                db,
                sql: """
                    SELECT id, folder FROM upload JOIN request USING (id)
                    WHERE state IN ('done', 'failed', 'cancelled')
                    """)
            for row in ended { try db.removeUpload(row["id"]) }
            return ended.map { $0["folder"] as String? }
        }
        for case let folder? in folders { directory.remove(folder) }
        noteChange()
        return folders.count
    }

    func noteChange() {
        changes.note()
        sights.note()
    }

    static func upload(_ id: QueuedUpload.ID, in db: Database) throws -> QueuedUpload? {
        try Row.fetchOne(db, sql: "\(QueuedUpload.columns) WHERE upload.id = ?", arguments: [id])
            .map(QueuedUpload.init)
    }
}

extension HTTPFields {
    fileprivate var key: String? { HTTPField.Name("Idempotency-Key").flatMap { self[$0] } }

    fileprivate var withoutKey: HTTPFields {
        HTTPFields(self.filter { $0.name.canonicalName != "idempotency-key" })
    }
}
#endif
