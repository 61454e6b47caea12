/// What a receiver does about a file whose first bytes contradict the media type that the client sent, such as a HEIC
/// picture sent as `image/jpeg`.
public enum ContentTypePolicy: String, Sendable, Hashable, CaseIterable {
    /// The record has both types: `UploadRecord.File.contentType` and `UploadRecord.File.detectedType`.
    case recordBoth = "record"
    /// The record has the type that the bytes show.
    case correct
    /// The form is refused with 415 and the code `content-contradicts-type`.
    case refuse
}
