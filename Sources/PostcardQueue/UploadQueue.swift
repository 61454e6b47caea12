import GRDB
public import HTTPTypes
import PostcardClient
public import PostcardForm
import SystemPackage

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// Uploads that outlive the process: each form is sent once, whatever ends in between.
///
/// In an app the system carries them, also while the app is suspended or gone:
///
/// ```swift
/// let queue = try UploadQueue(directory: folder, session: BackgroundSession(identifier: "com.example.pets"))
/// try await queue.enqueue(form, to: url)
/// try await queue.run()
/// ```
///
/// A program of its own sends them itself:
///
/// ```swift
/// let queue = try UploadQueue(directory: folder)
/// try await queue.enqueue(form, to: url)
/// try await queue.run(UploadClient())
/// ```
///
/// ``enqueue(_:to:method:headerFields:conditions:)`` returns when the whole form is on disk; its files may then change or
/// go. An upload carries the same `Idempotency-Key` in every attempt of every process, so that a server that honors it
/// stores the form once.
///
/// The queue is a directory with an SQLite database and a file for each form. Only its owner can read it, also the header
/// fields that a form was enqueued with. The directory can move, as an app's container does on every update. Several
/// processes can enqueue and read; one at a time sends with ``run(_:options:)``.
public final class UploadQueue: Sendable {
    let store: QueueStore
    let session: BackgroundSession?
    let outbox: BackgroundOutbox?
    private let rules: FormRules?

    /// Opens a queue, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - directory: Where it is, a directory of its own. One that others can look into is closed to them.
    ///   - session: How the system carries uploads. Make the queue with it at every start of the app, also when the system
    ///     starts the app in the background. Defaults to `nil`: uploads are sent by ``run(_:options:)``.
    ///   - rules: Which fields and files forms may have. Defaults to `nil`: any.
    /// - Throws: ``UploadQueueError`` if the directory cannot be used, if others can write to it, or if the database in it is
    ///   damaged or newer, in which case it is left as it is.
    public convenience init(
        directory: URL, session: BackgroundSession? = nil, rules: FormRules? = nil
    ) throws(UploadQueueError) {
        #if canImport(Darwin)
        try self.init(
            directory: directory, session: session, service: session.map { URLSessionTransferService($0) }, rules: rules
        )
        #else
        try self.init(directory: directory, session: session, service: nil, rules: rules)
        #endif
    }

    /// Opens a queue whose uploads a transfer service carries.
    package init(
        directory: URL, session: BackgroundSession?, service: (any TransferService)?, rules: FormRules? = nil
    ) throws(UploadQueueError) {
        store = try QueueStore(directory)
        self.session = session
        self.rules = rules
        if let session, let service {
            let outbox = BackgroundOutbox(session, store, service)
            try BackgroundSessions.shared.add(outbox)
            self.outbox = outbox
        } else {
            outbox = nil
        }
    }

    deinit {
        outbox?.close()
    }

    /// Puts a form into the queue. When this returns, the form is on disk and will be sent.
    ///
    /// - Parameters:
    ///   - form: The form. Its files and streams are copied.
    ///   - url: Where it is sent, `http` or `https`.
    ///   - method: The request's method. Defaults to POST.
    ///   - headerFields: Further header fields, which are kept on disk. An `Idempotency-Key` is added if there is none.
    ///   - conditions: When it may be sent. By default as soon as possible.
    /// - Returns: The upload's identifier.
    /// - Throws: `FormError` if a file cannot be read; `UploadError` if nothing can be sent to the URL or the form breaks
    ///   the queue's rules; ``UploadQueueError`` if the queue cannot keep it. Nothing is left of the form then.
    @discardableResult
    public func enqueue(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), conditions: UploadConditions = UploadConditions()
    ) async throws -> QueuedUpload.ID {
        let layout = try form.layout()
        if let problem = try rules?.problems(in: layout).first { throw UploadError.brokenRule(problem) }
        // What a request would not have is not kept either.
        let request = try UploadRequest(
            url: url, method: method, headerFields: headerFields, body: UploadBody(layout), maximumResponseBytes: 0)
        var fields = request.headerFields
        fields[.contentType] = nil
        // Credentials in the URL are kept there.
        if !headerFields.contains(.authorization) { fields[.authorization] = nil }
        let uuid = UUID()
        let body = try await store.folder.write(layout, for: uuid)
        let new = NewUpload(
            uuid: uuid, url: url, method: method, headerFields: fields, contentType: layout.contentType,
            parts: body.parts, totalBytes: body.length, conditions: conditions)
        do {
            let id = try store.database.write { try $0.insert(new, at: Date()) }
            store.noteChange()
            return id
        } catch {
            store.folder.removeBody(uuid)
            throw error
        }
    }
}

// MARK: - Reading

extension UploadQueue {
    /// The uploads in the order in which they were enqueued. One that the database holds in a way that cannot be read is
    /// left out.
    ///
    /// - Parameters:
    ///   - limit: The most of them. Defaults to all.
    ///   - id: Only those after this one. Defaults to all.
    public func uploads(limit: Int = .max, after id: QueuedUpload.ID = 0) throws(UploadQueueError) -> [QueuedUpload] {
        try store.database.read { db in
            // One after the other, so that one that is too large to be read is left out alone.
            try QueuedUpload.ID.fetchAll(
                db, sql: "SELECT id FROM upload WHERE id > ? ORDER BY id LIMIT ?", arguments: [id, limit]
            ).compactMap { id in
                do { return try db.upload(id) } catch is RowDamage { return nil }
            }
        }.map(store.progress.applied(to:))
    }

