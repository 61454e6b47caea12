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
