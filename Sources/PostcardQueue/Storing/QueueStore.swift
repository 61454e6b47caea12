import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A queue's directory and database, and the signals that they have changed.
struct QueueStore: Sendable {
    let directory: QueueDirectory
    let database: QueueDatabase
    let progress = QueueProgress()
    /// Signals that there may be something to send or to stop.
    let changes = ChangeSignal()
    /// Signals that there is something new to show, including progress.
    let updates = ChangeSignal()

    init(_ url: URL) throws(UploadQueueError) {
        let path = url.appending(path: QueueDirectory.databaseName.string).path
        directory = try QueueDirectory(url) { file throws(UploadQueueError) in try QueueDatabase.check(file, at: path) }
        database = try QueueDatabase(directory)
    }

    func notifyChange() {
        changes.notify()
        updates.notify()
    }

    /// Saves how far the uploads are.
    func saveProgress() throws {
        let progress = progress.all()
        guard !progress.isEmpty else { return }
        try database.writeWithoutSync { db in
            for (id, bytesSent) in progress { try db.noteProgress(of: id, bytesSent: bytesSent) }
        }
    }

    /// Removes bodies that were left behind by a process that ended while it wrote them: those of yesterday, by the
    /// clock that dates files.
    func sweep() throws {
        directory.sweep(
            keeping: try database.read { try $0.bodyNames() }, olderThan: Date(timeIntervalSinceNow: -86_400))
    }
}

/// The progress of the uploads in progress. It is more recent than the database.
final class QueueProgress: Sendable {
    private let sent = Mutex<[QueuedUpload.ID: Int64]>([:])

    func note(_ id: QueuedUpload.ID, bytesSent: Int64) {
        sent.withLock { $0[id] = max($0[id] ?? 0, bytesSent) }
    }

    func end(_ id: QueuedUpload.ID) {
        sent.withLock { $0[id] = nil }
    }

    func all() -> [QueuedUpload.ID: Int64] {
        sent.withLock { $0 }
    }

    /// Updates an upload that was read from the database.
    func applied(to upload: QueuedUpload) -> QueuedUpload {
        guard case .sending = upload.state, let bytesSent = sent.withLock({ $0[upload.id] }) else { return upload }
        var upload = upload
        upload.bytesSent = bytesSent
        return upload
    }
}

/// Notifies all listeners of a change.
final class ChangeSignal: Sendable {
    private let listeners = Mutex<(next: Int, all: [Int: AsyncStream<Void>.Continuation])>((0, [:]))

    func notify() {
        for listener in listeners.withLock({ Array($0.all.values) }) { listener.yield() }
    }

    /// One element at once and one after each change. Changes while the listener is busy are combined.
    func stream() -> AsyncStream<Void> {
        let (stream, continuation) = AsyncStream.makeStream(of: Void.self, bufferingPolicy: .bufferingNewest(1))
        let key = listeners.withLock { listeners in
            listeners.next += 1
            listeners.all[listeners.next] = continuation
            return listeners.next
        }
        continuation.onTermination = { [weak self] _ in
            self?.listeners.withLock { $0.all[key] = nil }
        }
        continuation.yield()
        return stream
    }
}
