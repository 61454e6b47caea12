import Synchronization

/// Keeps the system from suspending the app in the middle of something: while a form is copied, a write locks the
/// database, or uploads are handed over. iOS ends an app that is suspended while it has locked a file of its app group
/// (0xdead10cc).
///
/// Activities within each other and at the same time are one for the system: each is an assertion in another process,
/// which is too slow for every query.
final class ExpiringActivity: Sendable {
    /// What the system has granted. It ends with its last holder.
    final class Grant: Sendable {
        private struct State {
            var holders = 1
            var isExpired = false
            var end: (@Sendable () -> Void)?
            var nextKey = 0
            /// What is called when the system is about to suspend the app.
            var handlers: [Int: @Sendable () -> Void] = [:]
        }

        private let state = Mutex(State())

        /// Whether the system is about to suspend the app.
        var isExpired: Bool { state.withLock { $0.isExpired } }

        /// Ends the activity of one holder.
        func end() {
            let end = state.withLock { state -> (@Sendable () -> Void)? in
                state.holders -= 1
                return state.holders == 0 ? state.end.take() : nil
            }
            end?()
        }

        /// Adds a holder, unless the activity has ended or expired.
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

        /// Calls a closure when the system is about to suspend the app, at once if it already is.
        ///
        /// - Returns: What removes the closure.
        fileprivate func onExpiry(_ handler: @escaping @Sendable () -> Void) -> @Sendable () -> Void {
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
    /// The latest grant. The lock is held while the system is asked, so that only one caller asks.
    private let latest = Mutex<Grant?>(nil)

    init(_ system: SystemActivity) {
        self.system = system
    }

    /// Begins an activity. The caller ends it.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/suspended`` if the system is about to suspend
    ///   the app.
    func begin() throws(UploadQueueError) -> Grant {
        let grant = latest.withLock { latest -> Grant? in
            if let latest, latest.join() { return latest }
            let grant = Grant()
            guard let end = system.begin({ [weak grant] in grant?.expire() }) else { return nil }
            grant.setEnd(end)
            latest = grant
            return grant
        }
        guard let grant else { throw .suspended(nil) }
        return grant
    }

    /// Does something that blocks within an activity.
    ///
    /// - Parameter interrupt: Called if the system is about to suspend the app, so that the work ends soon.
    func perform<Value>(
        _ work: () throws(UploadQueueError) -> Value, onExpiry interrupt: @escaping @Sendable () -> Void
    ) throws(UploadQueueError) -> Value {
        let grant = try begin()
        let forget = grant.onExpiry(interrupt)
        defer {
            forget()
            grant.end()
        }
        return try work()
    }

    /// Does something within an activity. It is cancelled if the system is about to suspend the app.
    ///
    /// - Throws: ``UploadQueueError`` with code ``UploadQueueError/Code/suspended`` then; errors of the work.
    func perform<Value: Sendable>(_ work: @escaping @Sendable () async throws -> Value) async throws -> Value {
        let grant = try begin()
        let task = Task { @concurrent in try await work() }
        let forget = grant.onExpiry { task.cancel() }
        let result = await withTaskCancellationHandler {
            await task.result
        } onCancel: {
            task.cancel()
        }
        forget()
        let isExpired = grant.isExpired
        grant.end()
        switch result {
        case .success(let value): return value
        case .failure(let error as UploadQueueError): throw error
        case .failure(let error):
            throw isExpired && !Task.isCancelled ? UploadQueueError.suspended(error) : error
        }
    }
}
