#if Queue
import Synchronization

/// How far the uploads are that are on their way in this process: newer than what the database says.
final class QueueProgress: Sendable {
    private let sent = Mutex<[QueuedUpload.ID: Int64]>([:])

    func note(_ id: QueuedUpload.ID, bytesSent: Int64) {
        sent.withLock { $0[id] = bytesSent }
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
#endif
