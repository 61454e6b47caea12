import Synchronization

#if canImport(Network)
import Dispatch
import Network
import PostcardFoundation
#endif

#if canImport(Network)
/// Tracks the network that the system uses.
final class NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    private let monitor = NWPathMonitor()
    /// The latest network; `nil` until the first update, because the monitor's path is not valid earlier.
    private let known = Mutex<NetworkPath?>(nil)
    private let signal = ChangeSignal()

    private init() {
        monitor.pathUpdateHandler = { [weak self] path in
            self?.update(
                NetworkPath(
                    isCellular: path.usesInterfaceType(.cellular), isExpensive: path.isExpensive,
                    // A network that needs a connection counts as available: the system connects a VPN on demand when
                    // something is sent.
                    isConstrained: path.isConstrained, isAvailable: path.status != .unsatisfied))
        }
        monitor.start(queue: DispatchQueue(label: "Postcard network"))
    }

    private func update(_ path: NetworkPath) {
        known.withLock { $0 = path }
        signal.notify()
    }

    var path: NetworkPath? { known.withLock { $0 } }

    /// A stream with an element at once and after every change.
    func changes() -> AsyncStream<Void> { signal.stream() }

    /// Waits for the monitor's first update, at most a second. A run that ends when no upload is left to send must not
    /// end before that update.
    func untilKnown() async {
        try? await within(.seconds(1), or: CancellationError()) { [self] in
            for await _ in changes() where path != nil { return }
        }
    }
}
#else
/// The network monitor for platforms that do not distinguish networks.
struct NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    var path: NetworkPath? { NetworkPath() }

    func changes() -> AsyncStream<Void> { AsyncStream { $0.finish() } }

    func untilKnown() async {}
}
#endif
