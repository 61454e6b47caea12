import PostcardForm
package import PostcardFoundation
import Synchronization
import SystemPackage

/// A queue's directory and database, and the signals of their changes. The methods block.
struct QueueStore: Sendable {
    let directory: QueueDirectory
    let database: QueueDatabase
    let activity: ExpiringActivity
    let retention: UploadRetention
    let progress: QueueProgress
    private let networkPath: @Sendable () -> NetworkPath?
    /// Signals that there may be uploads to send or to stop.
    let changes: ChangeSignal
    /// Signals that uploads or their progress have changed, so that lists are updated.
    let updates: ChangeSignal
    /// Signals that uploads may have ended.
    let ends: ChangeSignal
    let log: QueueLog
    /// Notifies other processes of changes.
    let broadcast: ChangeBroadcast
    /// The name of the notifications between processes.
    private let broadcastName: String
    private let listener: ChangeBroadcast.Listener

    /// Opens a queue. The queue of an older version is moved into a folder, and a new queue takes its place.
    fileprivate init(_ opening: QueueOpening) throws(UploadQueueError) {
        do throws(UploadQueueError) {
            (directory, database) = try Self.open(opening)
        } catch  where error.code == .older {
            try QueueDirectory.setAside(opening.url) { Self.isOlder(opening) }
            (directory, database) = try Self.open(opening)
        }
        activity = opening.activity
        retention = opening.retention
        progress = opening.progress
        networkPath = opening.networkPath
        changes = opening.changes
        updates = opening.updates
        ends = opening.ends
        log = opening.log
        broadcast = opening.broadcast
        broadcastName = "Postcard.queue.\(directory.use.name)"
        listener = broadcast.listen(broadcastName) { [changes, updates, ends] in
            changes.notify()
            updates.notify()
            ends.notify()
        }
    }

    private static func isOlder(_ opening: QueueOpening) -> Bool {
        do throws(UploadQueueError) {
            _ = try open(opening)
            return false
        } catch {
            return error.code == .older
        }
    }

    private static func open(_ opening: QueueOpening) throws(UploadQueueError) -> (QueueDirectory, QueueDatabase) {
        #if canImport(Darwin)
        // If an app shares its database with extensions, only one process at a time makes or opens it.
        var result: Result<(QueueDirectory, QueueDatabase), UploadQueueError>?
        var failure: NSError?
        NSFileCoordinator().coordinate(writingItemAt: opening.url, options: .forMerging, error: &failure) { _ in
            do throws(UploadQueueError) {
                result = .success(try openFiles(opening))
            } catch {
                result = .failure(error)
            }
        }
        if let failure {
            throw .unusableDirectory(
                "The queue's directory \(opening.url.path) cannot be coordinated with other processes: "
                    + "\(failure.localizedDescription)", underlyingError: failure)
        }
        guard let result else { throw .suspended(nil) }
        return try result.get()
        #else
        // Without file coordination, SQLite's own locks are sufficient.
        return try openFiles(opening)
        #endif
    }

    private static func openFiles(
        _ opening: QueueOpening
    ) throws(UploadQueueError) -> (QueueDirectory, QueueDatabase) {
        let path = opening.url.appending(path: QueueDirectory.databaseName.string).path
        let directory = try QueueDirectory(
            opening.url, systemSends: opening.systemSends, freeBytes: opening.freeBytes
        ) {
            file throws(UploadQueueError) in
            try QueueDatabase.check(file, at: path)
        }
        return (directory, try QueueDatabase(directory, opening.activity))
    }

    /// A copy of an upload that was read from the database, with its current progress. The copy's state is
    /// `waitingForNetwork` if the upload waits for a network.
    func current(_ upload: QueuedUpload, at now: Date) -> QueuedUpload {
        var upload = progress.applied(to: upload)
        let isWaiting =
            switch upload.state {
            case .waiting: upload.conditions.notBefore.map { $0 <= now } ?? true
            case .sending: upload.bytesSent == 0
            default: false
            }
        if isWaiting, networkPath()?.holdsBack(upload.conditions.networks) == true {
            upload.state = .waitingForNetwork
        }
        return upload
    }

    func notifyChange() {
        changes.notify()
        updates.notify()
        ends.notify()
        broadcast.post(broadcastName)
    }

    /// Saves the progress of the uploads in the database.
    func saveProgress() throws {
        let progress = progress.all()
        guard !progress.isEmpty else { return }
        try database.writeWithoutSync { db in
            for (id, bytesSent) in progress { try db.noteProgress(of: id, bytesSent: bytesSent) }
        }
    }

    /// Removes uploads that were done long ago, and bodies that a process left when it ended during a write. Such a
    /// body is removed only if it is at least a day old by the clock of the file system.
    func sweep(at now: Date) throws(UploadQueueError) {
        if try !database.read({ try $0.oldDoneUploads(retention, at: now) }).isEmpty {
            try database.write { try $0.removeOldDoneUploads(retention, at: now) }
            updates.notify()
        }
        let yesterday = Date(timeIntervalSinceNow: -86_400)
        directory.sweep(keeping: try database.read { try $0.bodyNames() }, olderThan: yesterday)
        directory.sweepImports(keeping: try database.read { try $0.importNames() }, olderThan: yesterday)
        PreparationFolder.removeAbandoned()
    }
}

/// Opens a queue at its first use, not on the caller's actor. A queue is made on the main actor, but its files may be
/// slow, or locked until the device is unlocked for the first time.
final class QueueOpening: Sendable {
    let url: URL
    /// Whether the system may send the bodies.
    let systemSends: Bool
    let retention: UploadRetention
    let activity: ExpiringActivity
    let networkPath: @Sendable () -> NetworkPath?
    let freeBytes: @Sendable (URL) -> Int64?
    let broadcast: ChangeBroadcast
    let progress = QueueProgress()
    let changes = ChangeSignal()
    let updates = ChangeSignal()
    let ends = ChangeSignal()
    let log = QueueLog()
    private let state = Mutex(State.closed)

