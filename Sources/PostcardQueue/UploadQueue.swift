import GRDB
public import HTTPTypes
public import PostcardClient
import PostcardFiles
public import PostcardForm
public import PostcardFoundation
import SystemPackage

/// Uploads that outlive the process. Each form is sent once, even if the process, the network or the power fails.
///
/// In an app, the system sends them, also while the app is suspended or closed:
///
/// ```swift
/// let queue = UploadQueue(directory: folder, session: BackgroundSession(identifier: "com.example.pets"))
/// try await queue.enqueue(form, to: url)
/// try await queue.run()
/// ```
///
/// Other programs send them themselves:
///
/// ```swift
/// let queue = UploadQueue(directory: folder)
/// try await queue.enqueue(form, to: url)
/// try await queue.run(UploadClient())
/// ```
///
/// ``enqueue(_:to:method:headerFields:conditions:tag:)`` returns when the whole form is on disk. The form's files may
/// then change or be removed. All attempts in all processes send the same `Idempotency-Key`, so a server that honors it
/// stores the form once.
///
/// The queue is a directory with an SQLite database and a file for each form. Only its owner can read it, including the
/// stored header fields. The directory may be moved, as iOS does with an app's container on every update. Any number of
/// processes can enqueue and read at the same time. Only one at a time can send with ``run(_:options:)``.
///
/// Making a queue reads nothing: its first call opens it. No call does its work on the caller's actor, so all of them
/// can be made on the main actor.
public final class UploadQueue: Sendable {
    let opening: QueueOpening
    let session: BackgroundSession?
    let sender: BackgroundSender?
    let time: QueueTime
    private let rules: FormRules?
    private let otherService: (@Sendable (BackgroundSession) -> any TransferService)?

    /// Makes a queue, whose first call opens it. That call makes the directory if there is none.
    ///
    /// A queue can also be made before the device is unlocked for the first time after a start.
    /// ``run(endsWhenEmpty:)``, ``run(_:options:)`` and ``UploadQueueList/follow()`` then wait until it is, and the
    /// other calls throw ``UploadQueueError`` with code ``UploadQueueError/Code/locked``.
    ///
    /// - Parameters:
    ///   - directory: The queue's directory, used for nothing else. If other users can read it, their access is
    ///     removed.
    ///   - session: The background session that sends uploads. Make the queue with it at every start of the app, also
    ///     when the system starts the app in the background. A queue that this process made before with the same
    ///     session no longer sends. Defaults to `nil`: uploads are sent by ``run(_:options:)``.
    ///   - rules: The fields and files that forms may have. Defaults to `nil`: any. Photos that are to fit the server's
    ///     limit are made to fit the limits of these rules.
    ///   - done: How long uploads that are done are listed. Defaults to the latest 100, for 30 days.
    public convenience init(
        directory: URL, session: BackgroundSession? = nil, rules: FormRules? = nil, done: DoneUploads = DoneUploads()
    ) {
        #if canImport(Darwin)
        self.init(
            directory: directory, session: session, service: session.map { URLSessionTransferService($0) },
            otherService: { URLSessionTransferService($0) }, rules: rules, done: done)
        #else
        self.init(directory: directory, session: session, service: nil, rules: rules, done: done)
        #endif
    }

    /// Makes a queue whose uploads a transfer service sends.
    ///
    /// - Parameters:
    ///   - otherService: Makes a service for another session, to stop what an extension has handed over.
    ///   - time: The clocks by which uploads are due. Defaults to those of the system.
    ///   - activity: How the system is asked not to suspend the app. Defaults to the system's own way.
    ///   - networkPath: Returns the network in use, which is shown. By default, the system is asked.
    ///   - broadcast: How the processes that use the queue notify each other. Defaults to the system's own way.
    package init(
        directory: URL, session: BackgroundSession?, service: (any TransferService)?,
        otherService: (@Sendable (BackgroundSession) -> any TransferService)? = nil, rules: FormRules? = nil,
        done: DoneUploads = DoneUploads(), time: QueueTime = QueueTime(), activity: SystemActivity = .usual,
        networkPath: @escaping @Sendable () -> NetworkPath? = { NetworkMonitor.shared.path },
        broadcast: ChangeBroadcast = .usual
    ) {
        opening = QueueOpening(
            directory, done, ExpiringActivity(activity), broadcast, systemSends: Self.systemSends || service != nil,
            networkPath: networkPath)
        self.session = session
        self.rules = rules
        self.otherService = otherService
        self.time = time
        if let session, let service {
            let sender = BackgroundSender(session, opening, service, time)
            self.sender = sender
            BackgroundSessionRegistry.shared.add(sender)
        } else {
            sender = nil
        }
    }

    /// Whether the system may send the uploads of any queue: an extension may enqueue for the app's session.
    private static var systemSends: Bool {
        #if canImport(Darwin)
        true
        #else
        false
        #endif
    }

    deinit {
        sender?.close()
    }

