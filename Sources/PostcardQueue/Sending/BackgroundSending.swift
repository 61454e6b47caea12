#if Queue
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// An attempt by a background session, which goes on without the process.
///
/// The database knows the identity before the session does: whenever the process ends, the next one finds the attempt by
/// it, at whatever step it was, and goes on there.
struct BackgroundSending: QueueSending {
    let claimed: ClaimedUpload
    let queue: UploadQueue
    let uploads: BackgroundUploads
    let identity: UUID
    let retryPolicy: RetryPolicy

    func response() async throws -> UploadResponse {
        let upload = claimed.upload
        switch uploads[identity]?.state {
        case nil:
            try await uploads.add(
                try form(), as: identity, to: upload.url, method: upload.method, headerFields: claimed.headerFields,
                needsUnmeteredNetwork: upload.conditions.needsUnmeteredNetwork)
        case .lost:
            try queue.database.writeHastily { try $0.restartUpload(id) }
            try await uploads.restart(identity, headerFields: claimed.headerFields)
        case .waiting, .sending, .done, .failed, .cancelled:
            break
        }
        return try await uploads.response(of: identity) { noteProgress(bytesSent: $0) }
    }

    func interrupted() async throws {
        if Task.isCancelled { return try leave() }
        do {
            try uploads.cancel(identity)
            // The server may have taken it by then.
            return try finish(with: try await uploads.response(of: identity))
        } catch let error as UploadQueueError {
            throw error
        } catch let error as BackgroundUploadError where error.code == .closed {
            throw error
        } catch {
            if Task.isCancelled { return }
        }
        try queue.database.write { db in
            guard try db.sendingUploads().contains(id) else { return }
            if claimed.upload.state == .sending {
                // It was in the background uploads that somebody gave it up.
                try db.cancelUpload(id)
            } else {
                // What ended here was decided before it was retried.
                try db.returnUpload(id)
            }
        }
        try settled()
    }

    /// Lets go of the attempt: what was handed over goes on, and the next run finds it.
    private func leave() throws {
        guard uploads[identity] == nil else { return }
        try queue.database.write { db in
            try db.returnUpload(id)
            try db.endHandover(as: identity)
        }
    }

    func settled() throws {
        try queue.removeHandover(as: identity, from: uploads)
    }
}
#endif
