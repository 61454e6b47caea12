public import PostcardClient

#if canImport(FoundationEssentials)
public import FoundationEssentials
#else
public import Foundation
#endif

/// When a queued upload may be sent, and before which others.
public struct UploadConditions: Sendable, Hashable {
    /// The earliest time to send it. Defaults to `nil`: at once.
    public var notBefore: Date?

    /// The networks that it may use. Defaults to all. Only Apple platforms distinguish networks.
    public var networks: AllowedNetworks

    /// Uploads with a higher priority go first, and equal ones in the order in which they were enqueued. Defaults to 0.
    public var priority: Int

    /// Uploads of one group go one after the other, in the order in which they were enqueued, whatever their priorities.
    /// One that failed or is paused holds back those behind it. Defaults to `nil`: no group.
    public var group: String?

    /// Makes conditions. By default an upload is sent as soon as possible.
    public init(
        notBefore: Date? = nil, networks: AllowedNetworks = .all, priority: Int = 0, group: String? = nil
    ) {
        self.notBefore = notBefore
        self.networks = networks
        self.priority = priority
        self.group = group
    }
}
