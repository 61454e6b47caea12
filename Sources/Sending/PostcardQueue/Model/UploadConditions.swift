public import PostcardClient
public import PostcardFoundation

/// When an upload may be sent, and in which order.
public struct UploadConditions: Sendable, Hashable {
    /// The earliest time to send the upload. Defaults to `nil`: at once.
    public var notBefore: Date?

    /// The time at which the upload fails, with the code `expired`, if it has not arrived. An attempt in progress is
    /// then cancelled. Defaults to `nil`: never.
    public var expires: Date?

    /// The networks that the upload may use. Defaults to all. Only Apple platforms distinguish networks. What is handed
    /// over while the app is in the background may wait for Wi-Fi all the same: ``BackgroundSession/isDiscretionary``.
    public var networks: AllowedNetworks

    /// The priority. Uploads with a higher priority are sent first, and uploads with the same priority in the order in
    /// which they were enqueued. Defaults to 0.
    public var priority: Int

    /// A name for uploads that must be sent one after the other, in the order in which they were enqueued and
    /// regardless of their priorities. An upload that failed or is paused holds back the later ones of its group.
    /// Defaults to `nil`: no group.
    public var group: String?

    /// Makes conditions. By default, the upload is sent as soon as possible.
    public init(
        notBefore: Date? = nil, expires: Date? = nil, networks: AllowedNetworks = .all, priority: Int = 0,
        group: String? = nil
    ) {
        self.notBefore = notBefore
        self.expires = expires
        self.networks = networks
        self.priority = priority
        self.group = group
    }
}
