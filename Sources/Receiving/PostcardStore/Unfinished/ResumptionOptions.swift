/// How unfinished uploads are kept, so that clients can resume them (draft-ietf-httpbis-resumable-upload).
public struct UnfinishedUploadOptions: Sendable, Hashable {
    /// How long an upload can be resumed, and its response requested again, counted from its creation. Defaults to one
    /// day. Its bytes and its response are then removed.
    public var lifetime: Duration = .seconds(24 * 60 * 60)

    /// How many uploads may be unfinished at once. Defaults to 1,000. One client address can have the share of them that
    /// `UploadOptions.clientShare` allows. A further form is received as one that cannot be resumed, or refused if the
    /// request is only its beginning.
    ///
    /// An upload is kept until its ``lifetime`` is over, unless another upload needs the room. Only an upload is
    /// discarded that no request uses, and that is older than its bytes would take at 500 bytes per second. If there are
    /// too many uploads, it is one of the address with the most such uploads, or one of the other upload's own address
    /// if no address has more. If there are too many bytes, it is one of the other upload's own address.
    public var maximumUnfinished = 1000

    /// The maximum size of all unfinished uploads together, in bytes. Defaults to 16 GiB, four of the largest forms.
    /// One client address can have the share of them that `UploadOptions.clientShare` allows. There, an upload counts
    /// with its length as soon as a request says it.
    public var maximumUnfinishedBytes: Int64 = 16 << 30

    /// How many responses are kept for clients that missed them. Defaults to 10,000. If there are too many, the oldest one
    /// of the address that has most is removed.
    public var maximumKeptResponses = 10_000

    /// Which interim responses clients get while their form arrives. Defaults to ``InterimResponses/auto``.
    public var interimResponses = InterimResponses.auto

    /// How long a form must have been incomplete before its client gets an interim response with the address of the
    /// upload. Defaults to 1 second, so that small forms need none. 0 sends it before the body is read.
    public var announcementDelay: Duration = .seconds(1)

    /// When a client first gets an interim response with the number of bytes that are stored. Defaults to 5 seconds
    /// after its request began. Two more follow, each after twice the time: some proxies give up on a request with
    /// more than five interim responses.
    public var progressInterval: Duration = .seconds(5)

    /// The origin before the path in the `Location` of an unfinished upload, such as `https://example.org`, for clients
    /// that do not resolve a relative one (RFC 9110 §10.2.2). Defaults to `nil`: only the path is sent, which is right
    /// behind any proxy.
    public var locationOrigin: String?

    /// Which interim responses with status 104 (Upload Resumption Supported) a client gets.
    ///
    /// Proxies that do not know the status take it for the final response, as nginx does with upstreams of HTTP/1.1.
    /// Clients that create an upload with an empty request need no interim response.
    public enum InterimResponses: String, Sendable, Hashable, CaseIterable {
        /// Only to requests with `Upload-Draft-Interop-Version`, whose body takes longer than
        /// ``UnfinishedUploadOptions/announcementDelay``. A connection of HTTP/1.1 is closed after the final response, so
        /// that a proxy that took the interim one for final sees an end.
        case auto
        /// None.
        case never
    }

    /// Makes options with the default values.
    public init() {}
}
