package import PostcardResumption

/// Whether and how an upload that was cut goes on where it stopped.
///
/// ```swift
/// var client = UploadClient()
/// client.resumption = ResumptionPolicy()
/// ```
///
/// Where the server speaks "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload), it keeps what it has of
/// a form when the connection breaks, says how much that is, and takes the rest. An OPTIONS request asks whether it
/// does, once for each address within an hour; a server that does not gets an ordinary upload. So do forms
/// that hold a stream which can be read only once or has no known length.
///
/// An upload that goes on is another attempt, with the same `Idempotency-Key`, and its progress goes on too. A file
/// of the form that has changed in the meantime ends it before another byte is sent. Interceptors adapt the request that
/// the caller asked for; what they add to its header fields goes with every request of the upload.
public struct ResumptionPolicy: Sendable {
    /// Whether, when and how often a cut upload goes on. It takes the place of the client's own policy once the server
    /// is known to resume, and counts only attempts in a row that brought the upload no further.
    public var retryPolicy: RetryPolicy

    /// The smallest body, in bytes, that is worth the two further requests: 1 MiB unless set. Smaller ones are
    /// ordinary uploads.
    public var minimumBytes: Int64

    /// Whether the server is told to throw away what it has when the upload's task is cancelled; that takes five seconds
    /// at the most. Unless set, nothing is sent, and the server keeps it until it expires.
    public var deletesCancelledUploads: Bool

    /// How many answers in a row may reject what is sent (409, 404, 410) before the upload fails. Defaults to 5.
    ///
    /// Such an answer means that the server has lost what it had, or has another offset than it said. The upload then
    /// asks for the offset and goes on at once. What the server says about its offset meanwhile is no progress; only an
    /// accepted request is, or one that was cut.
    public var maximumRejections = 5

    /// The texts of the draft that are spoken, the one that is tried first first. The last text's header fields are
    /// those of the standard to be.
    package var versions: [ResumptionVersion] = [.interop8, .interop6]

    /// What servers have said; copies of the policy share it.
    let offers = ResumptionOffers()

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - retryPolicy: Whether, when and how often a cut upload goes on; up to ten attempts in a row that bring it
    ///     no further unless given.
    ///   - minimumBytes: The smallest body that is worth it.
    ///   - deletesCancelledUploads: Whether the server is told when the task is cancelled.
    public init(
        retryPolicy: RetryPolicy = RetryPolicy(maximumAttempts: 10), minimumBytes: Int64 = 1 << 20,
        deletesCancelledUploads: Bool = false
    ) {
        self.retryPolicy = retryPolicy
        self.minimumBytes = minimumBytes
        self.deletesCancelledUploads = deletesCancelledUploads
    }
}
