import NIOCore
import Synchronization

/// Lets one request at a time change an unfinished upload.
///
/// A request that wants the lock ends those before it: a client never sends two requests for an upload at once, so its
/// earlier ones have failed, and the server has not noticed yet (§4.6 of the draft, "Concurrency").
public final class UploadLock: Sendable {
    private struct State {
        var holder: Holder?
        var waiting: [(holder: Holder, continuation: CheckedContinuation<Void, Never>)] = []
        /// Whether the request that creates the upload has not released the lock yet.
        var isReserved: Bool
        var checker: ArrivingFormChecker?
        var isIdle: Bool { holder == nil && !isReserved }
    }

    private let state: Mutex<State>

    /// Makes the lock of an upload.
    ///
    /// - Parameter isReserved: Whether the request that creates the upload is about to take the lock. `false` for an
    ///   upload from before a restart.
    public init(isReserved: Bool) {
        state = Mutex(State(isReserved: isReserved))
    }

    /// Whether no request holds the lock or is about to take it.
    public var isIdle: Bool { state.withLock { $0.isIdle } }

    /// Runs the body if no request holds the lock.
    ///
    /// - Returns: `nil` if one does.
    public func withLockIfIdle<Value>(_ body: () async throws -> Value) async rethrows -> Value? {
        let holder: Holder? = state.withLock { state in
            guard state.isIdle else { return nil }
            let holder = Holder(channel: nil)
            state.holder = holder
            return holder
        }
        guard let holder else { return nil }
        defer { release(holder) }
        return try await body()
    }

    /// Ends the request that holds the lock, waits for it, and runs the body.
    public func withLock<Value>(_ body: () async throws -> Value) async rethrows -> Value {
        try await withLock(on: nil) { _ in try await body() }
    }

    /// Runs the body as the only request at the upload.
    ///
    /// - Parameter channel: Closed if another request wants the lock, so that the body stops waiting for bytes.
    func withLock<Value>(
        on channel: (any Channel)?, _ body: (Holder) async throws -> Value
    ) async rethrows -> Value {
        let holder = await take(on: channel)
        defer { release(holder) }
        return try await body(holder)
    }

    /// Whether the upload is becoming a record.
    var isFinishing: Bool { state.withLock { $0.holder }?.isFinishing ?? false }

    private func take(on channel: (any Channel)?) async -> Holder {
        let holder = Holder(channel: channel)
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

    // MARK: - What the holders pass on

    /// Takes the checker if it has read all bytes up to the offset. The holder gives it back.
    func takeChecker(at offset: Int64) -> ArrivingFormChecker? {
        let checker = state.withLock { $0.checker.take() }
        return checker?.offset == offset ? checker : nil
    }

    func giveBack(_ checker: ArrivingFormChecker?) {
        state.withLock { $0.checker = checker }
    }

    /// A request that holds the lock.
    final class Holder: Sendable {
        private enum Phase {
            case open
            /// Another request wants the lock. The holder accepts the bytes that are still there and releases it.
            case ended
            /// The upload is becoming a record, which is not interrupted.
            case finishing
            case released
        }

        /// The connection or stream that the bytes arrive on.
        private let channel: (any Channel)?
        private let phase = Mutex(Phase.open)

        /// The time without bytes after which an ended request is cut off, and the time after which it is in any case:
        /// a client may send on, byte by byte, and the request that ended it waits.
        private static let (quiet, patience) = (Duration.milliseconds(50), Duration.milliseconds(200))

        fileprivate init(channel: (any Channel)?) {
            self.channel = channel
        }

        /// Ends the request once no more bytes arrive on its connection: the client need not send again what was in
        /// flight when it gave up.
        fileprivate func end() {
            let ends = phase.withLock { phase in
                guard case .open = phase else { return false }
                phase = .ended
                return true
            }
            guard ends, let channel else { return }
            let interval = TimeAmount(Self.quiet)
            let end = channel.eventLoop.now + TimeAmount(Self.patience)
            channel.eventLoop.scheduleRepeatedTask(initialDelay: interval, delay: interval) { [self] task in
                guard isEnded else { return task.cancel() }
                let handler = try? channel.pipeline.syncOperations.handler(type: ConnectionHandler.self)
                let now = channel.eventLoop.now
                if let handler, !handler.isQuiet(for: Self.quiet, at: now), now < end { return }
                channel.close(promise: nil)
                task.cancel()
            }
        }

        /// Whether another request wants the lock.
        var isEnded: Bool {
            phase.withLock { phase in
                if case .ended = phase { true } else { false }
            }
        }

        fileprivate var isFinishing: Bool {
            phase.withLock { phase in
                if case .finishing = phase { true } else { false }
            }
        }

        /// Keeps other requests from ending this one.
        ///
        /// - Returns: `false` if one has ended it already.
        func beginFinishing() -> Bool {
            phase.withLock { phase in
                guard case .open = phase else { return false }
                phase = .finishing
                return true
            }
        }

        /// Leaves the connection to its next request, or closes it if this request was ended, because its client is
        /// gone.
        fileprivate func release() {
            let wasEnded = phase.withLock { phase in
                defer { phase = .released }
                if case .ended = phase { return true }
                return false
            }
            if wasEnded { channel?.close(promise: nil) }
        }
    }
}
