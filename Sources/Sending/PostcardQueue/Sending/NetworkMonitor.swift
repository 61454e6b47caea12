import Synchronization

#if canImport(Network)
import Dispatch
import Network
import PostcardFoundation
#endif

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
                    // A VPN on demand connects when something is sent.
                    isConstrained: path.isConstrained, isAvailable: path.status != .unsatisfied))
        }
        monitor.start(queue: DispatchQueue(label: "Postcard network"))
    }

    private func update(_ path: NetworkPath) {
        known.withLock { $0 = path }
        signal.notify()
    }

    var path: NetworkPath? { known.withLock { $0 } }

    /// Yields an element at once and after every change.
    func changes() -> AsyncStream<Void> { signal.stream() }

    /// Waits for the first update, which follows the start of the monitor: at most a second. A run that ends when
    /// nothing is left to send would end before it.
    func untilKnown() async {
        try? await within(.seconds(1), or: CancellationError()) { [self] in
            for await _ in changes() where path != nil { return }
        }
    }
}
#else
/// The monitor of a platform that does not distinguish networks.
struct NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    var path: NetworkPath? { NetworkPath() }

    func changes() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    func untilKnown() async {}
}
#endif
