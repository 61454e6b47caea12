/// The kinds of network that an upload may use.
///
/// ```swift
/// client.network.allowed = .unmetered
/// ```
///
/// Only Apple platforms distinguish networks. Elsewhere every upload may use the network that there is.
public struct AllowedNetworks: Sendable, Hashable {
    /// Whether the upload may use a cellular network. Defaults to `true`.
    public var cellular: Bool

    /// Whether the upload may use a network that the system considers expensive, such as cellular or a personal
    /// hotspot. Defaults to `true`.
    public var expensive: Bool

    /// Whether the upload may use a network in Low Data Mode. Defaults to `true`.
    public var constrained: Bool

    /// Allows every network, except those switched off.
    public init(cellular: Bool = true, expensive: Bool = true, constrained: Bool = true) {
        self.cellular = cellular
        self.expensive = expensive
        self.constrained = constrained
    }

    /// Every network.
    public static let all = AllowedNetworks()

    /// Networks that are neither expensive nor in Low Data Mode: usually Wi-Fi.
    public static let unmetered = AllowedNetworks(expensive: false, constrained: false)
}
