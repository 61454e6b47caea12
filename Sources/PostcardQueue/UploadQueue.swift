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

/// Uploads that outlive the process. Each form is sent once, even if the process, the network or the power fails.
///
/// In an app, the system sends them, also while the app is suspended or closed:
///
/// ```swift
/// let queue = try UploadQueue(directory: folder, session: BackgroundSession(identifier: "com.example.pets"))
/// try await queue.enqueue(form, to: url)
/// try await queue.run()
/// ```
///
/// Other programs send them themselves:
///
/// ```swift
/// let queue = try UploadQueue(directory: folder)
/// try await queue.enqueue(form, to: url)
/// try await queue.run(UploadClient())
/// ```
///
/// ``enqueue(_:to:method:headerFields:conditions:)`` returns when the whole form is on disk. The form's files may then
/// change or be removed. All attempts in all processes send the same `Idempotency-Key`, so a server that honors it
/// stores the form once.
///
/// The queue is a directory with an SQLite database and a file for each form. Only its owner can read it, including the
/// stored header fields. The directory may be moved, as iOS does with an app's container on every update. Any number of
/// processes can enqueue and read at the same time. Only one at a time can send with ``run(_:options:)``.
public final class UploadQueue: Sendable {
    let store: QueueStore
    let session: BackgroundSession?
    let sender: BackgroundSender?
    let time: QueueTime
    private let rules: FormRules?

    /// Opens a queue, and makes it if there is none.
    ///
    /// - Parameters:
    ///   - directory: The queue's directory, used for nothing else. If other users can read it, their access is
    ///     removed.
    ///   - session: The background session that sends uploads. Make the queue with it at every start of the app, also
    ///     when the system starts the app in the background. Defaults to `nil`: uploads are sent by
    ///     ``run(_:options:)``.
    ///   - rules: The fields and files that forms may have. Defaults to `nil`: any. Photos that are fitted to the
    ///     server's limit fit these.
    /// - Throws: ``UploadQueueError`` if the directory cannot be used, if other users can write to it, or if its
    ///   database is damaged or newer. The database is not changed then.
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

    /// Opens a queue whose uploads a transfer service sends.
    ///
    /// - Parameter time: The clocks by which uploads are due. Defaults to those of the system.
    package init(
        directory: URL, session: BackgroundSession?, service: (any TransferService)?, rules: FormRules? = nil,
        time: QueueTime = QueueTime()
    ) throws(UploadQueueError) {
        store = try QueueStore(directory)
        self.session = session
        self.rules = rules
        self.time = time
        if let session, let service {
            let sender = BackgroundSender(session, store, service, time)
            try BackgroundSessionRegistry.shared.add(sender)
            self.sender = sender
        } else {
            sender = nil
        }
    }

    deinit {
        sender?.close()
    }

    /// Adds a form to the queue. When this returns, the form is on disk and will be sent.
    ///
    /// - Parameters:
    ///   - form: The form. Its files and streams are copied. Parts with a preparation are prepared first, such as
    ///     photos that must fit. The server's limit is then that of the queue's rules.
    ///   - url: The `http` or `https` URL to send it to.
    ///   - method: The method of the request. Defaults to POST.
    ///   - headerFields: Further header fields, which are stored on disk. An `Idempotency-Key` is added if there is
    ///     none.
    ///   - conditions: When the upload may be sent. Defaults to as soon as possible.
    /// - Returns: The upload's identifier.
    /// - Throws: `FormError` if a file cannot be read; `UploadError` if the URL cannot be used or the form breaks the
    ///   queue's rules; ``UploadQueueError`` if the form cannot be stored; errors of the form's preparations,
    ///   unchanged. Nothing of the form is left on disk then.
    @discardableResult
    public func enqueue(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), conditions: UploadConditions = UploadConditions()
    ) async throws -> QueuedUpload.ID {
        try await form.withPreparedParts(within: FormSizeLimits(rules)) { form in
            try await add(form, to: url, method: method, headerFields: headerFields, conditions: conditions)
        }
    }

    private func add(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method, headerFields: HTTPFields,
        conditions: UploadConditions
    ) async throws -> QueuedUpload.ID {
        let layout = try form.layout()
        if let problem = try rules?.problems(in: layout).first { throw UploadError.brokenRule(problem) }
        // Header fields that no request would have are not stored.
        let request = try UploadRequest(
            url: url, method: method, headerFields: headerFields, body: UploadBody(layout), maximumResponseBytes: 0)
        var fields = request.headerFields
        fields[.contentType] = nil
        // Credentials in the URL stay there.
        if !headerFields.contains(.authorization) { fields[.authorization] = nil }
        let uuid = UUID()
        let body = try await store.directory.write(layout, for: uuid)
        let new = NewUpload(
            uuid: uuid, url: url, method: method, headerFields: fields, contentType: layout.contentType,
            parts: body.parts, totalBytes: body.length, conditions: conditions)
        do {
            let id = try store.database.write { try $0.insert(new, at: time.date()) }
            store.notifyChange()
            return id
        } catch {
            store.directory.removeBody(uuid)
            throw error
        }
    }
}

// MARK: - Reading

