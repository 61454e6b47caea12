import HTTPTypes
import PostcardFoundation
import Synchronization

/// Sends a token with every upload (RFC 6750 §2.1), and gets a new token when the server responds with 401.
///
/// ```swift
/// var client = UploadClient()
/// client.interceptors = [BearerTokenInterceptor(token: saved) { expired in try await account.newToken() }]
/// ```
///
/// All uploads waiting for a token share a single refresh. If the new token is refused too, the upload fails.
public final class BearerTokenInterceptor: UploadInterceptor {
    private let tokens: TokenRefresh

    /// Makes an interceptor. All clients that use the token must share it.
    ///
    /// - Parameters:
    ///   - token: The first token. Defaults to `nil`: the first upload gets a token.
    ///   - refresh: Gets a new token. The argument is the token that the server refused, or `nil` if there was no
    ///     token. If the closure throws an error, the uploads waiting for the token fail with that error; a queue tries
    ///     its uploads again. The closure is cancelled when no upload waits for the token any longer.
    public init(token: String? = nil, refresh: @escaping @Sendable (_ refused: String?) async throws -> String) {
        tokens = TokenRefresh(token, refresh)
    }

    public func adapt(_ request: inout UploadRequest, attempt: Int) async throws {
        request.headerFields[.authorization] = Self.credentials(try await tokens.token())
    }

    public func decide(after error: UploadError, of attempt: UploadAttempt) async throws -> UploadDecision {
        // After two refusals in a row, a new token does not help.
        guard error.response?.status.code == 401, attempt.earlierErrors.last?.response?.status.code != 401 else {
            return .passOn
        }
        let refused = attempt.request.headerFields[.authorization]
        try await tokens.replace { Self.credentials($0) == refused }
        return .retry(after: .zero)
    }

    private static func credentials(_ token: String) -> String {
        "Bearer \(token)"
    }
}

/// The current token, and the task that gets a new token for all waiting uploads, if there is one.
final class TokenRefresh: Sendable {
    private let refresh: @Sendable (String?) async throws -> String
    private let state: Mutex<State>

    private typealias Continuation = CheckedContinuation<String, any Error>

    private struct State {
        var token: String?
        var refreshing: Refreshing?
        /// The identifiers of waits that were cancelled before they began.
        var gone: Set<UUID> = []

        /// The token; `nil` if it was refused or is being replaced.
        func token(unless isRefused: (String) -> Bool) -> String? {
            guard refreshing == nil, let token, !isRefused(token) else { return nil }
            return token
        }
    }

    /// A task that gets a new token, and the uploads that wait for it.
    private struct Refreshing {
        let id: UUID
        var task: Task<Void, Never>?
        var waiting: [UUID: Continuation] = [:]
    }

    init(_ token: String?, _ refresh: @escaping @Sendable (String?) async throws -> String) {
        self.refresh = refresh
        state = Mutex(State(token: token))
    }

    /// Returns the token. If the token is missing or being replaced, waits for a new one.
    func token() async throws -> String {
        try await token { _ in false }
    }

    /// Gets a new token, unless the refused token was already replaced.
    ///
    /// - Parameter isRefused: Returns whether a token is the refused one.
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

    /// Waits for the task that gets a new token. Starts the task if none is running.
    private func wait(as id: UUID, unless isRefused: (String) -> Bool, _ continuation: Continuation) {
        let result = state.withLock { state -> Result<String, any Error>? in
            if state.gone.contains(id) { return .failure(CancellationError()) }
            // The token was replaced since the last check.
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

    /// Cancels a wait for the token. After the last wait, cancels the task too.
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
            // The task was cancelled in the meantime, and another task may have started.
            guard state.refreshing?.id == id else { return [:] }
            if case .success(let token) = result { state.token = token }
            defer { state.refreshing = nil }
            return state.refreshing?.waiting ?? [:]
        }
        for continuation in waiting.values { continuation.resume(with: result) }
    }
}
