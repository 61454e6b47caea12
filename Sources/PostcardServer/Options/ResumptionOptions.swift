/// How unfinished uploads are kept, so that clients can resume them (draft-ietf-httpbis-resumable-upload).
public struct ResumptionOptions: Sendable, Hashable {
    /// How long an upload can be resumed, and its response requested again, counted from its creation. Defaults to one
    /// day. Its bytes and its response are then removed.
    public var lifetime: Duration = .seconds(24 * 60 * 60)

    /// How many uploads may be unfinished at once. Defaults to 1,000. One client address can have the share of them that
    /// ``UploadOptions/clientShare`` allows. A further form is received as one that cannot be resumed, or refused if the
    /// request is only its beginning.
    ///
    /// An upload is kept until its ``lifetime`` is over, unless others need the room: then one that no request uses, and
    /// that is older than its bytes take at 500 bytes per second, gives way. It is one of the address that has most,
    /// unless the same address has as many.
    public var maximumUnfinished = 1000

    /// The maximum size of all unfinished uploads together, in bytes. Defaults to 16 GiB, four of the largest forms.
    /// One client address can have the share of them that ``UploadOptions/clientShare`` allows. There, an upload counts
    /// with its length as soon as a request says it.
    public var maximumUnfinishedBytes: Int64 = 16 << 30

    /// How many responses are kept for clients that missed them. Defaults to 10,000. The oldest are removed first.
    public var maximumKeptResponses = 10_000

    /// Makes options with the default values.
    public init() {}
}
