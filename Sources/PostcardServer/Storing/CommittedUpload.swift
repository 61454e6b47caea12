/// What an upload has become.
public struct CommittedUpload: Sendable, Hashable {
    /// The record of the upload.
    public let record: UploadRecord
    /// Whether an earlier upload under the same key made the record, and this one only asked for it again.
    public let isRepetition: Bool

    /// For stores of one's own.
    public init(_ record: UploadRecord, isRepetition: Bool = false) {
        self.record = record
        self.isRepetition = isRepetition
    }
}
