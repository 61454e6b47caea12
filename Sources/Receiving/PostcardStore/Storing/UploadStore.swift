#if !Store && !Server && !S3 && !CommandLine
#error("PostcardStore needs the trait Store of this package: .package(url: …, traits: [\"Store\"])")
#endif

import NIOCore

/// Keeps uploads.
///
/// A store keeps three promises. An upload appears whole or not at all: until ``PendingUpload/commit(fields:parts:)``
/// is called it is in no listing, and once that has returned it survives a power cut. An upload that is discarded, or
/// that a crash interrupted, is never seen. Identifiers grow: of two records that a process commits one after the
/// other, the later has the greater identifier. Those of several processes that share a store are in the order of the
/// processes' clocks. And a key has one record: see ``beginUpload(under:announcedBytes:)``.
public protocol UploadStore: Sendable {
    /// An upload that is not visible yet.
    associatedtype Upload: PendingUpload

    /// Begins an upload. It is not visible until it is committed.
    ///
    /// A key has one record until that is deleted, also after a crash, and also if several uploads of the key arrive at
    /// once: the first one that is committed makes it. Committing another one returns the same record if fields and
    /// files are the same, and otherwise throws ``UploadStoreError/keyReused``. An upload that fails leaves its key to
    /// the next.
    ///
    /// - Parameters:
    ///   - key: Identifies the upload; `nil` if the client sent no key.
    ///   - announcedBytes: The length of the form, if the client sent it. A store without room throws
    ///     ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` before the client sends the form.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload

    /// The identifiers of the records, newest first.
    ///
    /// - Parameters:
    ///   - limit: The maximum number.
    ///   - id: Only records older than this one; the record itself need not exist any more.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID]

    /// The record with the identifier; `nil` if there is none.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func record(_ id: UploadID) async throws -> UploadRecord?

    /// Opens the JSON of a record for reading: the same bytes as ``UploadRecord/json()``; `nil` if there is none.
    ///
    /// Defaults to encoding the record in memory. A record can have tens of megabytes, so a store that has these bytes
    /// should return them.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func openRecord(_ id: UploadID) async throws -> (any StoredFile)?

    /// The description of a record's file; `nil` if there is no such file. Defaults to reading the record.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File?

    /// Opens a file's content for reading; `nil` if there is no such file.
    ///
    /// An open file stays readable for an hour after the upload is deleted, or longer.
    ///
    /// - Parameters:
    ///   - index: The file's place in ``UploadRecord/files``.
    ///   - id: The upload.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)?

    /// Deletes an upload, record and files.
    ///
    /// - Returns: Whether there was one.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func delete(_ id: UploadID) async throws -> Bool
}

extension UploadStore {
    public func openRecord(_ id: UploadID) async throws -> (any StoredFile)? {
        try await record(id).map { BytesInMemory(bytes: $0.jsonBuffer()) }
    }

    public func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File? {
        guard let files = try await record(id)?.files, files.indices.contains(index) else { return nil }
        return files[index]
    }
}