    /// Opens the queue now, to find out whether it can be used. Without this call, the first call that needs the queue
    /// opens it.
    ///
    /// - Throws: ``UploadQueueError`` if the directory cannot be used, if other users can write to it, or if its
    ///   database is damaged or newer. The database is not changed then. The next call tries again.
    public func open() async throws(UploadQueueError) {
        _ = try await opening.store()
    }

    /// The folders with queues of older versions of this package, oldest first. They are in the queue's directory.
    ///
    /// A queue whose database an older version has written cannot be used. When it is opened, its database and its
    /// forms are moved into such a folder, and an empty queue takes its place. Nothing in the
    /// folder is sent or removed. Tell the user, and remove the folder when it is no longer needed.
    ///
    /// - Throws: ``UploadQueueError`` if the queue cannot be opened.
    public var setAside: [URL] {
        get async throws(UploadQueueError) {
            try await work { store throws(UploadQueueError) in
                do throws(FileError) {
                    return try store.directory.foldersSetAside()
                } catch {
                    throw UploadQueueError(error)
                }
            }
        }
    }

    /// Does what blocks, on no actor.
    @concurrent func work<Value: Sendable>(
        _ work: @Sendable (QueueStore) throws(UploadQueueError) -> Value
    ) async throws(UploadQueueError) -> Value {
        try work(try await opening.store())
    }

    /// Stops transfers whose uploads have changed: those of the queue's own session, whose sender starts and also hands
    /// over what is due, and those of an extension, which does not run.
    ///
    /// - Parameter sessions: The sessions that had the uploads.
    func stopTransfers(of sessions: Set<String>) async {
        for identifier in sessions.sorted() {
            if BackgroundSessionRegistry.shared.noteChange(of: identifier) { continue }
            guard var settings = session, identifier != settings.identifier, let otherService else { continue }
            settings.identifier = identifier
            let sender = BackgroundSender(settings, opening, otherService(settings), time, claims: false)
            // If the extension runs, the session is in use, and the extension stops them.
            try? await sender.handOver()
            sender.close()
            await sender.closed()
        }
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
    ///   - tag: A small value of the app's, at most 4 KiB as JSON, by which it recognizes the upload:
    ///     ``QueuedUpload/tag(as:)`` returns it. It is stored on disk and not sent. Defaults to `nil`: none.
    /// - Returns: The upload's identifier.
    /// - Throws: `FormError` if a file cannot be read; `UploadError` if the URL cannot be used or the form breaks the
    ///   queue's rules; ``UploadQueueError`` if the form cannot be stored or the tag is too large, with code
    ///   ``UploadQueueError/Code/suspended`` if the system suspends the app before the form is on disk; errors of the
    ///   form's preparations and of encoding the tag, unchanged. The queue has nothing of the form then, and its files
    ///   are as they were.
    @discardableResult @concurrent
    public func enqueue(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), conditions: UploadConditions = UploadConditions(),
        tag: (any Encodable & Sendable)? = nil
    ) async throws -> QueuedUpload.ID {
        let request = Request(url: url, method: method, headerFields: headerFields)
        return try await enqueue(form, request, within: FormSizeLimits(rules), conditions: conditions, tag: tag)
    }

    /// Adds a file to the queue that is sent straight to a bucket of an object store, with a form that a server has
    /// signed.
    ///
    /// ```swift
    /// try await queue.enqueue(form, with: presigned, tag: pet)
    /// var options = QueueOptions()
    /// options.presignedForm = { upload in try await api.newPresignedForm(for: upload.tag(as: String.self)) }
    /// try await queue.run(UploadClient(), options: options)
    /// ```
    ///
    /// The form is compared with its policy now, and is on disk with the fields that were signed. If it has expired
    /// when it is sent, ``QueueOptions/presignedForm`` makes another one, which is not stored. For a background
    /// session, ``BackgroundSession/presignedForm`` does, which is stored. The system cannot ask for it while the app
    /// does not run, so have the server sign forms for long enough, up to seven days.
    ///
    /// - Parameters:
    ///   - form: A form with one file, and text fields that the policy allows. The file or stream is copied.
    ///   - presigned: The form that the server signed.
    ///   - conditions: When the upload may be sent. Defaults to as soon as possible.
    ///   - tag: A small value of the app's, as for ``enqueue(_:to:method:headerFields:conditions:tag:)``.
    /// - Returns: The upload's identifier. Its ``QueuedUpload/url`` is without the signature.
    /// - Throws: The errors of ``enqueue(_:to:method:headerFields:conditions:tag:)``; `UploadError` with the code
    ///   `form-expired` or `broken-policy` if the store would refuse the form. The code is also `broken-policy` if the
    ///   queue has a background session and the form has a `success_action_redirect`, which the system would follow:
    ///   nothing would then say whether the file arrived.
    @discardableResult @concurrent
    public func enqueue(
        _ form: MultipartForm, with presigned: PresignedForm, conditions: UploadConditions = UploadConditions(),
        tag: (any Encodable & Sendable)? = nil
    ) async throws -> QueuedUpload.ID {
        var request = Request(
            url: presigned.openURL, method: presigned.method, headerFields: presigned.requestFields)
        request.presigned = presigned
        let limits = FormSizeLimits(rules).lowered(by: try presigned.limits)
        return try await enqueue(form, request, within: limits, conditions: conditions, tag: tag)
    }

