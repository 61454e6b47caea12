/// What became of an upload.
public struct CommittedUpload: Sendable, Hashable {
    /// The record of the upload.
    public let record: UploadRecord
    /// Whether an earlier upload under the same key made the record.
    public let isRepetition: Bool

    /// Makes the result of a commit, for your own store.
    public init(_ record: UploadRecord, isRepetition: Bool = false) {
        self.record = record
        self.isRepetition = isRepetition
    }
}
