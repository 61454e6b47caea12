public import PostcardFoundation

/// The keys with which requests to an object store are signed.
public struct S3Credentials: Sendable, Hashable, CustomStringConvertible {
    /// The public name of the key, such as `AKIAIOSFODNN7EXAMPLE`.
    public var accessKeyID: String
    /// The secret key. It is never sent, and never part of a log.
    public var secretAccessKey: String
    /// The token of temporary credentials. Defaults to `nil`.
    public var sessionToken: String?
    /// When temporary credentials end; `nil` if they do not, or it is unknown.
    public var expires: Date?

    /// Makes credentials.
    public init(accessKeyID: String, secretAccessKey: String, sessionToken: String? = nil, expires: Date? = nil) {
        self.accessKeyID = accessKeyID
        self.secretAccessKey = secretAccessKey
        self.sessionToken = sessionToken
        self.expires = expires
    }

    /// The name of the key, without its secret.
    public var description: String { accessKeyID }
}
