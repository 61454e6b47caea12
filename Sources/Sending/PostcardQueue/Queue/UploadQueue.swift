#if !canImport(GRDB)
#error("PostcardQueue needs the trait Queue of this package: .package(url: …, traits: [\"Queue\"])")
#endif

import GRDB
public import HTTPTypes
import PostcardClient
import PostcardFiles
public import PostcardForm
public import PostcardFoundation
import Synchronization
import SystemPackage

/// A queue of uploads that outlive the process. Each form is sent once, even if the process, network or power fails.
///
/// In an app, the system sends the uploads, even while the app is suspended or closed:
///
/// ```swift
/// let queue = UploadQueue(directory: folder, session: BackgroundSession(identifier: "com.example.pets"))
/// try await queue.enqueue(form, to: url)
/// ```
///
/// Other programs send the uploads themselves:
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
/// The queue is a directory with an SQLite database and a file for each form. Only the owner of the directory can read
/// it and the stored header fields. The directory may be moved, as iOS does with an app's container on every update.
/// Any number of processes can enqueue and read at the same time. Only one process at a time can send with
/// ``run(_:options:)``.
///
/// Making a queue reads nothing: the first call of a method opens the queue. No method works on the caller's actor, so
/// all methods can be called on the main actor.
public final class UploadQueue: Sendable {
    let opening: QueueOpening
    let session: BackgroundSession?
    let sender: BackgroundSender?
    let time: QueueTime
    let reporter: OutcomeReporter?
    let rules: FormRules?
    let finder: (any PickedItemFinder)?
    private let registry: BackgroundSessionRegistry
    /// The forms of this run whose picked items are being copied, or will be copied after a suspension of the app.
    let imports = Mutex<[UUID: MultipartForm]>([:])
    private let otherService: (@Sendable (BackgroundSession) -> any TransferService)?
    /// The senders for uploads that extensions have handed to the system, by the identifiers of their sessions.
    let others = Mutex<[String: BackgroundSender]>([:])

    /// Makes a queue. The first call of a method opens the queue, and makes the directory if there is none.
    ///
    /// A queue can be made even before the device is unlocked for the first time after a start.
    /// ``run(endsWhenEmpty:)``, ``run(_:options:)`` and ``UploadQueueList/follow()`` then wait until the device is
    /// unlocked. The other methods throw ``UploadQueueError`` with code ``UploadQueueError/Code/locked``.
    ///
    /// - Parameters:
    ///   - directory: The queue's directory, which must not be used for anything else. If other users can read the
    ///     directory, their access is removed.
    ///   - session: The background session that sends uploads. Make the queue with its session at every start of the
    ///     app, even when the system starts the app in the background. An earlier queue of this process with the same
    ///     session stops sending. Defaults to `nil`: uploads are sent by ``run(_:options:)``.
    ///   - rules: The fields and files that forms may have. Defaults to `nil`, no rules. Photos that are fitted to the
    ///     server's limit are made to fit these rules.
    ///   - finder: Finds picked items that an earlier run of the app has not copied, as `PickedPhotosAndFiles` of
    ///     `PostcardPictures` does. Defaults to `nil`: an upload with such items fails with the code `pick-lost`.
    ///   - retention: How long acknowledged uploads that are done are listed. Defaults to the latest 100, for 30 days.
    ///   - outcome: Called at least once for each upload that is done, failed or cancelled, one after the other, on no
    ///     actor. When the closure returns, the upload is acknowledged. If the closure throws or the process ends
    ///     first, the closure is called again when the next upload ends, and when the queue runs the next time. When
    ///     the system has woken the app, the closure is called before ``handleEvents()`` returns. Defaults to `nil`:
    ///     read ``outcomes`` instead.
    public convenience init(
        directory: URL, session: BackgroundSession? = nil, rules: FormRules? = nil,
        finding finder: (any PickedItemFinder)? = nil, retention: UploadRetention = UploadRetention(),
        outcome: (@Sendable (QueuedUpload) async throws -> Void)? = nil
    ) {
        if let system = QueueSystem.replacement {
            self.init(
                directory: directory, session: session, service: session.map(system.service),
                otherService: system.service, rules: rules, finding: finder, retention: retention, outcome: outcome,
                time: system.time, activity: system.activity, networkPath: system.networkPath,
                freeBytes: system.freeBytes, registry: system.registry)
            system.made(self)
            return
        }
        #if canImport(Darwin)
        self.init(
            directory: directory, session: session, service: session.map { URLSessionTransferService($0) },
            otherService: { URLSessionTransferService($0) }, rules: rules, finding: finder, retention: retention,
            outcome: outcome)
        #else
        self.init(
            directory: directory, session: session, service: nil, rules: rules, finding: finder, retention: retention,
            outcome: outcome)
        #endif
    }