extension UploadQueue {
    /// Returns the uploads in the order in which they were enqueued. Uploads whose rows in the database are damaged are
    /// left out.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of uploads. Defaults to no limit.
    ///   - id: The identifier after which the list starts. Defaults to 0: from the beginning.
    /// - Throws: ``UploadQueueError`` if the database cannot be read.
    public func uploads(limit: Int = .max, after id: QueuedUpload.ID = 0) throws(UploadQueueError) -> [QueuedUpload] {
        try store.database.read { db in
            // Read one by one, so that only a row that is too large is left out.
            try QueuedUpload.ID.fetchAll(
                db, sql: "SELECT id FROM upload WHERE id > ? ORDER BY id LIMIT ?", arguments: [id, limit]
            ).compactMap { id in
                do { return try db.upload(id) } catch is RowDamage { return nil }
            }
        }.map(store.progress.applied(to:))
    }

    /// Returns an upload, or `nil` if there is none with that identifier.
    ///
    /// - Throws: ``UploadQueueError`` if the database cannot be read or the upload's row is damaged.
    public func upload(_ id: QueuedUpload.ID) throws(UploadQueueError) -> QueuedUpload? {
        try store.database.read { try $0.upload(id) }.map(store.progress.applied(to:))
    }

    /// The identifier after which the newest uploads start.
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
        guard let row = try store.database.read({ try $0.row(id) }) else { return false }
        return hasBody(row)
    }

    private func hasBody(_ row: UploadRow) -> Bool {
        guard let file = try? store.directory.openBody(row.uuid, length: row.upload.totalBytes) else { return false }
        try? file.close()
        return true
    }
}

// MARK: - Changing uploads

extension UploadQueue {
    /// Sends a failed or cancelled upload again, as if it had just been enqueued. An upload that waits for its next
    /// attempt is sent now.
    ///
    /// An upload may have failed although the server accepted it, as its error then says. The server may store that one
    /// twice.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, if it is waiting, being sent, paused or done, or if
    ///   its form is no longer on disk.
    public func retry(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try change(id) { db, row in
            switch row.upload.state {
            case .failed, .cancelled, .retrying: try db.retryUpload(id)
            case .waiting, .sending, .paused, .done:
                throw UploadQueueError.state(id, row.upload.state.name, cannot: "retried")
            }
            if !hasBody(row) { throw UploadQueueError.bodyMissing(id) }
        }
    }

    /// Cancels an upload. If it is being sent, the process or system that sends it stops. If the server has accepted it
    /// by then, it is done.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it is done.
    public func cancel(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try store.database.write { db in
            guard let state = try db.state(id) else { throw UploadQueueError.unknown(id) }
            if state == .done { throw UploadQueueError.state(id, state.rawValue, cannot: "cancelled") }
            try db.cancelUpload(id)
        }
        store.notifyChange()
    }

    /// Pauses an upload until it is resumed. It holds back the later uploads of its group.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it has ended.
    public func pause(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try change(id) { db, row in
            if row.upload.state.isEnded {
                throw UploadQueueError.state(id, row.upload.state.name, cannot: "paused")
            }
            try db.pauseUpload(id)
        }
    }

    /// Resumes a paused upload. If the server resumes uploads, it continues where it stopped.
    ///
    /// - Throws: ``UploadQueueError`` if there is no such upload, or if it is not paused.
    public func resume(_ id: QueuedUpload.ID) throws(UploadQueueError) {
        try change(id) { db, row in
            guard row.upload.state == .paused else {
                throw UploadQueueError.state(id, row.upload.state.name, cannot: "resumed")
            }
            try db.retryUpload(id)
        }
    }

    private func change(
        _ id: QueuedUpload.ID, _ work: (Database, UploadRow) throws -> Void
    ) throws(UploadQueueError) {
        try store.database.write { db in
            guard let row = try db.row(id) else { throw UploadQueueError.unknown(id) }
            try work(db, row)
        }
        store.notifyChange()
    }
}

// MARK: - Changing the whole queue

extension UploadQueue {
    /// Pauses the whole queue until ``resume()``, also after restarts. Uploads that are being sent go back into the
    /// queue, and new ones wait.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func pause() throws(UploadQueueError) {
        try store.database.write { try $0.setQueuePaused(true) }
        store.notifyChange()
    }

    /// Resumes the whole queue. Uploads that were paused one by one stay paused.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func resume() throws(UploadQueueError) {
        try store.database.write { try $0.setQueuePaused(false) }
        store.notifyChange()
    }

    /// Retries all uploads that failed and whose form is still on disk.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func retryAll() throws(UploadQueueError) {
        try store.database.write { db in
            for id in try QueuedUpload.ID.fetchAll(db, sql: "SELECT id FROM upload WHERE state = 'failed' ORDER BY id")
            {
                do {
                    if let row = try db.row(id), hasBody(row) { try db.retryUpload(id) }
                } catch is RowDamage {
                    // A damaged row would fail again.
                }
            }
        }
        store.notifyChange()
    }

    /// Cancels all uploads that have not ended.
    ///
    /// - Throws: ``UploadQueueError`` if the database fails.
    public func cancelAll() throws(UploadQueueError) {
        try store.database.write { try $0.cancelAllUploads() }
        store.notifyChange()
    }

    /// Removes all uploads that are done, failed or cancelled, with their forms.
    ///
    /// - Returns: The number of uploads removed.
    /// - Throws: ``UploadQueueError`` if the database fails.
    @discardableResult
    public func clear() throws(UploadQueueError) -> Int {
        let (count, bodies) = try store.database.write { try $0.removeEndedUploads() }
        for body in bodies { store.directory.removeBody(body) }
        store.notifyChange()
        return count
    }
}
