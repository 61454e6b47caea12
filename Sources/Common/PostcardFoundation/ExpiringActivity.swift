import Synchronization

/// Keeps the system from suspending the app during work such as copying a file, writing to the database or sending an
/// upload. iOS ends an app (0xdead10cc) that is suspended while holding a lock on a file of its app group.
///
/// Overlapping activities share one assertion of the system. Making an assertion involves another process, which is too
/// slow for every query.
package final class ExpiringActivity: Sendable {
    /// An activity that the system has granted. It ends once every holder has called ``end()``.
    package final class Grant: Sendable {
        private struct State {
            var holders = 1
            var isExpired = false
            var end: (@Sendable () -> Void)?
            var nextKey = 0
            /// The closures to call when the system is about to suspend the app.
            var handlers: [Int: @Sendable () -> Void] = [:]
        }

        private let state = Mutex(State())

        /// Whether the system is about to suspend the app.
        package var isExpired: Bool { state.withLock { $0.isExpired } }

        /// Removes a holder. The activity ends with its last holder.
        package func end() {
            let end = state.withLock { state -> (@Sendable () -> Void)? in
                state.holders -= 1
                return state.holders == 0 ? state.end.take() : nil
            }
            end?()
        }

        /// Adds a holder. Returns `false` if the activity has ended or expired.
        fileprivate func join() -> Bool {
            state.withLock { state in
                guard state.holders > 0, !state.isExpired else { return false }
                state.holders += 1
                return true
            }
        }

        fileprivate func setEnd(_ end: @escaping @Sendable () -> Void) { state.withLock { $0.end = end } }

        fileprivate func expire() {
            let handlers = state.withLock { state in
                state.isExpired = true
                defer { state.handlers = [:] }
                return state.handlers
            }
            for handler in handlers.values { handler() }
        }

        /// Calls a closure when the system is about to suspend the app, or at once if the activity has expired. The
        /// returned closure removes the handler.
        package func onExpiry(_ handler: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
            let key = state.withLock { state -> Int? in
                if state.isExpired { return nil }
                state.nextKey += 1
                state.handlers[state.nextKey] = handler
                return state.nextKey
            }
            guard let key else {
                handler()
                return {}
            }
            return { [weak self] in self?.state.withLock { $0.handlers[key] = nil } }
        }
    }

    private let system: SystemActivity
    /// The latest grant. The lock is held while the system decides, so only one caller asks at a time.
    private let latest = Mutex<Grant?>(nil)

    package init(_ system: SystemActivity) {
        self.system = system
    }

    /// The activity for the imports and uploads of this process that belong to no queue.
    package static let shared = ExpiringActivity(.usual)

    /// Begins an activity, which the caller must end; `nil` if the system is about to suspend the app.
    package func begin() -> Grant? {
        latest.withLock { latest -> Grant? in
            if let latest, latest.join() { return latest }
            let grant = Grant()
            guard let end = system.begin({ [weak grant] in grant?.expire() }) else { return nil }
            grant.setEnd(end)
            latest = grant
            return grant
        }
    }

    /// Begins an activity without blocking an actor.
    @concurrent package func beginConcurrently() async -> Grant? { begin() }

    /// Does some work within an activity, if the system grants one. A suspension does not cancel the work: it continues
    /// when the app runs again.
    package func accompany<Value>(_ work: () async throws -> Value) async rethrows -> Value {
        guard let grant = await beginConcurrently() else { return try await work() }
        let isHeld = Atomic(true)
        let end: @Sendable () -> Void = { if isHeld.exchange(false, ordering: .relaxed) { grant.end() } }
        let forget = grant.onExpiry(end)
        defer {
            forget()
            end()
        }
        return try await work()
    }
}
