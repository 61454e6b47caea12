import PostcardClient

/// The network in use, as `NWPath` describes it on Apple platforms.
public struct NetworkPath: Sendable, Hashable {
    /// Whether the network is cellular.
    public var isCellular: Bool
    /// Whether the system considers the network expensive, such as cellular or a personal hotspot.
    public var isExpensive: Bool
    /// Whether the network is in Low Data Mode.
    public var isConstrained: Bool
    /// Whether the device has any network. Uploads are tried even if the system reports none, because the server may be
    /// on this device.
    public var isAvailable: Bool

    /// Describes a network. By default, it has no limits.
    public init(
        isCellular: Bool = false, isExpensive: Bool = false, isConstrained: Bool = false, isAvailable: Bool = true
    ) {
        self.isAvailable = isAvailable
        self.isCellular = isCellular
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// Whether an upload may use the network.
    package func isAllowed(by networks: AllowedNetworks) -> Bool {
        (networks.cellular || !isCellular) && (networks.expensive || !isExpensive)
            && (networks.constrained || !isConstrained)
    }

    /// Whether an upload has to wait for another network.
    func holdsBack(_ networks: AllowedNetworks) -> Bool { !isAvailable || !isAllowed(by: networks) }

    /// The values of ``PostcardClient/AllowedNetworks/mask`` with which an upload may be sent now. Until the network is
    /// known, only uploads that may use every network are sent.
    static func allowedMasks(on path: NetworkPath?) -> [Int64] {
        (0..<8).filter { mask in path?.isAllowed(by: AllowedNetworks(mask: mask)) ?? (mask == 0) }
    }
}
