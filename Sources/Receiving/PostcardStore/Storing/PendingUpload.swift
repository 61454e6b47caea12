public import NIOCore

/// An upload that is being stored. One task calls it: for each file a beginning, its bytes and an end, and then a
/// commit. An upload that is not committed is discarded.
public protocol PendingUpload {
    /// Whether the key of the upload has a record already, with which the upload is only compared. Defaults to `false`.
    var isRepetition: Bool { get }

    /// Begins the next file.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func beginFile(_ file: UploadRecord.FileHeader) async throws

    /// Appends bytes to the current file. Returns when the store can accept more, which may be before they are stored.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func write(_ bytes: ByteBuffer) async throws

    /// Ends the current file.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func endFile() async throws

    /// The complete files, so that they can be checked before the upload becomes a record. Empty if the files are those
    /// of an existing record.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func finishedFiles() async throws -> [FinishedFile]

    /// Makes the upload a record, durably.
    ///
    /// - Parameters:
    ///   - fields: The text fields, in the order of the form.
    ///   - parts: The fields and files together, in the order of the form.
    /// - Returns: The record, which is now listed, or the one that the upload's key already has.
    /// - Throws: ``UploadStoreError`` if there is no room, the store fails, or the key has a record of another content.
    func commit(fields: [UploadRecord.Field], parts: [UploadRecord.Part]) async throws -> CommittedUpload

    /// Removes what was written. It is called after a failed commit too.
    func discard() async
}

extension PendingUpload {
    public var isRepetition: Bool { false }
}
