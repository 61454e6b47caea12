/// A store that a receiver keeps in order: it is swept from time to time, asked whether it works, and followed if other
/// processes use it too.
public protocol MaintainedUploadStore: UploadStore {
    /// What the store needs and what may fail, such as `The object store`. Anyone can read it in the response to
    /// `GET /health`.
    var dependency: String { get }

    /// How often ``sweep()`` is called.
    var sweepInterval: Duration { get }

    /// How often ``newestRecords()`` is called while anyone listens to live events; `nil` if no other process uses the
    /// store.
    var followingInterval: Duration? { get }

    /// Checks that an upload could begin, within a few seconds.
    ///
    /// - Throws: ``UploadStoreError`` if it could not.
    func checkReadiness() async throws

    /// Removes what has expired, and what interrupted uploads and deletions left behind.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails. The next sweep does what is left.
    func sweep() async throws

    /// The newest records, at a cost that does not depend on how many there are. Defaults to the newest thousand.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func newestRecords() async throws -> NewestRecords

    /// The block size by which sizes are counted, in bytes: each file, record and folder takes whole blocks. Defaults
    /// to 1.
    var blockBytes: Int64 { get }

    /// How many bytes each upload has, in whole blocks, if that is known without reading each record. Defaults to `nil`:
    /// not known.
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
    /// The oldest identifier that was looked at: there may be more records before it. `nil` if these are all.
    public var oldest: UploadID?

    /// Makes a value.
    ///
    /// - Parameters:
    ///   - identifiers: The identifiers of the records, newest first.
    ///   - oldest: The oldest identifier that was looked at; `nil` if these are all.
    public init(identifiers: [UploadID], oldest: UploadID?) {
        self.identifiers = identifiers
        self.oldest = oldest
    }
}

/// A store that also keeps what the app has answered to uploads, so that a client that sends a form again under its key gets
/// the same answer, after a restart too.
///
/// With another store, the app is asked again for its answer.
public protocol AnsweringUploadStore: UploadStore {
    /// Keeps the answer to an upload as long as its record.
    ///
    /// - Parameters:
    ///   - answer: At most 1 MiB.
    ///   - id: The record of the upload. If it has an answer, that is replaced.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func keepAnswer(_ answer: [UInt8], to id: UploadID) async throws

    /// The answer to an upload; `nil` if none is kept.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func answer(to id: UploadID) async throws -> [UInt8]?
}

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
