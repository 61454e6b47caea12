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
    /// - Throws: ``UploadQueueError``; `BackgroundUploadError` where the background uploads were closed.
    func recoverHandovers(in uploads: BackgroundUploads) throws -> [(ClaimedUpload, UUID)] {
        let (followed, useless) = try database.write { db in
            var followed: [(upload: ClaimedUpload, identity: UUID)] = []
            var useless: [Handover] = []
            let handovers = try db.handovers().map { (handover: $0, state: uploads[$0.identity]?.state) }
            // Of several attempts of an upload the one that has arrived counts.
            for (handover, state) in handovers.filter(\.state.isDone) + handovers.filter({ !$0.state.isDone }) {
                let isFollowed = followed.contains { $0.upload.upload.id == handover.id }
                guard !isFollowed, handover.isOfUse(state) else {
                    useless.append(handover)
                    continue
                }
                if let claimed = try db.claimedUpload(handover.id) { followed.append((claimed, handover.identity)) }
                try db.resumeUpload(handover.id, as: handover.identity)
            }
            return (followed, useless)
        }
        for handover in useless { try removeHandover(as: handover.identity, from: uploads) }
        return followed
    }

    /// Removes from the background uploads what the queue has no more use for, and then forgets it. What cannot be
    /// removed is tried again by the next run.
    ///
    /// - Throws: ``UploadQueueError``; `BackgroundUploadError` where the background uploads were closed.
    func removeHandover(as identity: UUID, from uploads: BackgroundUploads) throws {
        do {
            try uploads.remove(identity)
        } catch {
            if error.code == .closed { throw error }
            return
        }
        try database.write { try $0.endHandover(as: identity) }
    }
}

extension Handover {
    /// Whether the queue learns something about its upload by following it.
    fileprivate func isOfUse(_ state: BackgroundUpload.State?) -> Bool {
        switch (kind, state) {
        // Written down already, or cleared.
        case (.done, _), (nil, _): false
        // The server took it, whatever has been decided since.
        case (_, .done): true
        case (.sending, _): isCurrent
        // It was cancelled, and perhaps retried, and goes on: the server may take it before it has been ended.
        case (.waiting, .waiting), (.waiting, .sending), (.retrying, .waiting), (.retrying, .sending): true
        case (.cancelled, .waiting), (.cancelled, .sending): true
        case (.waiting, _), (.retrying, _), (.failed, _), (.cancelled, _): false
        }
    }
}

extension BackgroundUpload.State? {
    fileprivate var isDone: Bool {
        if case .done = self { true } else { false }
    }
}
#endif
