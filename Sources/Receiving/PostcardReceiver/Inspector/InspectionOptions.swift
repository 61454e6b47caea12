/// How much of the last requests is recorded. The record is in memory, and lost when the receiver ends. If there are too
/// many requests, the oldest of the address that has most of them is removed first.
public struct InspectionOptions: Sendable, Hashable {
    /// How many requests are recorded. Defaults to the last 200.
    public var maximumRequests = 200

    /// How many bytes of a refused body are recorded, at its beginning and again at its end. Defaults to 64 KiB.
    public var maximumEndBytes = 64 << 10

    /// The maximum size of all recorded bodies and headers together, in bytes. Defaults to 8 MiB.
    public var maximumBytes = 8 << 20

    /// How many parts of a form are described. Defaults to the first 200.
    public var maximumParts = 200

    /// Makes options with the default values.
    public init() {}
}
