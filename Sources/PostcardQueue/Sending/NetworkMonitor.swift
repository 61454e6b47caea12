#if Queue
#if canImport(Network)
import Dispatch
import Network

/// What the system says of the network in use.
final class NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    private let monitor = NWPathMonitor()

    private init() {
        monitor.start(queue: DispatchQueue(label: "Postcard network"))
    }

    var isUnmetered: @Sendable () -> Bool {
        { [monitor] in !monitor.currentPath.isExpensive && !monitor.currentPath.isConstrained }
    }
}
#else
/// This platform does not tell whether its network is metered.
struct NetworkMonitor: Sendable {
    static let shared = NetworkMonitor()

    var isUnmetered: @Sendable () -> Bool { { true } }
}
#endif
#endif
