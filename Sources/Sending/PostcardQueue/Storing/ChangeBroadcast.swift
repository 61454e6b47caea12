#if canImport(Darwin)
import Foundation
import Synchronization
#endif

/// Notifications of changes between the processes that use a queue, such as an app and its extensions.
package struct ChangeBroadcast: Sendable {
    /// How often a queue checks for changes by itself, because notifications may get lost.
    let pollInterval: Duration
    /// Notifies all listeners of a name. These include the listeners in this process, which need no notification.
    let post: @Sendable (_ name: String) -> Void
    /// Calls a closure for each notification of a name from any process, until the returned object is released.
    let listen: @Sendable (_ name: String, _ notify: @escaping @Sendable () -> Void) -> Listener

    package init(
        pollInterval: Duration, post: @escaping @Sendable (_ name: String) -> Void,
        listen: @escaping @Sendable (_ name: String, _ notify: @escaping @Sendable () -> Void) -> Listener
    ) {
        self.pollInterval = pollInterval
        self.post = post
        self.listen = listen
    }

    /// A registration for notifications, which ends when the object is released.
    package final class Listener: Sendable {
        private let end: @Sendable () -> Void

        package init(_ end: @escaping @Sendable () -> Void = {}) {
            self.end = end
        }

        deinit { end() }
    }

    #if canImport(Darwin)
    /// A broadcast with Darwin notifications, which a suspended app does not get.
    package static let usual = ChangeBroadcast(pollInterval: .seconds(60)) { name in
        CFNotificationCenterPostNotification(
            CFNotificationCenterGetDarwinNotifyCenter(), CFNotificationName(name as CFString), nil, nil, true)
    } listen: { name, notify in
        let key = DarwinListeners.shared.add(name, notify)
        return Listener { DarwinListeners.shared.remove(key, of: name) }
    }
    #else
    /// A broadcast for systems without notifications between processes: a queue checks for changes each second.
    package static let usual = ChangeBroadcast(pollInterval: .seconds(1)) { _ in
    } listen: { _, _ in
        Listener()
    }
    #endif
}

#if canImport(Darwin)
/// The listeners of this process, by the names of notifications. The object is never released, because the system
/// points to it.
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

    /// Removes a listener. The system's observer stays, because another queue may soon use the same name.
    func remove(_ key: Int, of name: String) { state.withLock { $0.all[name]?[key] = nil } }

    private func notify(_ name: String) {
        for notify in state.withLock({ Array(($0.all[name] ?? [:]).values) }) { notify() }
    }
}
#endif