    /// One upload; `nil` if there is none with that identifier.
    ///
    /// - Throws: ``UploadQueueError``, also if the database holds it in a way that cannot be read.
    public func upload(_ id: QueuedUpload.ID) throws(UploadQueueError) -> QueuedUpload? {
        try store.database.read { try $0.upload(id) }.map(store.progress.applied(to:))
    }

    /// The identifier after which the newest uploads begin.
    func idBeforeNewest(_ count: Int) throws(UploadQueueError) -> QueuedUpload.ID {
        try store.database.read { db in
            try Int64.fetchOne(
                db, sql: "SELECT id FROM upload ORDER BY id DESC LIMIT 1 OFFSET ?", arguments: [max(count, 0)]) ?? 0
        }
    }

    /// Whether the whole queue is paused.
    public var isPaused: Bool {
        get throws(UploadQueueError) { try store.database.read { try $0.isQueuePaused } }
    }

    /// Whether the body of an upload is still on disk.
    package func bodyExists(_ id: QueuedUpload.ID) throws -> Bool {
        guard let record = try store.database.read({ try $0.record(id) }) else { return false }
        return hasBody(record)
    }

    private func hasBody(_ record: UploadRecord) -> Bool {
        guard let file = try? store.folder.openBody(record.uuid, length: record.upload.totalBytes) else { return false }
        try? file.close()
        return true
    }
}

// MARK: - Changing uploads

extension UploadQueue {
    /// Sends an upload again that failed or was cancelled, as if it had just been enqueued, or does not wait any longer for
    /// the next attempt of one that is retried. If the upload failed after the server had accepted it, as its reason then
    /// says, it is there twice.
    ///
    /// - Throws: ``UploadQueueError`` if there is none, if it has not ended, or if its form is no longer on disk.
    public func retry(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try change(id) { db, record in
            switch record.upload.state {
            case .failed, .cancelled, .retrying: try db.retryUpload(id)
            case .waiting, .sending, .paused, .done:
                throw UploadQueueError.state(id, record.upload.state.name, cannot: "retried")
            }
            if !hasBody(record) { throw UploadQueueError.bodyMissing(id) }
        }
    }

    /// Cancels an upload. One that is being sent is ended by whatever sends it, or by the next run if no process sends now;
    /// if the server has accepted it by then, it is done.
    ///
    /// - Throws: ``UploadQueueError`` if there is none, or if it is done.
    public func cancel(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try store.database.write { db in
            guard let state = try db.state(id) else { throw UploadQueueError.unknown(id) }
            if state == .done { throw UploadQueueError.state(id, state.rawValue, cannot: "cancelled") }
            try db.cancelUpload(id)
        }
        store.noteChange()
    }

    /// Stops an upload until it is resumed. One of a group holds back those behind it.
    ///
    /// - Throws: ``UploadQueueError`` if there is none, or if it has ended.
    public func pause(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try change(id) { db, record in
            if record.upload.state.isEnded {
                throw UploadQueueError.state(id, record.upload.state.name, cannot: "paused")
            }
            try db.pauseUpload(id)
        }
    }

    /// Lets a paused upload be sent again. It resumes where it stopped, if the server resumes uploads.
    ///
    /// - Throws: ``UploadQueueError`` if there is none, or if it is not paused.
    public func resume(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try change(id) { db, record in
            guard record.upload.state == .paused else {
                throw UploadQueueError.state(id, record.upload.state.name, cannot: "resumed")
            }
            try db.retryUpload(id)
        }
    }

    private func change(
        _ id: QueuedUpload.ID, _ work: (Database, UploadRecord) throws -> Void
    ) throws(UploadQueueError) {
        try store.database.write { db in
            guard let record = try db.record(id) else { throw UploadQueueError.unknown(id) }
            try work(db, record)
        }
        store.noteChange()
    }
}

// MARK: - Changing the whole queue

extension UploadQueue {
    /// Stops sending, now and after every restart, until ``resume()``. Uploads that are being sent go back into the queue,
    /// and new ones wait.
    public func pause() throws(UploadQueueError) {
        try store.database.write { try $0.setQueuePaused(true) }
        store.noteChange()
    }

    /// Lets the queue send again. Uploads that were paused one by one stay paused.
    public func resume() throws(UploadQueueError) {
        try store.database.write { try $0.setQueuePaused(false) }
        store.noteChange()
    }

    /// Sends every upload again that failed and whose form is still on disk.
    public func retryAll() throws(UploadQueueError) {
        try store.database.write { db in
            for id in try QueuedUpload.ID.fetchAll(db, sql: "SELECT id FROM upload WHERE state = 'failed' ORDER BY id")
            {
                do {
                    if let record = try db.record(id), hasBody(record) { try db.retryUpload(id) }
                } catch is RowDamage {
                    // It would fail again.
                }
            }
        }
        store.noteChange()
    }

    /// Cancels every upload that has not ended.
    public func cancelAll() throws(UploadQueueError) {
        try store.database.write { try $0.cancelAllUploads() }
        store.noteChange()
    }

    /// Removes every upload that is done, failed or cancelled, with its form.
    ///
    /// - Returns: How many.
    @discardableResult
    public func clear() throws(UploadQueueError) -> Int {
        let (count, bodies) = try store.database.write { try $0.removeEndedUploads() }
        for body in bodies { store.folder.removeBody(body) }
        store.noteChange()
        return count
    }
}
