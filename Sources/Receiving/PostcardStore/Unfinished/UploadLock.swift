import Synchronization

/// Lets one request at a time change an unfinished upload.
///
/// A request that wants the lock ends the request that holds it. A client sends one request for an upload at a time. If
/// a second request arrives, the first has failed, but the server has not noticed this
/// (draft-ietf-httpbis-resumable-upload §4.6).
public final class UploadLock: Sendable {
    private struct State {
        var holder: Holder?
        var waiting: [(holder: Holder, continuation: CheckedContinuation<Void, Never>)] = []
        /// Whether the request that creates the upload has not released the lock yet.
        var isReserved: Bool
        var isIdle: Bool { holder == nil && !isReserved }
    }

    private let state: Mutex<State>

    /// Makes the lock of an upload.
    ///
    /// - Parameter isReserved: Whether the request that creates the upload will hold the lock. `false` after a restart.
    public init(isReserved: Bool) {
        state = Mutex(State(isReserved: isReserved))
    }

    /// Whether the lock is free: no request holds it, and the request that creates the upload has released it.
    public var isIdle: Bool { state.withLock { $0.isIdle } }

    /// Runs the body if the lock is free, as ``isIdle`` reports.
    ///
    /// - Returns: `nil` if the lock is not free.
    public func withLockIfIdle<Value>(_ body: () async throws -> Value) async rethrows -> Value? {
        let holder: Holder? = state.withLock { state in
            guard state.isIdle else { return nil }
            let holder = Holder(connection: nil)
            state.holder = holder
            return holder
        }
        guard let holder else { return nil }
        defer { release(holder) }
        return try await body()
    }

    /// Ends the request that holds the lock, waits until it releases the lock, and runs the body.
    public func withLock<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        try await withLock(on: nil) { _ in try await body() }
    }

    /// Runs `body` while holding the lock, as the only request that changes the upload. If another request wants the
    /// lock, the connection of this request is closed, so that `body` stops waiting for bytes of the request.
    package func withLock<Value>(
        on connection: (any HoldingConnection)?, _ body: (Holder) async throws -> Value
    ) async rethrows -> Value {
        let holder = await take(on: connection)
        defer { release(holder) }
        return try await body(holder)
    }

    /// Whether the upload is becoming a record.
    package var isFinishing: Bool { state.withLock { $0.holder }?.isFinishing ?? false }

    private func take(on connection: (any HoldingConnection)?) async -> Holder {
        let holder = Holder(connection: connection)
        await withCheckedContinuation { continuation in
            let earlier: [Holder]? = state.withLock { state in
                guard let current = state.holder else {
                    state.holder = holder
                    return nil
                }
                let earlier = [current] + state.waiting.map(\.holder)
                state.waiting.append((holder, continuation))
                return earlier
            }
            guard let earlier else { return continuation.resume() }
            for holder in earlier { holder.end() }
        }
        return holder
    }

    /// Passes the lock to the request that has waited longest.
    private func release(_ holder: Holder) {
        holder.release()
        let next: CheckedContinuation<Void, Never>? = state.withLock { state in
            state.isReserved = false
            guard !state.waiting.isEmpty else {
                state.holder = nil
                return nil
            }
            let next = state.waiting.removeFirst()
            state.holder = next.holder
            return next.continuation
        }
        next?.resume()
    }

    package final class Holder: Sendable {
        private enum Phase {
            case open
            /// Another request wants the lock. The holder keeps the received bytes and releases the lock.
            case ended
            /// The upload is becoming a record, and must not be interrupted.
            case finishing
            case released
        }

        /// The connection or stream of the request.
        private let connection: (any HoldingConnection)?
        private let phase = Mutex(Phase.open)

        fileprivate init(connection: (any HoldingConnection)?) {
            self.connection = connection
        }

        /// Ends the request after the bytes in flight were received, so that the client need not send them again.
        fileprivate func end() {
            let ends = phase.withLock { phase in
                guard case .open = phase else { return false }
                phase = .ended
                return true
            }
            if ends { connection?.closeWhenQuiet(while: { [self] in isEnded }) }
        }

        /// Whether another request wants the lock.
        package var isEnded: Bool {
            phase.withLock { phase in
                if case .ended = phase { true } else { false }
            }
        }

        fileprivate var isFinishing: Bool {
            phase.withLock { phase in
                if case .finishing = phase { true } else { false }
            }
        }

        /// Protects this request from being ended by others; `false` if another request has already ended it.
        package func beginFinishing() -> Bool {
            phase.withLock { phase in
                guard case .open = phase else { return false }
                phase = .finishing
                return true
            }
        }

        /// Keeps the connection for its next request, or closes it if another request has ended this one.
        fileprivate func release() {
            let wasEnded = phase.withLock { phase in
                defer { phase = .released }
                if case .ended = phase { return true }
                return false
            }
            if wasEnded { connection?.close() }
        }
    }
}

/// The connection or stream of a request that holds an ``UploadLock``.
package protocol HoldingConnection: Sendable {
    /// Closes the connection as soon as no more bytes arrive, or after a short time. `isEnded` returns `false` once the
    /// request has released the lock. The connection then stays open.
    func closeWhenQuiet(while isEnded: @escaping @Sendable () -> Bool)

    /// Closes the connection at once.
    func close()
}