    /// Makes a queue whose uploads are sent by a transfer service.
    ///
    /// - Parameters:
    ///   - otherService: Makes a service for another session, to handle or stop the uploads of an extension.
    ///   - time: The clocks that determine when uploads are due. Defaults to those of the system.
    ///   - activity: Asks the system not to suspend the app. Defaults to the system's API.
    ///   - networkPath: Returns the network in use, for the states of uploads. Defaults to the system's.
    ///   - freeBytes: Returns the number of free bytes at a folder.
    ///   - broadcast: Notifies the other processes that use the queue. Defaults to the system's API.
    package convenience init(
        directory: URL, session: BackgroundSession?, service: (any TransferService)?,
        otherService: (@Sendable (BackgroundSession) -> any TransferService)? = nil, rules: FormRules? = nil,
        finding finder: (any PickedItemFinder)? = nil, retention: UploadRetention = UploadRetention(),
        outcome: (@Sendable (QueuedUpload) async throws -> Void)? = nil,
        time: QueueTime = QueueTime(), activity: SystemActivity = .usual,
        networkPath: @escaping @Sendable () -> NetworkPath? = { NetworkMonitor.shared.path },
        freeBytes: @escaping @Sendable (URL) -> Int64? = { FreeSpace.bytes(at: $0) },
        broadcast: ChangeBroadcast = .usual
    ) {
        self.init(
            directory: directory, session: session, service: service, otherService: otherService, rules: rules,
            finding: finder, retention: retention, outcome: outcome, time: time, activity: activity,
            networkPath: networkPath, freeBytes: freeBytes, broadcast: broadcast, registry: .shared)
    }

    /// Makes a queue with all its dependencies.
    ///
    /// - Parameter registry: The registry of the process's senders.
    private init(
        directory: URL, session: BackgroundSession?, service: (any TransferService)?,
        otherService: (@Sendable (BackgroundSession) -> any TransferService)?, rules: FormRules?,
        finding finder: (any PickedItemFinder)?, retention: UploadRetention,
        outcome: (@Sendable (QueuedUpload) async throws -> Void)?, time: QueueTime, activity: SystemActivity,
        networkPath: @escaping @Sendable () -> NetworkPath?, freeBytes: @escaping @Sendable (URL) -> Int64?,
        broadcast: ChangeBroadcast = .usual, registry: BackgroundSessionRegistry
    ) {
        self.registry = registry
        opening = QueueOpening(
            directory, retention, ExpiringActivity(activity), broadcast,
            systemSends: Self.systemSends || service != nil, networkPath: networkPath, freeBytes: freeBytes)
        self.session = session
        self.rules = rules
        self.finder = finder
        self.otherService = otherService
        self.time = time
        reporter = outcome.map { [opening] in OutcomeReporter(opening, time, $0) }
        if let session, let service {
            let sender = BackgroundSender(session, opening, service, time, reporter, registry)
            self.sender = sender
            registry.add(sender)
        } else {
            sender = nil
        }
    }

    /// Whether the system may send uploads of any queue. This includes a queue without a session, because an extension
    /// may enqueue uploads for the app's session.
    private static var systemSends: Bool {
        #if canImport(Darwin)
        true
        #else
        false
        #endif
    }

    deinit {
        sender?.close()
        for other in others.withLock({ $0.values }) { other.close() }
        reporter?.close()
    }

    /// Opens the queue now, to find out whether it can be used. Otherwise the first call that needs the queue opens it.
    ///
    /// - Throws: ``UploadQueueError`` if the directory cannot be used, if other users can write to it, or if its
    ///   database is damaged or newer. The database then stays unchanged, and the next call tries again.
    public func open() async throws(UploadQueueError) {
        _ = try await opening.store()
    }

    /// The folders in the queue's directory with queues of older versions of this package, oldest first.
    ///
    /// A queue whose database an older version has written cannot be used. When such a queue is opened, its database
    /// and its forms are moved into a new folder, and an empty queue takes its place. Nothing in the folder is sent or
    /// removed. Tell the user, and remove the folder when it is no longer needed.
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

    /// Runs a blocking closure on no actor.
    @concurrent func work<Value: Sendable>(
        _ work: @Sendable (QueueStore) throws(UploadQueueError) -> Value
    ) async throws(UploadQueueError) -> Value {
        try work(try await opening.store())
    }

    /// Stops transfers whose uploads have changed. The sender of the queue's own session also hands over uploads that
    /// are due. For an extension that does not run, a sender of this process stops the transfers.
    ///
    /// - Parameter sessions: The identifiers of the sessions that had the uploads.
    func stopTransfers(of sessions: Set<String>) async {
        for identifier in sessions.sorted() {
            if let other = others.withLock({ $0[identifier] }), !other.isClosed {
                try? await other.handOver()
                continue
            }
            if registry.noteChange(of: identifier) { continue }
            // An extension that runs uses the session, and stops the transfers itself.
            try? await settler(of: identifier)?.handOver()
        }
    }

    /// The sender for an extension's uploads, until none of them is left; `nil` for the queue's own session.
    func settler(of identifier: String) -> BackgroundSender? {
        guard var settings = session, identifier != settings.identifier, let otherService else { return nil }
        settings.identifier = identifier
        let sender = registry.addIfAbsent(
            BackgroundSender(settings, opening, otherService(settings), time, reporter, registry, duty: .settling))
        others.withLock { others in
            others = others.filter { !$0.value.isClosed }
            others[identifier] = sender
        }
        return sender
    }

