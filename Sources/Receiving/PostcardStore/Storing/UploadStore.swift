#if !Store && !Server && !S3 && !CommandLine
#error("PostcardStore needs the trait Store of this package: .package(url: …, traits: [\"Store\"])")
#endif

import NIOCore

/// A store that keeps uploads.
///
/// A store keeps three promises. First, an upload appears as a whole or not at all. Until
/// ``PendingUpload/commit(fields:parts:)`` is called, the upload is in no listing. After the call has returned, it
/// survives a power cut. An upload that is discarded, or that a crash interrupted, never appears. Second, identifiers
/// grow: of two records that a process commits one after the other, the later one has the greater identifier. If
/// several processes share a store, the order is that of their clocks. Third, a key has only one record: see
/// ``beginUpload(under:announcedBytes:)``.
public protocol UploadStore: Sendable {
    /// The type of an upload that is not visible yet.
    associatedtype Upload: PendingUpload

    /// Begins an upload. The upload is not visible until it is committed.
    ///
    /// A key has only one record until the record is deleted, even after a crash. If several uploads with the key
    /// arrive at once, the first commit makes the record. Later commits return the same record if the fields and files
    /// are equal, and otherwise throw ``UploadStoreError/keyReused``. If an upload fails, the next upload can use its
    /// key.
    ///
    /// - Parameters:
    ///   - key: The key that identifies the upload; `nil` if the client sent no key.
    ///   - announcedBytes: The length of the form, if the client sent it. A store without room throws
    ///     ``UploadStoreError`` with the code ``UploadStoreError/Code/full`` before the client sends the form.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload

    /// The identifiers of the records, newest first.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of identifiers.
    ///   - id: The record before which the results begin: only older records are returned. It need not exist any more.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID]

    /// The record with the identifier; `nil` if there is none.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func record(_ id: UploadID) async throws -> UploadRecord?

    /// Opens the JSON of a record for reading: the same bytes as ``UploadRecord/json()``; `nil` if there is no such
    /// record.
    ///
    /// Defaults to encoding the record in memory. A record can have tens of megabytes, so a store that keeps these
    /// bytes should return them.
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
    ///   - index: The index of the file in ``UploadRecord/files``.
    ///   - id: The upload.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func openFile(_ index: Int, of id: UploadID) async throws -> (any StoredFile)?

    /// Deletes an upload, its record and its files.
    ///
    /// - Returns: Whether the upload existed.
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
