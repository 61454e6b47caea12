#if canImport(Darwin)
import Foundation
import Synchronization

/// Notifies the other processes that use a queue of its changes, with Darwin notifications. They also reach the process
/// that posts them, whose next round then finds nothing to do.
final class ChangeBroadcast: Sendable {
    /// How often a queue looks for changes nevertheless: notifications are not delivered to a suspended app.
    static let pollInterval = Duration.seconds(60)

    private let name: String
    private let key: Int

    /// - Parameters:
    ///   - name: A name that all processes have for the queue.
    ///   - notify: Called for each change, by any process.
    init(_ name: String, _ notify: @escaping @Sendable () -> Void) {
        self.name = "Postcard.queue.\(name)"
        key = DarwinListeners.shared.add(self.name, notify)
    }

    deinit { DarwinListeners.shared.remove(key, of: name) }

    func post() {
        CFNotificationCenterPostNotification(
            CFNotificationCenterGetDarwinNotifyCenter(), CFNotificationName(name as CFString), nil, nil, true)
    }
}

/// The listeners of this process, by the names of notifications. Never released, because the system calls it.
private final class DarwinListeners: Sendable {
    static let shared = DarwinListeners()

    private struct State {
        var next = 0
        var all: [String: [Int: @Sendable () -> Void]] = [:]
    }

    private let state = Mutex(State())

    func add(_ name: String, _ notify: @escaping @Sendable () -> Void) -> Int {
        let (key, isNew) = state.withLock { state in
            let isNew = state.all[name] == nil
            state.next += 1
            state.all[name, default: [:]][state.next] = notify
            return (state.next, isNew)
        }
        if isNew {
            CFNotificationCenterAddObserver(
                CFNotificationCenterGetDarwinNotifyCenter(), Unmanaged.passUnretained(self).toOpaque(),
                { _, _, name, _, _ in
                    if let name { DarwinListeners.shared.notify(name.rawValue as String) }
                }, name as CFString, nil, .deliverImmediately)
        }
        return key
    }

    /// The system's observer stays: another queue may have the name soon.
    func remove(_ key: Int, of name: String) { state.withLock { $0.all[name]?[key] = nil } }

    private func notify(_ name: String) {
        for notify in state.withLock({ Array(($0.all[name] ?? [:]).values) }) { notify() }
    }
}
#else
/// The system has no notifications between processes: a queue looks for changes.
struct ChangeBroadcast {
    static let pollInterval = Duration.seconds(1)

    init(_ name: String, _ notify: @escaping @Sendable () -> Void) {}

    func post() {}
}
#endif
