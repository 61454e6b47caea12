/// A store that remembers which records are still to be announced.
///
/// A record is in the outbox from the moment of its commit, also if the process ends right after it.
package protocol OutboxStore: MaintainedUploadStore {
    /// From now on, each new record is in the outbox until it is settled.
    func keepOutbox()

    /// The records in the outbox, oldest first, also those of earlier starts.
    func outbox() async throws -> [UploadID]

    /// Whether a record is in the outbox.
    func isInOutbox(_ id: UploadID) async throws -> Bool

    /// Removes a record from the outbox. After a crash it may be there again.
    func settle(_ id: UploadID) async throws
}
