package import Foundation
import Synchronization

/// A process of an app or an extension. It has the sessions that it has connected to until it gives them up or ends, as
/// the system allows one process at a time to use a session.
package final class DaemonProcess: Sendable {
    /// The name of the app's process.
    package static let app = "app"

    let name: String
    private let socket: String
    private let connections = Mutex<[DaemonConnection]>([])

    init(_ name: String, socket: String) {
        self.name = name
        self.socket = socket
    }

    deinit {
        for connection in connections.withLock({ $0 }) { connection.close() }
    }

    /// A service that connects this process to a session.
    ///
    /// - Parameters:
    ///   - session: The identifier of the session.
    ///   - isWakeUp: Whether the system woke the process for the session's events. Defaults to `false`.
    ///   - seconds: How long the daemon waits until a date. Defaults to ``FastTime``.
    package func service(
        of session: String, isWakeUp: Bool = false,
        seconds: @escaping @Sendable (Date) -> Double = FastTime.seconds(until:)
    ) -> DaemonTransferService {
        DaemonTransferService(socket: socket, session: session, process: self, isWakeUp: isWakeUp, seconds: seconds)
    }

    /// Keeps the connection of a session that no queue uses any longer.
    func keep(_ connection: DaemonConnection) { connections.withLock { $0.append(connection) } }

    /// Ends the process: other processes can use its sessions from now on.
    package func end() async {
        let kept = connections.withLock { connections in
            defer { connections = [] }
            return connections
        }
        for connection in kept {
            _ = try? await connection.command(DaemonCommand("disconnect"))
            connection.close()
        }
    }
}
