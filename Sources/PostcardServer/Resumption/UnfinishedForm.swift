/// What is known about a form before all of it has arrived.
public struct UnfinishedForm: Sendable, Hashable {
    /// The form's Content-Type, with its boundary.
    public let contentType: String
    /// The key under which the form becomes a record.
    public let key: UploadKey
    /// The length of the body in bytes, once a request has said it.
    public var length: Int64?

    /// Describes a form.
    public init(contentType: String, key: UploadKey, length: Int64?) {
        self.contentType = contentType
        self.key = key
        self.length = length
    }
}
