#if Queue
import GRDB
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// What sends the uploads of a queue.
enum QueueCarrier: Sendable {
    /// A client, whose uploads end with the process.
    case client(UploadClient)
    /// A background session, whose uploads go on.
    case background(BackgroundUploads)

    /// Takes the next upload that may be sent, where there is one.
    func claimNext(
        in queue: UploadQueue, _ options: QueueOptions, excluding active: Set<QueuedUpload.ID>
    ) throws -> (any QueueSending)? {
        let isUnmetered = options.isNetworkUnmetered()
        let claim: (Database) throws -> ClaimedUpload? = { db in
            try db.claimUpload(isUnmetered: isUnmetered, excluding: active, at: Date())
        }
        switch self {
        case .client(let client):
            return try queue.database.writeHastily(claim).map {
                ClientSending(claimed: $0, queue: queue, client: client, retryPolicy: options.retryPolicy)
            }
        case .background(let uploads):
            let identity = UUID()
            // A power cut must not forget it: the session's own files would outlive it.
            let claimed = try queue.database.write { db in
                let claimed = try claim(db)
                if let claimed { try db.beginHandover(of: claimed.upload.id, as: identity) }
                return claimed
            }
            return claimed.map {
                BackgroundSending(
                    claimed: $0, queue: queue, uploads: uploads, identity: identity, retryPolicy: options.retryPolicy)
            }
        }
    }

    /// What earlier runs left behind and this one goes on with.
    func recover(_ queue: UploadQueue, _ options: QueueOptions) throws -> [any QueueSending] {
        try queue.database.write { try $0.recoverUploads() }
        switch self {
        case .client: return []
        case .background(let uploads):
            return try queue.recoverHandovers(in: uploads).map { claimed, identity in
                BackgroundSending(
                    claimed: claimed, queue: queue, uploads: uploads, identity: identity,
                    retryPolicy: options.retryPolicy)
            }
        }
    }
}
#endif
