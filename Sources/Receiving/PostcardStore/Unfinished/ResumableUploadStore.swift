public import PostcardFoundation

/// A store that also keeps uploads that arrive in several requests (draft-ietf-httpbis-resumable-upload).
///
/// The upload routes offer resumption for every store that conforms. ``LocalUploadStore`` does; a store that wraps
/// another one forwards these three functions.
///
/// An unfinished upload holds the bytes of a form that has not arrived whole. When it has, the routes read it, commit
/// it as any other form through ``UploadStore/beginUpload(under:announcedBytes:)``, and replace the bytes by the
/// response. A store that deletes a record also discards the unfinished uploads whose response shows it.
public protocol ResumableUploadStore: UploadStore {
    /// What the store has of an upload that has not arrived whole.
    associatedtype Unfinished: UnfinishedUpload

    /// Creates an upload without bytes. When it returns, the upload survives a restart.
    ///
    /// - Parameters:
    ///   - id: The name that ``unfinishedUpload(_:)`` finds it by. It is a secret of the client.
    ///   - form: What is known about the form.
    ///   - expires: When the upload is discarded, finished or not.
    /// - Throws: ``UploadStoreError`` if there is no room on the disk, or the store fails.
    func createUnfinishedUpload(
        _ id: ResumptionID, of form: UnfinishedForm, expires: Date
    ) async throws -> Unfinished

    /// The uploads from before a restart that are not finished. It is called once, before the first upload is created,
    /// because they take up room too. A store that several processes share returns none: an upload takes up room of the
    /// processes that append to it.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func unfinishedUploads() async throws -> [Unfinished]

    /// The upload with the identifier; `nil` if there is none or it has expired. All callers in a process share one
    /// object for as long as one of them keeps it.
    ///
    /// - Throws: ``UploadStoreError`` if the store fails.
    func unfinishedUpload(_ id: ResumptionID) async throws -> Unfinished?
}
