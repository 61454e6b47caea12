import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// A token, and at most one task that gets another, whose end any number of others wait for.
final class TokenRefresh: Sendable {
    private let refresh: @Sendable (String?) async throws -> String
    private let state: Mutex<State>

    private typealias Continuation = CheckedContinuation<String, any Error>

    private struct State {
        var token: String?
        var refreshing: Refreshing?
        /// Those who gave up before they began to wait.
        var gone: Set<UUID> = []

        /// The token, unless it is refused, or another one is being got.
        func token(unless isRefused: (String) -> Bool) -> String? {
            guard refreshing == nil, let token, !isRefused(token) else { return nil }
            return token
        }
    }

    /// A task that gets a token, and those who wait for it.
    private struct Refreshing {
        let id: UUID
        var task: Task<Void, Never>?
        var waiting: [UUID: Continuation] = [:]
    }

    init(_ token: String?, _ refresh: @escaping @Sendable (String?) async throws -> String) {
        self.refresh = refresh
        state = Mutex(State(token: token))
    }

    /// The token; the next one while it is being got, or where there is none.
    func token() async throws -> String {
        try await token { _ in false }
    }

    /// Gets another token, unless somebody has got one already.
    ///
    /// - Parameter isRefused: Whether a token is the one that was refused.
    func replace(where isRefused: (String) -> Bool) async throws {
        _ = try await token(unless: isRefused)
    }

    private func token(unless isRefused: (String) -> Bool) async throws -> String {
        if let token = state.withLock({ $0.token(unless: isRefused) }) { return token }
        let id = UUID()
        defer { state.withLock { _ = $0.gone.remove(id) } }
        return try await withTaskCancellationHandler {
            try await withCheckedThrowingContinuation { wait(as: id, unless: isRefused, $0) }
        } onCancel: {
            leave(id)
        }
    }

    /// Waits for the task that gets a token, which there then is if there was none.
    private func wait(as id: UUID, unless isRefused: (String) -> Bool, _ continuation: Continuation) {
        let result = state.withLock { state -> Result<String, any Error>? in
            if state.gone.contains(id) { return .failure(CancellationError()) }
            // Got by another since it was looked for.
            if let token = state.token(unless: isRefused) { return .success(token) }
            if state.refreshing == nil {
                let refreshing = UUID()
                state.refreshing = Refreshing(id: refreshing)
                let refused = state.token
                state.refreshing?.task = Task { await self.run(refreshing, insteadOf: refused) }
            }
            state.refreshing?.waiting[id] = continuation
            return nil
        }
        if let result { continuation.resume(with: result) }
    }

    /// Lets one go who waits; the task ends with the last of them.
    private func leave(_ id: UUID) {
        let (continuation, task) = state.withLock { state -> (Continuation?, Task<Void, Never>?) in
            guard let continuation = state.refreshing?.waiting.removeValue(forKey: id) else {
                state.gone.insert(id)
                return (nil, nil)
            }
            guard state.refreshing?.waiting.isEmpty == true else { return (continuation, nil) }
            defer { state.refreshing = nil }
            return (continuation, state.refreshing?.task)
        }
        task?.cancel()
        continuation?.resume(throwing: CancellationError())
    }

    private func run(_ id: UUID, insteadOf refused: String?) async {
        let result: Result<String, any Error>
        do {
            result = .success(try await refresh(refused))
        } catch {
            result = .failure(error)
        }
        let waiting = state.withLock { state -> [UUID: Continuation] in
            // Given up in the meantime, and perhaps begun anew.
            guard state.refreshing?.id == id else { return [:] }
            if case .success(let token) = result { state.token = token }
            defer { state.refreshing = nil }
            return state.refreshing?.waiting ?? [:]
        }
        for continuation in waiting.values { continuation.resume(with: result) }
    }
}
