import Synchronization
import SystemPackage

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What a queue consists of: its folder, its database, and who waits for changes of them.
struct QueueStore: Sendable {
    let folder: QueueFolder
    let database: QueueDatabase
    let progress = QueueProgress()
    /// Wakes what sends.
    let changes = ChangeSignal()
    /// Wakes what shows the queue.
    let sights = ChangeSignal()

    init(_ url: URL) throws(UploadQueueError) {
        let path = url.appending(path: QueueFolder.databaseName.string).path
        folder = try QueueFolder(url) { file throws(UploadQueueError) in try QueueDatabase.check(file, at: path) }
        database = try QueueDatabase(folder)
        folder.removeCopiesOfOlderVersions()
    }

    func noteChange() {
        changes.note()
        sights.note()
    }

    /// Writes down how far the uploads are.
    func saveProgress() throws {
        let progress = progress.all()
        guard !progress.isEmpty else { return }
        try database.writeWithoutSync { db in
            for (id, bytesSent) in progress { try db.noteProgress(of: id, bytesSent: bytesSent) }
        }
    }

    /// Removes bodies that a process left behind that ended while it wrote them.
    func sweep() throws {
        folder.sweep(
            keeping: try database.read { try $0.uuids() }, olderThan: Date(timeIntervalSinceNow: -86_400))
    }
}

/// How far the uploads are that are being sent: newer than what the database says.
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

    /// The upload with what is newer than the database.
    func applied(to upload: QueuedUpload) -> QueuedUpload {
        guard case .sending = upload.state, let bytesSent = sent.withLock({ $0[upload.id] }) else { return upload }
        var upload = upload
        upload.bytesSent = bytesSent
        return upload
    }
}

/// Wakes all who wait for a change.
final class ChangeSignal: Sendable {
    private let listeners = Mutex<(next: Int, all: [Int: AsyncStream<Void>.Continuation])>((0, [:]))

    func note() {
        for listener in listeners.withLock({ Array($0.all.values) }) { listener.yield() }
    }

    /// One element at once and one after every change. Changes that come while no one waits are one.
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
