/// How much of the requests that came is kept to be looked at. It is kept in memory, and gone when the receiver ends.
public struct InspectionOptions: Sendable, Hashable {
    /// How many requests are kept: the last 200 unless set.
    public var maximumRequests = 200

    /// How many bytes are kept of a refused body, of its beginning and of its end each: 64 KiB unless set.
    public var maximumEndBytes = 64 << 10

    /// How many bytes all that is kept of bodies and headers may have together: 16 MiB unless set. Older requests
    /// go when there are more.
    public var maximumBytes = 16 << 20

    /// How many parts of a form are described: the first 200 unless set.
    public var maximumParts = 200

    /// The defaults.
    public init() {}
}
