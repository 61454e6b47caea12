import PostcardClient
import Synchronization

#if canImport(Network)
import Dispatch
import Network
#endif

/// The network in use, as `NWPath` describes it on Apple platforms.
public struct NetworkPath: Sendable, Hashable {
    /// Whether the network is cellular.
    public var isCellular: Bool
    /// Whether the system considers the network expensive, such as cellular or a personal hotspot.
    public var isExpensive: Bool
    /// Whether the network is in Low Data Mode.
    public var isConstrained: Bool

    /// Describes a network. By default, it has no limits.
    public init(isCellular: Bool = false, isExpensive: Bool = false, isConstrained: Bool = false) {
        self.isCellular = isCellular
        self.isExpensive = isExpensive
        self.isConstrained = isConstrained
    }

    /// Whether an upload may use the network.
    func isAllowed(by networks: AllowedNetworks) -> Bool {
        (networks.cellular || !isCellular) && (networks.expensive || !isExpensive)
            && (networks.constrained || !isConstrained)
    }

    /// The values of ``PostcardClient/AllowedNetworks/mask`` with which an upload may be sent now. Until the network is
    /// known, only uploads that may use every network are sent.
    static func allowedMasks(on path: NetworkPath?) -> [Int64] {
        (0..<8).filter { mask in path?.isAllowed(by: AllowedNetworks(mask: mask)) ?? (mask == 0) }
    }
}

#if canImport(Network)
/// Follows which network the system uses.
final class NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    private let monitor = NWPathMonitor()
    /// `nil` until the first update: before that, the monitor's current path means nothing.
    private let known = Mutex<NetworkPath?>(nil)
    private let signal = ChangeSignal()

    private init() {
        monitor.pathUpdateHandler = { [weak self] path in
            self?.update(
                NetworkPath(
                    isCellular: path.usesInterfaceType(.cellular), isExpensive: path.isExpensive,
                    isConstrained: path.isConstrained))
        }
        monitor.start(queue: DispatchQueue(label: "Postcard network"))
    }

    private func update(_ path: NetworkPath) {
        known.withLock { $0 = path }
        signal.notify()
    }

    var path: NetworkPath? { known.withLock { $0 } }

    /// One element at once and one after every change.
    func changes() -> AsyncStream<Void> { signal.stream() }
}
#else
/// This platform does not distinguish networks.
struct NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    var path: NetworkPath? { NetworkPath() }

    func changes() -> AsyncStream<Void> { AsyncStream { $0.finish() } }
}
#endif
