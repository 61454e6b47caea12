import PostcardFoundation
import Synchronization

@testable import PostcardQueue

/// A system that suspends the app when a test says so.
final class SuspendingSystem: Sendable {
    private struct State {
        var isRefusing = false
        var next = 0
        var expiries: [Int: @Sendable () -> Void] = [:]
    }

    private let state = Mutex(State())

    var activity: SystemActivity {
        SystemActivity { [self] expire in
            let key = state.withLock { state -> Int? in
                if state.isRefusing { return nil }
                state.next += 1
                state.expiries[state.next] = expire
                return state.next
            }
            guard let key else { return nil }
            return { [self] in state.withLock { $0.expiries[key] = nil } }
        }
    }

    /// Expires all activities.
    func suspend() {
        let expiries = state.withLock { state in
            state.isRefusing = true
            return Array(state.expiries.values)
        }
        for expire in expiries { expire() }
    }

    /// Expires all activities, and waits until the task is cancelled, as a download does that is in the way.
    func suspendUntilCancelled() async throws {
        suspend()
        try await Task.sleep(for: .seconds(60))
    }

    func resume() { state.withLock { $0.isRefusing = false } }
}
