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
