public import PostcardClient
public import PostcardFoundation

/// The conditions and the order in which an upload may be sent.
public struct UploadConditions: Sendable, Hashable {
    /// The earliest time to send the upload. Defaults to `nil`, at once.
    public var notBefore: Date?

    /// When the upload expires. If it has not arrived by then, it fails with the code `expired`, and an attempt in
    /// progress is cancelled. Defaults to `nil`, never.
    public var expires: Date?

    /// The networks that the upload may use. Defaults to all. Only Apple platforms distinguish networks. An upload that
    /// the app hands to the system in the background may still wait for Wi-Fi (see
    /// ``BackgroundSession/isDiscretionary``).
    public var networks: AllowedNetworks

    /// The priority. Uploads with a higher priority are sent first. Uploads with the same priority are sent in the
    /// order in which they were enqueued. Defaults to 0.
    public var priority: Int

    /// A name for uploads that must be sent one after the other, in the order in which they were enqueued, whatever
    /// their priorities are. A failed or paused upload holds back the later uploads of its group. Defaults to `nil`, no
    /// group.
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

/// The network in use, as `NWPath` describes it on Apple platforms.
public struct NetworkPath: Sendable, Hashable {
    /// Whether the network is cellular.
    public var isCellular: Bool
    /// Whether the system considers the network expensive, such as cellular or a personal hotspot.
    public var isExpensive: Bool
    /// Whether the network is in Low Data Mode.
    public var isConstrained: Bool
    /// Whether the device has a network. Uploads are tried even without one: the server may be on this device.
    public var isAvailable: Bool

    /// Describes a network. By default, the network has no restrictions.
    public init(
        isCellular: Bool = false, isExpensive: Bool = false, isConstrained: Bool = false, isAvailable: Bool = true
    ) {
        self.isAvailable = isAvailable
        self.isCellular = isCellular
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// Whether an upload may use this network.
    package func isAllowed(by networks: AllowedNetworks) -> Bool {
        (networks.cellular || !isCellular) && (networks.expensive || !isExpensive)
            && (networks.constrained || !isConstrained)
    }

    /// Whether an upload must wait for another network.
    func holdsBack(_ networks: AllowedNetworks) -> Bool { !isAvailable || !isAllowed(by: networks) }

    /// The values of ``PostcardClient/AllowedNetworks/mask`` with which uploads may be sent now. Until the network is
    /// known, only uploads that may use every network are sent.
    static func allowedMasks(on path: NetworkPath?) -> [Int64] {
        (0..<8).filter { mask in path?.isAllowed(by: AllowedNetworks(mask: mask)) ?? (mask == 0) }
    }
}
