import Dispatch
package import PostcardFoundation
import Synchronization

/// The activities of this process, which the tests' transfer daemon grants: it suspends an app that has none.
package final class DaemonActivities: Sendable {
    private struct State {
        var connection: DaemonConnection?
        var number = 0
        /// What waits for the daemon's answer, and is called with it.
        var waiting: [Int: @Sendable (Bool) -> Void] = [:]
        /// What is called when the app is about to be suspended.
        var expiring: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    /// Connects to a daemon.
    ///
    /// - Parameters:
    ///   - socket: The path of the daemon's socket.
    ///   - daemonEnded: Called when the daemon closes the connection.
    package init(socket: String, daemonEnded: @escaping @Sendable () -> Void) throws {
        let connection = try DaemonConnection(to: socket) { [weak self] in
            self?.receive($0)
        } onClose: {
            daemonEnded()
        }
        state.withLock { $0.connection = connection }
    }

    /// The activities as a queue uses them.
    package var system: SystemActivity {
        SystemActivity { [self] expire in
            let answer = Answer()
            let number = state.withLock { state in
                state.number += 1
                state.waiting[state.number] = answer.give
                state.expiring[state.number] = expire
                return state.number
            }
            send("begin-activity", number)
            guard answer.wait() else {
                state.withLock { $0.expiring[number] = nil }
                return nil
            }
            return { [self] in
                state.withLock { $0.expiring[number] = nil }
                send("end-activity", number)
            }
        }
    }

    /// The daemon's answer, which a thread waits for.
    private final class Answer: Sendable {
        private let isGranted = Mutex(false)
        private let given = DispatchSemaphore(value: 0)

        func give(_ isGranted: Bool) {
            self.isGranted.withLock { $0 = isGranted }
            given.signal()
        }

        func wait() -> Bool {
            given.wait()
            return isGranted.withLock { $0 }
        }
    }

    /// Notifies the daemon that the app has handled the events for which it was woken.
    package func noteHandled() { state.withLock { $0.connection }?.notify(DaemonCommand("handled")) }

    private func send(_ name: String, _ number: Int) {
        var command = DaemonCommand(name)
        command.activity = number
        state.withLock { $0.connection }?.notify(command)
    }

    private func receive(_ message: DaemonMessage) {
        guard let number = message.number else { return }
        switch message.event {
        case "activity":
            state.withLock { $0.waiting.removeValue(forKey: number) }?(message.granted ?? false)
        case "expire":
            let expire = state.withLock { $0.expiring.removeValue(forKey: number) }
            expire?()
        default: break
        }
    }
}
