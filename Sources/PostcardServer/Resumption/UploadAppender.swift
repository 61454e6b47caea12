public import NIOCore

/// Appends bytes to an unfinished upload.
public protocol UploadAppender {
    /// The length of the upload, once all bytes that were passed are written.
    var offset: Int64 { get }

    /// Appends bytes. Returns when the store can accept more, which may be before they are written.
    mutating func append(_ bytes: ByteBuffer) async throws

    /// Waits until all bytes that were passed are written. It is called after a failure too.
    mutating func finish() async throws

    /// Removes all bytes that were passed to this appender, because they do not match their digest. No client
    /// was promised them.
    mutating func revert() async throws
}
