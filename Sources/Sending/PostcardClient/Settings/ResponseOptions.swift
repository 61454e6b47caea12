public import PostcardFoundation

/// Which responses mean that the server has the form, and how they are read.
public struct ResponseOptions: Sendable {
    /// The statuses of success. Defaults to 200 to 299 (RFC 9110 §15.3). Any other is a redirect, or an error with the
    /// code ``UploadError/Code/refused``.
    public var acceptedStatuses = Set(200..<300)

    /// Whether a response counts that arrives before the whole form was sent. Defaults to `false`: it fails the upload
    /// with ``UploadError/Code/earlyResponse``, because a server that has not received a form cannot have stored it.
    /// After an attempt whose response was lost it counts: a server that knows the form by its key need not read it
    /// again.
    ///
    /// Set it for a server that decides by the beginning of a form. ``UploadResponse/isEarly`` then says which
    /// responses were early.
    public var acceptsEarly = false

    /// The maximum size of a response body, in bytes. Defaults to 16 MiB.
    public var maximumBytes = 16 << 20

    /// The decoder of JSON in responses, with the formats of dates and keys. Defaults to a `JSONDecoder` without changes.
    ///
    /// ```swift
    /// client.responses.decoder.keyDecodingStrategy = .convertFromSnakeCase
    /// ```
    ///
    /// ``UploadResponse/decode(_:decoder:)`` and endpoints without a decoder of their own use it. It is an object: copies
    /// of a client share it, so change it before anything is sent.
    public var decoder = JSONDecoder()

    /// Compares what the server says it received with what was sent. Defaults to `nil`: nothing is compared.
    public var verification: UploadVerification?

    /// Whether digests protect the form in transit (RFC 9530). Defaults to `false`.
    ///
    /// The form is read once before it is sent. Its SHA-256 is sent with it as `Repr-Digest`, and that of each append of
    /// a resumable upload, which is read once more too, as `Content-Digest`. A server that knows them, as
    /// `postcard serve` does, refuses bytes that changed in transit before it stores anything. A resumable upload sends
    /// them again; an ordinary one does if ``UploadClient/retryPolicy`` allows another attempt. ``UploadResponse/isVerified`` then says
    /// whether the server has reported the same digest.
    ///
    /// A form with a stream that can be read only once is sent without digests.
    public var sendsDigests = false

    /// Makes the defaults.
    public init() {}
}
