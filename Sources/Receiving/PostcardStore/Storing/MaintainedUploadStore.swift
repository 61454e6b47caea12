/// A store that a receiver maintains: the receiver sweeps it from time to time, checks whether it works, and follows it
/// if other processes use it too.
public protocol MaintainedUploadStore: UploadStore {
    /// The system that the store needs and that may fail, such as `The object store`. Anyone can read this text in the
    /// response to `GET /health`.
    var dependency: String { get }

    /// How often ``sweep()`` is called.
    var sweepInterval: Duration { get }

    /// How often ``newestRecords()`` is called while there are listeners to live events; `nil` if no other process uses
    /// the store.
    var followingInterval: Duration? { get }

    /// Checks that an upload could begin, within a few seconds.
    ///
    /// - Throws: ``UploadStoreError`` if an upload could not begin.
    func checkReadiness() async throws

    /// Removes expired uploads, and what interrupted uploads and deletions left behind.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails. The next sweep does the rest.
    func sweep() async throws

    /// The newest records, at a cost that does not depend on the number of records. Defaults to the newest thousand.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func newestRecords() async throws -> NewestRecords

    /// The block size in which sizes are counted, in bytes: each file, record and folder takes whole blocks. Defaults
    /// to 1.
    var blockBytes: Int64 { get }

    /// The number of bytes of each upload, in whole blocks, if the store knows it without reading each record. Defaults
    /// to `nil`: unknown.
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
    /// The oldest identifier that was examined: there may be more records before it. `nil` if the list is complete.
    public var oldest: UploadID?

    /// Makes a list of the newest records.
    ///
    /// - Parameters:
    ///   - identifiers: The identifiers of the records, newest first.
    ///   - oldest: The oldest identifier that was examined; `nil` if the list is complete.
    public init(identifiers: [UploadID], oldest: UploadID?) {
        self.identifiers = identifiers
        self.oldest = oldest
    }
}

/// A store that also keeps the app's answers to uploads. A client that sends a form again under its key then gets the
/// same answer, even after a restart.
///
/// With another store, the app is asked again for its answer.
public protocol AnsweringUploadStore: UploadStore {
    /// Keeps the answer to an upload as long as its record.
    ///
    /// - Parameters:
    ///   - answer: The answer, of at most 1 MiB.
    ///   - id: The record of the upload. An existing answer is replaced.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func keepAnswer(_ answer: [UInt8], to id: UploadID) async throws

    /// The answer to an upload; `nil` if the store has none.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func answer(to id: UploadID) async throws -> [UInt8]?
}

/// A store that remembers which records were not announced yet.
///
/// A record is in the outbox from the moment of its commit, even if the process ends right after the commit.
package protocol OutboxStore: MaintainedUploadStore {
    /// Makes the store add each new record to the outbox, from now on, until the record is settled.
    func keepOutbox()

    /// The records in the outbox, oldest first, including those of earlier starts.
    func outbox() async throws -> [UploadID]

    /// Whether a record is in the outbox.
    func isInOutbox(_ id: UploadID) async throws -> Bool

    /// Removes a record from the outbox. After a crash the record may be there again.
    func settle(_ id: UploadID) async throws
}
