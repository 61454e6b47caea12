package import PostcardWire

/// How an interrupted upload resumes.
///
/// ```swift
/// var client = UploadClient()
/// client.resumption = ResumptionPolicy()
/// ```
///
/// A server that supports "Resumable Uploads for HTTP" (draft-ietf-httpbis-resumable-upload) keeps what it has of a
/// form when the connection breaks, says how much that is, and accepts the rest. An OPTIONS request finds out whether
/// it does, at most once an hour for each address. If the response offers nothing, the form is sent in one request that
/// invites the server to resume it, which others ignore. A form with a stream that can be read only once or has no known
/// length is an ordinary upload.
///
/// A resumed upload is another attempt, with the same `Idempotency-Key`, and its progress continues. If a file of the
/// form has changed in the meantime, the upload fails before another byte is sent. Interceptors adapt the request that
/// the caller made; the header fields that they add are sent with every request of the upload.
public struct ResumptionPolicy: Sendable {
    /// When and how often an interrupted upload resumes. It replaces the client's own policy once the server is known
    /// to support resumption, and counts only attempts in a row that made no progress.
    public var retryPolicy: RetryPolicy

    /// The smallest body, in bytes, that is worth the two further requests. Defaults to 1 MiB. Smaller ones are
    /// ordinary uploads, unless an earlier upload has shown that the address accepts only smaller requests.
    public var minimumBytes: Int64

    /// Whether the server is asked to delete what it has when the upload's task is cancelled, which takes at most five
    /// seconds. Defaults to `false`: nothing is sent, and the server keeps it until it expires.
    public var deletesCancelledUploads: Bool

    /// How many responses in a row may reject what is sent before the upload fails. Defaults to 5.
    ///
    /// Such a response means that the server has lost what it had (404, 410), has another offset than it said (409),
    /// got other bytes than were sent (400 with the code `digest-mismatch`), or has lowered its limit (413). The upload
    /// then asks for the offset and resumes at once. An offset that the server reports meanwhile is not progress: only a
    /// request that the server accepts, or that is interrupted, resets the count.
    public var maximumRejections = 5

    /// How large appends are, in bytes, once some have failed for no reason that the server gave: because of a proxy
    /// with a limit of its own, or one that passes nothing on before it has the whole request. The first is as large as
    /// the upper bound, and each further one half as large as the last that failed, down to the lower bound. Defaults
    /// to 8,000,000 down to 125,000.
    package var cautiousAppendBytes: ClosedRange<Int64> = 125_000...8_000_000

    /// The supported versions of the draft, most preferred first. A server that refuses one is asked in the next one. A
    /// server without versions, as the future standard has it, answers to any of them.
    package var versions: [ResumptionVersion] = [.interop9, .interop8, .interop6]

    /// The versions in which a whole form invites a server without OPTIONS to name an upload resource, most preferred
    /// first. The last one is none: a 104 without a version counts only if the request has none either.
    var invitations: [ResumptionVersion] { versions.contains(.newest) ? versions : versions + [.newest] }

    /// The version to invite a server in that has not answered to another one; `nil` after the last.
    func invitation(after version: ResumptionVersion) -> ResumptionVersion? {
        invitations.drop { $0 != version }.dropFirst().first
    }

    /// Whether a response says nothing about what the server supports: it or a proxy is busy, or the client must
    /// authenticate.
    func saysNothing(_ response: UploadResponse) -> Bool {
        retryPolicy.statuses.union([401, 403]).contains(response.status.code)
    }

    /// What servers have offered; copies of the policy share it.
    let offers = ResumptionOffers()

    /// Makes a policy.
    ///
    /// - Parameters:
    ///   - retryPolicy: When and how often an interrupted upload resumes. Defaults to up to ten attempts in a row without
    ///     progress.
    ///   - minimumBytes: The smallest body that is resumed, in bytes. Defaults to 1 MiB.
    ///   - deletesCancelledUploads: Whether the server is asked to delete a cancelled upload. Defaults to `false`.
    public init(
        retryPolicy: RetryPolicy = RetryPolicy(maximumAttempts: 10), minimumBytes: Int64 = 1 << 20,
        deletesCancelledUploads: Bool = false
    ) {
        self.retryPolicy = retryPolicy
        self.minimumBytes = minimumBytes
        self.deletesCancelledUploads = deletesCancelledUploads
    }
}
