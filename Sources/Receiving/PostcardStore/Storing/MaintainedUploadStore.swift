/// A store that a receiver can maintain: remove old data from it, check it, and look for changes by other processes.
public protocol MaintainedUploadStore: UploadStore {
    /// The system on which the store depends, such as `The object store`. Everyone can read the name in `GET /health`.
    var dependency: String { get }

    /// The interval of the calls of ``sweep()``.
    var sweepInterval: Duration { get }

    /// How often ``newestRecords()`` is called while clients listen to events; `nil` if the store is never shared.
    var followingInterval: Duration? { get }

    /// Checks that an upload could begin, within a few seconds.
    ///
    /// - Throws: ``UploadStoreError`` if an upload could not begin.
    func checkReadiness() async throws

    /// Removes expired uploads, and data of interrupted uploads and deletions.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails. The next sweep continues the work.
    func sweep() async throws

    /// The newest records, at a cost that does not depend on the number of records. Defaults to the newest thousand.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func newestRecords() async throws -> NewestRecords

    /// The block size in bytes: each file, record and folder counts in whole blocks. Defaults to 1.
    var blockBytes: Int64 { get }

    /// The number of bytes of each upload, in whole blocks. Defaults to `nil`, for stores that would have to read all
    /// records to compute the sizes.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func sizes() async throws -> [UploadID: Int64]?
}

extension MaintainedUploadStore {
    public var blockBytes: Int64 { 1 }

    public func sizes() async throws -> [UploadID: Int64]? { nil }

    public func newestRecords() async throws -> NewestRecords {
        let maximum = 1000
        let found = try await identifiers(limit: maximum, after: nil)
        return NewestRecords(identifiers: found, oldest: found.count < maximum ? nil : found.last)
    }
}

/// The newest records of a store.
public struct NewestRecords: Sendable, Hashable {
    /// The identifiers of the records, newest first.
    public var identifiers: [UploadID]
    /// The oldest identifier that the store has examined. Older records may exist. `nil` if the list is complete.
    public var oldest: UploadID?

    /// Makes a list of the newest records.
    ///
    /// - Parameters:
    ///   - identifiers: The identifiers of the records, newest first.
    ///   - oldest: The oldest examined identifier; `nil` if the list is complete.
    public init(identifiers: [UploadID], oldest: UploadID?) {
        self.identifiers = identifiers
        self.oldest = oldest
    }
}

/// A store that also keeps the app's own responses to uploads. A client that repeats a form under its key then gets
/// the same response, even after a restart. With other stores, the app must respond again.
public protocol ResponseKeepingUploadStore: UploadStore {
    /// Keeps the app's response to an upload as long as its record. Replaces an existing response.
    ///
    /// - Parameters:
    ///   - response: The encoded response, of at most 1 MiB.
    ///   - id: The identifier of the upload.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func keepResponse(_ response: [UInt8], to id: UploadID) async throws

    /// Reads the app's response to an upload; `nil` if the store has none.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func response(to id: UploadID) async throws -> [UInt8]?
}

/// A store with an outbox: the records that were not announced to a webhook yet.
///
/// A record is in the outbox from its commit on, even if the process ends right after the commit.
package protocol OutboxStore: MaintainedUploadStore {
    /// Makes the store add all future records to the outbox, until ``settle(_:)`` removes them.
    func keepOutbox()

    /// The records in the outbox, oldest first, including those from before a restart.
    func outbox() async throws -> [UploadID]

    /// Whether a record is in the outbox.
    func isInOutbox(_ id: UploadID) async throws -> Bool

    /// Removes a record from the outbox. After a crash, the record may be in the outbox again.
    func settle(_ id: UploadID) async throws
}