    /// Records how the uploads of extensions have ended. The system may not have woken the app for these uploads, such
    /// as after the user has quit the app in the app switcher.
    func settleExtensions() async throws(UploadQueueError) {
        let sessions = try await work { store throws(UploadQueueError) in
            try store.database.read { try $0.sessions() }
        }
        // A session that an extension uses in all its runs is skipped. Otherwise the extension could not use it.
        for identifier in sessions.sorted() where BackgroundSession.isOfOneRun(identifier) {
            settler(of: identifier)?.start()
        }
    }

    /// Adds a form to the queue. When this method returns, the form is on disk and will be sent.
    ///
    /// Picked items (`FormPart.Content.picked(_:)`) are recorded before they are copied. If the system suspends the app
    /// during the copying, this method returns, and the upload's state is ``QueuedUpload/State/importing(because:)``.
    /// Copying continues when the queue runs the next time, even in another process.
    ///
    /// A queue with a background session hands the upload to the system even if ``run(endsWhenEmpty:)`` does not run,
    /// such as from an intent or a background task. The system keeps the app running for the hand-over, and suspends
    /// the app only if the hand-over takes long.
    ///
    /// - Parameters:
    ///   - form: The form. Its files and streams are copied. Parts with a preparation are prepared first, such as
    ///     photos that must fit. The server's limit is then that of the queue's rules.
    ///   - url: The URL that the form is sent to, `http` or `https`.
    ///   - method: The method of the request. Defaults to POST.
    ///   - headerFields: Further header fields to store on disk. An `Idempotency-Key` is added if there is none.
    ///   - conditions: The conditions and the order in which the upload may be sent. Defaults to as soon as possible.
    ///   - tag: A small value of the app, at most 4 KiB as JSON, by which the app recognizes the upload. It is stored
    ///     on disk and not sent. ``QueuedUpload/tag(as:)`` returns it. Defaults to `nil`, no tag.
    /// - Returns: The upload's identifier.
    /// - Throws: `FormError` if a file cannot be read; `UploadError` if the URL cannot be used or the form breaks the
    ///   queue's rules; ``UploadQueueError`` if the form cannot be stored or the tag is too large, with code
    ///   ``UploadQueueError/Code/suspended`` if the system suspends the app before the form is on disk; errors of the
    ///   form's preparations and picked items, and of encoding the tag, unchanged. After an error, the queue does not
    ///   have the form, and the form's files are unchanged.
    @discardableResult @concurrent
    public func enqueue(
        _ form: MultipartForm, to url: URL, method: HTTPRequest.Method = .post,
        headerFields: HTTPFields = HTTPFields(), conditions: UploadConditions = UploadConditions(),
        tag: (any Encodable & Sendable)? = nil
    ) async throws -> QueuedUpload.ID {
        let request = QueuedRequest(url: url, method: method, headerFields: headerFields)
        return try await enqueue(form, request, conditions: conditions, tag: tag)
    }

    /// Adds a file to the queue, to send it straight to an object store with a form that a server has signed.
    ///
    /// ```swift
    /// try await queue.enqueue(form, with: presigned, tag: pet)
    /// var options = QueueOptions()
    /// options.presignedForm = { upload in try await api.newPresignedForm(for: upload.tag(as: String.self)) }
    /// try await queue.run(UploadClient(), options: options)
    /// ```
    ///
    /// The form is compared with its policy now, and stored on disk with the signed fields. If the form has expired
    /// when it is sent, ``QueueOptions/presignedForm`` makes a new form, which is not stored. For a background session,
    /// ``BackgroundSession/presignedForm`` makes a new form, which is stored. These closures are called only while the
    /// app runs, so let the server sign forms that are valid for long enough, up to seven days.
    ///
    /// - Parameters:
    ///   - form: A form with one file, and text fields that the policy allows. The file or stream is copied.
    ///   - presigned: The form that the server signed.
    ///   - conditions: The conditions and the order in which the upload may be sent. Defaults to as soon as possible.
    ///   - tag: A small value of the app, as for ``enqueue(_:to:method:headerFields:conditions:tag:)``.
    /// - Returns: The upload's identifier. Its ``QueuedUpload/url`` is without the signature.
    /// - Throws: The errors of ``enqueue(_:to:method:headerFields:conditions:tag:)``; `UploadError` with the code
    ///   `form-expired` or `broken-policy` if the store would refuse the form. The code is also `broken-policy` if the
    ///   queue has a background session and the form has a `success_action_redirect`: the system would follow the
    ///   redirect, and then it is unknown whether the file arrived.
    @discardableResult @concurrent
    public func enqueue(
        _ form: MultipartForm, with presigned: PresignedForm, conditions: UploadConditions = UploadConditions(),
        tag: (any Encodable & Sendable)? = nil
    ) async throws -> QueuedUpload.ID {
        var request = QueuedRequest(
            url: presigned.openURL, method: presigned.method, headerFields: presigned.requestFields)
        request.presigned = presigned
        return try await enqueue(form, request, conditions: conditions, tag: tag)
    }
}
