#if !Store && !Server && !S3 && !CommandLine
#error("PostcardStore needs the trait Store of this package: .package(url: …, traits: [\"Store\"])")
#endif

import NIOCore

/// A store that keeps uploads.
///
/// A store keeps three promises. First, an upload appears completely or not at all. Until
/// ``PendingUpload/commit(fields:parts:)`` is called, the upload is in no listing. After the call has returned, the
/// upload survives a power cut. Discarded or interrupted uploads never appear. Second, identifiers grow: of two records
/// that a process commits one after the other, the later one has the greater identifier. If several processes share a
/// store, their clocks decide the order. Third, a key has only one record: see ``beginUpload(under:announcedBytes:)``.
public protocol UploadStore: Sendable {
    /// The type of an upload that is not visible yet.
    associatedtype Upload: PendingUpload

    /// Begins an upload, which is not visible until it is committed.
    ///
    /// A key has only one record until the record is deleted, even after a crash. If several uploads with the key
    /// arrive at once, the first commit makes the record. Later commits return the same record if the fields and files
    /// are equal, and otherwise throw ``UploadStoreError/keyReused``. A failed upload frees the key.
    ///
    /// - Parameters:
    ///   - key: The key that identifies the upload; `nil` if the client sent no key.
    ///   - announcedBytes: The length of the form, if the client declared it. A full store throws ``UploadStoreError``
    ///     with the code ``UploadStoreError/Code/full`` before the client sends the form.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func beginUpload(under key: UploadKey?, announcedBytes: Int64?) async throws -> sending Upload

    /// The identifiers of the records, newest first.
    ///
    /// - Parameters:
    ///   - limit: The maximum number of identifiers.
    ///   - id: Only records older than this identifier are returned. The identifier may be that of a deleted record.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func identifiers(limit: Int, after id: UploadID?) async throws -> [UploadID]

    /// Reads a record; `nil` if it does not exist.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func record(_ id: UploadID) async throws -> UploadRecord?

    /// Opens the JSON of a record for reading, as in ``UploadRecord/json()``; `nil` if the record does not exist.
    ///
    /// Defaults to encoding the record, which can have tens of megabytes: stores should return the bytes they keep.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func openRecord(_ id: UploadID) async throws -> (any StoredFile)?

    /// Reads the description of a file; `nil` if the file does not exist. Defaults to reading the whole record.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func describedFile(_ index: Int, of id: UploadID) async throws -> UploadRecord.File?

    /// Opens the content of a file for reading; `nil` if the file does not exist.
    ///
    /// After the upload is deleted, an open file stays readable for at least an hour.
    ///
    /// - Parameters:
    ///   - index: The index of the file in ``UploadRecord/files``.
    ///   - id: The identifier of the upload.
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
