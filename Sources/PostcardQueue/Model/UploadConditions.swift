#if Queue
#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// What has to hold before a queued upload is sent, and before which others it goes.
public struct UploadConditions: Sendable, Hashable {
    /// The earliest time; at once where it is `nil`.
    public var notBefore: Date?

    /// Whether it waits for a network that is not metered. Where the platform does not tell, every network counts
    /// as one that is not.
    public var needsUnmeteredNetwork: Bool

    /// Uploads of a higher priority go first; of those of the same, the one that was enqueued first.
    public var priority: Int

    /// Uploads of one group go one after the other, in the order in which they were enqueued, whatever their
    /// priorities. One that fails holds back those behind it, until it is retried, cancelled or cleared.
    public var group: String?

    /// Makes conditions; without any, an upload goes as soon as there is a place.
    public init(
        notBefore: Date? = nil, needsUnmeteredNetwork: Bool = false, priority: Int = 0, group: String? = nil
    ) {
        self.notBefore = notBefore
        self.needsUnmeteredNetwork = needsUnmeteredNetwork
        self.priority = priority
        self.group = group
    }
}
#endif
