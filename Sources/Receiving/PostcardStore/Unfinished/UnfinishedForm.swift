package import PostcardFoundation

/// What is known about a form before all of it has arrived.
public struct UnfinishedForm: Sendable, Hashable {
    /// When an upload can be created and expire. After the year 9999, what is counted from such a time may not fit into
    /// a number.
    package static let possibleTimes =
        Date(timeIntervalSince1970: 0)...Date(timeIntervalSince1970: 253_402_300_799)

    /// The form's Content-Type, with its boundary.
    public let contentType: String
    /// The key under which the form becomes a record.
    public let key: UploadKey
    /// The length of the body in bytes, once a request has said it.
    public var length: Int64?
    /// The value of `Repr-Digest`, with which the whole form is compared (RFC 9530 §3).
    public var reprDigest: String?
    /// The value of `Want-Repr-Digest`, if the client wants the digest of the whole form (RFC 9530 §4).
    public var wantReprDigest: String?
    /// The parameters of a Content-Disposition that name the file, if the upload is no form but a file
    /// (`UploadOptions.acceptsAnyBody`).
    public var fileParameters: String?
    /// The client that created the upload, which counts for its share; `nil` if it is not known.
    package var client: PeerAddress?

    /// Describes a form.
    public init(
        contentType: String, key: UploadKey, length: Int64?, reprDigest: String? = nil, wantReprDigest: String? = nil
    ) {
        self.contentType = contentType
        self.key = key
        self.length = length
        self.reprDigest = reprDigest
        self.wantReprDigest = wantReprDigest
    }
}