    /// What a form is sent with.
    private struct Request {
        let url: URL
        let method: HTTPRequest.Method
        let headerFields: HTTPFields
        var presigned: PresignedForm?
    }

    private func enqueue(
        _ form: MultipartForm, _ request: Request, within limits: FormSizeLimits, conditions: UploadConditions,
        tag: (any Encodable & Sendable)?
    ) async throws -> QueuedUpload.ID {
        let tag = try tag.map { try JSONEncoder().encode($0) }
        if let tag, tag.count > Self.maximumTagBytes {
            throw UploadQueueError.tagTooLarge(tag.count, limit: Self.maximumTagBytes)
        }
        return try await opening.activity.perform { [self] in
            try await form.withPreparedParts(within: limits) { form in
                try await add(form, request, conditions: conditions, tag: tag)
            }
        }
    }

    private static let maximumTagBytes = 4 << 10

    private func add(
        _ form: MultipartForm, _ new: Request, conditions: UploadConditions, tag: Data?
    ) async throws -> QueuedUpload.ID {
        var layout = try form.layout()
        if let problem = try rules?.problems(in: layout).first { throw UploadError.brokenRule(problem) }
        if let presigned = new.presigned {
            layout = try presigned.layout(of: form, layout, at: time.date())
            if session != nil { try Self.checkRedirect(of: layout, to: new.url) }
        }
        let texts = PresignedForm.textNames(of: form)
        let store = try await opening.store()
        let written = try await NewForm(
            writing: layout, to: new.url, new.method, new.headerFields,
            new.presigned.map { SignedAddress($0, texts: texts) }, in: store.directory)
        let upload = NewUpload(form: written, conditions: conditions, tag: tag)
        do {
            let id = try store.database.write { try $0.insert(upload, at: time.date()) }
            store.notifyChange()
            return id
        } catch {
            store.directory.removeBody(written.uuid)
            throw error
        }
    }
}

extension UploadQueue {
    /// Checks that a store responds to a presigned form by itself. In a background session the system follows
    /// redirects, and then nothing says whether the file arrived.
    private static func checkRedirect(of layout: FormLayout, to url: URL) throws {
        let names = ["success_action_redirect", "redirect"]
        guard let part = layout.parts.dropLast().first(where: { names.contains($0.name.lowercased()) }) else { return }
        throw UploadError(
            stored: .brokenPolicy,
            "The field \(part.name.debugDescription) has \(url.origin) redirect the upload, which the system follows in "
                + "a background session, so that nothing would say whether the file arrived. Have the server sign "
                + "success_action_status instead.", response: nil, delivery: .neverArrived)
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
    public func uploads(
        limit: Int = .max, after id: QueuedUpload.ID = 0
    ) async throws(UploadQueueError) -> [QueuedUpload] {
        try await work { [time] store throws(UploadQueueError) in
            try store.uploads(limit: limit, after: id, at: time.date())
        }
    }

    /// Returns the newest uploads, in the order in which they were enqueued.
    func newestUploads(_ count: Int) async throws(UploadQueueError) -> [QueuedUpload] {
        try await work { [time] store throws(UploadQueueError) in
            try store.uploads(limit: count, after: try store.idBeforeNewest(count), at: time.date())
        }
    }

    /// Returns an upload, or `nil` if there is none with that identifier.
    ///
    /// - Throws: ``UploadQueueError`` if the database cannot be read or the upload's row is damaged.
    public func upload(_ id: QueuedUpload.ID) async throws(UploadQueueError) -> QueuedUpload? {
        try await work { [time] store throws(UploadQueueError) in
            try store.database.read { try $0.upload(id) }.map { store.current($0, at: time.date()) }
        }
    }

    /// The number of uploads that were done since the queue was made, including those that are no longer listed.
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

    /// Whether the body of an upload is still on disk.
    package func bodyExists(_ id: QueuedUpload.ID) async throws(UploadQueueError) -> Bool {
        try await work { store throws(UploadQueueError) in
            try store.database.read { try $0.row(id) }.map(store.hasBody) ?? false
        }
    }
}

extension QueueStore {
    fileprivate func uploads(
        limit: Int, after id: QueuedUpload.ID, at now: Date
    ) throws(UploadQueueError) -> [QueuedUpload] {
        try database.read { db in
            // Read one by one, so that only a row that is too large is left out.
            try QueuedUpload.ID.fetchAll(
                db, sql: "SELECT id FROM upload WHERE id > ? ORDER BY id LIMIT ?", arguments: [id, limit]
            ).compactMap { id in
                do { return try db.upload(id) } catch is RowDamage { return nil }
            }
        }.map { current($0, at: now) }
    }

    /// The identifier after which the newest uploads start.
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