    private enum State {
        case closed
        /// The task returns the error if opening fails. It does not return the queue, so that it does not keep the
        /// queue.
        case opening(Task<UploadQueueError?, Never>)
        case open(QueueStore)
    }

    /// How long to wait before opening the queue again if the device was locked or the app was being suspended.
    private static let lockedPause = Duration.seconds(1)

    init(
        _ url: URL, _ retention: UploadRetention, _ activity: ExpiringActivity, _ broadcast: ChangeBroadcast,
        systemSends: Bool, networkPath: @escaping @Sendable () -> NetworkPath?,
        freeBytes: @escaping @Sendable (URL) -> Int64?
    ) {
        self.broadcast = broadcast
        self.url = url
        self.systemSends = systemSends
        self.retention = retention
        self.activity = activity
        self.networkPath = networkPath
        self.freeBytes = freeBytes
    }

    /// Opens the queue if it is not open. After an error, the next call tries again.
    func store() async throws(UploadQueueError) -> QueueStore {
        while true {
            let state = state.withLock { state in
                if case .closed = state { state = .opening(Task { @concurrent in open() }) }
                return state
            }
            switch state {
            case .open(let store): return store
            case .opening(let task): if let error = await task.value { throw error }
            case .closed: break
            }
        }
    }

    private func open() -> UploadQueueError? {
        do throws(UploadQueueError) {
            let grant = try activity.granted()
            defer { grant.end() }
            let store = try QueueStore(self)
            state.withLock { $0 = .open(store) }
            return nil
        } catch {
            state.withLock { $0 = .closed }
            return error
        }
    }

    /// Opens the queue. Waits while the device is locked or the system is about to suspend the app.
    func storeOnceUnlocked(_ time: QueueTime) async throws -> QueueStore {
        while true {
            let failure: UploadQueueError
            do throws(UploadQueueError) {
                return try await store()
            } catch {
                failure = error
            }
            guard failure.code == .locked || failure.code == .suspended else { throw failure }
            try await time.sleep(time.instant() + Self.lockedPause)
        }
    }
}

/// The current progress of the uploads that are being sent. It is saved in the database later.
final class QueueProgress: Sendable {
    private let sent = Mutex<[QueuedUpload.ID: Int64]>([:])

    func note(_ id: QueuedUpload.ID, bytesSent: Int64) {
        sent.withLock { $0[id] = max($0[id] ?? 0, bytesSent) }
    }

    /// Records that an attempt starts its form over.
    func restart(_ id: QueuedUpload.ID) {
        sent.withLock { $0[id] = 0 }
    }

    func end(_ id: QueuedUpload.ID) {
        sent.withLock { $0[id] = nil }
    }

    func all() -> [QueuedUpload.ID: Int64] {
        sent.withLock { $0 }
    }

    /// A copy of an upload that was read from the database, with its current progress.
    func applied(to upload: QueuedUpload) -> QueuedUpload {
        guard case .sending = upload.state, let bytesSent = sent.withLock({ $0[upload.id] }) else { return upload }
        var upload = upload
        upload.bytesSent = bytesSent
        return upload
    }
}

/// Notifies all listeners of a change.
final class ChangeSignal: Sendable {
    private struct State {
        var version = 0
        var next = 0
        var listeners: [Int: AsyncStream<Void>.Continuation] = [:]
    }

    private let state = Mutex(State())

    /// The number of notified changes of database rows. Changes of progress alone do not count.
    var version: Int { state.withLock { $0.version } }

    func notify() { notify(of: 1) }

    /// Notifies all listeners of progress, which changes no row.
    func notifyProgress() { notify(of: 0) }

    private func notify(of changes: Int) {
        let listeners = state.withLock { state in
            state.version += changes
            return Array(state.listeners.values)
        }
        for listener in listeners { listener.yield() }
    }

    /// A stream with an element at once and after each change. Changes while the listener is busy are combined.
    func stream() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let key = state.withLock { state in
            state.next += 1
            state.listeners[state.next] = continuation
            return state.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.state.withLock { $0.listeners[key] = nil }
        }
        continuation.yield()
        return stream
    }
}

extension QueueStore {
    /// Whether an upload was cancelled. An upload that is no longer in the queue counts as cancelled.
    func hasCancelled(_ id: QueuedUpload.ID) throws(UploadQueueError) -> Bool {
        let state = try database.read { try $0.state(id) }
        return state == nil || state == .cancelled
    }
}

/// The clocks of a queue: a wall clock for the times at which uploads are due, and a monotonic clock for waiting.
package struct QueueTime: Sendable {
    package var date: @Sendable () -> Date
    package var instant: @Sendable () -> ContinuousClock.Instant
    package var sleep: @Sendable (_ end: ContinuousClock.Instant) async throws -> Void
    /// How often a queue with a background session checks for changes by other processes; `nil` means the default.
    package var pollInterval: Duration?

    /// Makes the clocks of a queue. Defaults to those of the system.
    package init(
        date: @escaping @Sendable () -> Date = { Date() },
        instant: @escaping @Sendable () -> ContinuousClock.Instant = { .now },
        sleep: @escaping @Sendable (_ end: ContinuousClock.Instant) async throws -> Void = {
            try await Task.sleep(until: $0, clock: .continuous)
        },
        pollInterval: Duration? = nil
    ) {
        self.pollInterval = pollInterval
        self.date = date
        self.instant = instant
        self.sleep = sleep
    }
}
