#if Queue
import PostcardClient

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

extension UploadQueue {
    /// Finds what earlier runs have handed over, and removes what is of no more use.
    ///
    /// - Returns: What is to be followed to its end: it is on its way, has ended, or comes to be handed over.
    func recoverHandovers(in uploads: BackgroundUploads) throws(UploadQueueError) -> [(ClaimedUpload, UUID)] {
        let (followed, useless) = try database.write { db in
            var followed: [(ClaimedUpload, UUID)] = []
            var useless: [Handover] = []
            for handover in try db.handovers() {
                if handover.isOfUse(uploads[handover.identity]?.state) { try db.resumeUpload(handover.id) }
            }
            for handover in try db.handovers() {
                if handover.isOfUse(uploads[handover.identity]?.state), let claimed = try db.claimedUpload(handover.id)
                {
                    followed.append((claimed, handover.identity))
                } else {
                    useless.append(handover)
                }
            }
            return (followed, useless)
        }
        for handover in useless { try removeHandover(of: handover.id, as: handover.identity, from: uploads) }
        return followed
    }

    /// Removes from the background uploads what the queue has no more use for, and then forgets it. What cannot be
    /// removed is tried again by the next run.
    func removeHandover(
        of id: QueuedUpload.ID, as identity: UUID, from uploads: BackgroundUploads
    ) throws(UploadQueueError) {
        do {
            try uploads.remove(identity)
        } catch {
            return
        }
        try database.write { try $0.endHandover(of: id, as: identity) }
    }
}

extension Handover {
    /// Whether the queue learns something about its upload by following it.
    fileprivate func isOfUse(_ state: BackgroundUpload.State?) -> Bool {
        switch (kind, state) {
        // Written down already, or cleared.
        case (.done, _), (nil, _): false
        case (.sending, _): true
        // The server took it before it was ended.
        case (_, .done): true
        // It was cancelled and retried, and goes on.
        case (.waiting, .waiting), (.waiting, .sending), (.retrying, .waiting), (.retrying, .sending): true
        case (.waiting, _), (.retrying, _), (.failed, _), (.cancelled, _): false
        }
    }
}
#endif
