public import PostcardFoundation

/// An upload whose bytes arrive in several requests, or whose response is kept. In each process, only the request that
/// holds ``lock`` changes it.
public protocol UnfinishedUpload: Sendable {
    /// What writes the bytes of one request.
    associatedtype Appender: UploadAppender

    /// The identifier by which clients resume the upload.
    var id: ResumptionID { get }
    /// The facts about the form that are known so far.
    var form: UnfinishedForm { get }
    /// When the upload is discarded, finished or not.
    var expires: Date { get }
    /// Lets one request at a time of this process change the upload.
    var lock: UploadLock { get }
    /// The progress that this process knows of, including bytes that would not survive a power cut.
    var progress: UnfinishedUploadProgress { get }

    /// Makes all bytes durable and returns the progress, with what other processes have appended. The client does not
    /// send these bytes again, so the offset never falls.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func durableProgress() async throws -> UnfinishedUploadProgress

    /// Stores the length of the form, once a request has said it.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func setLength(_ length: Int64) async throws

    /// Appends to the bytes received so far.
    ///
    /// - Parameter isRevertible: Whether ``UploadAppender/revert()`` may be called, because the bytes have a digest that
    ///   is compared once all have arrived. Until ``UploadAppender/finish()`` no other process may count them then.
    /// - Throws: ``UploadStoreError`` if the store fails.
    func makeAppender(isRevertible: Bool) async throws -> Appender

    /// Opens the bytes received so far for reading.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func openContent() async throws -> any StoredFile

    /// Replaces the bytes by the response. The options limit how many responses are kept.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func finish(with response: FinalResponse, options: UnfinishedUploadOptions) async throws

    /// The response that ``finish(with:options:)`` stored.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func response() async throws -> FinalResponse

    /// Removes the upload.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func discard() async throws
}

/// How far an unfinished upload is.
public enum UnfinishedUploadProgress: Sendable, Hashable {
    /// Bytes are missing, or the form could not be committed yet.
    case unfinished(offset: Int64)
    /// The form was committed as the record, or refused with no way to continue.
    case finished(length: Int64, record: UploadID?)
    /// The upload was discarded, has expired, or lost bytes.
    case gone
}
