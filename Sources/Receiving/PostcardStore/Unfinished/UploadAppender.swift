public import NIOCore

/// Appends bytes to an unfinished upload.
public protocol UploadAppender {
    /// The length of the upload, once all bytes that were passed are written.
    var offset: Int64 { get }

    /// Appends bytes. Returns when the store can accept more, which may be before they are written.
    ///
    /// - Throws: ``UploadStoreError``. Its code is ``UploadStoreError/Code/overtaken`` if another process has appended
    ///   other bytes at the same offset.
    mutating func append(_ bytes: ByteBuffer) async throws

    /// Waits until all bytes that were passed are written. More bytes may follow. It is called after a failure too, and
    /// throws again then; bytes may follow a failure only after ``revert()``.
    ///
    /// - Throws: As ``append(_:)`` does.
    mutating func finish() async throws

    /// Removes all bytes that were passed to this appender, because they do not match their digest. No client
    /// was promised them, and ``finish()`` was not called.
    mutating func revert() async throws
}
