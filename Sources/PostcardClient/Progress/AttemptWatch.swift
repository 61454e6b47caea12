import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps account of an attempt: how much was sent, when a byte last moved, and what is waited for.
final class AttemptWatch: Sendable {
    private let url: URL
    private let timeout: Duration?
    private let totalBytes: Int64?
    private let state: Mutex<State>

    private struct State {
        var lastMove: ContinuousClock.Instant
        var phase: UploadError.Phase = .connecting
        /// What was last reported as sent; nothing until the connection stands.
        var bytesSent: Int64?
        /// Whether the whole body was reported as sent.
        var isWhole = false
        var isOver = false
    }

    /// - Parameters:
    ///   - url: Where the request goes.
    ///   - timeout: How long nothing may move; `nil` for as long as it takes.
    ///   - totalBytes: The length of the body, where it is known.
    init(_ url: URL, timeout: Duration?, totalBytes: Int64?) {
        self.url = url
        self.timeout = timeout
        self.totalBytes = totalBytes
        state = Mutex(State(lastMove: .now))
    }

    /// The most bytes of the body that were reported as sent.
    var bytesSent: Int64 { state.withLock { $0.bytesSent ?? 0 } }

    /// Takes note of an event.
    ///
    /// - Returns: Whether it carries the upload forward: progress never falls within an attempt, and nothing
    ///   is told twice.
    @discardableResult
    func note(_ event: TransportEvent) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.lastMove = .now
            switch event {
            case .waitingForNetwork:
                break
            case .sent(let body):
                let isWhole = body.isWhole || body.bytesSent == totalBytes
                let bytesSent = state.bytesSent ?? -1
                guard body.bytesSent > bytesSent || (body.bytesSent == bytesSent && isWhole && !state.isWhole) else {
                    return false
                }
                state.bytesSent = body.bytesSent
                state.isWhole = isWhole
                if state.phase != .receiving { state.phase = isWhole ? .waiting : .sending }
            case .received:
                state.phase = .receiving
            }
            return true
        }
    }

    /// The attempt is over; what a transport still reports, such as a chunk that was on its way, is too late.
    func end() {
        state.withLock { $0.isOver = true }
    }

    /// Waits until nothing has moved for too long, and has the teller tell what it withheld in the meantime.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/timedOut``; `CancellationError`.
    func expire(flushing teller: ProgressTeller) async throws -> Never {
        let clock = ContinuousClock()
        while true {
            var wakening = clock.now.advanced(by: teller.flushInterval ?? .seconds(3600))
            if let timeout {
                let (lastMove, phase) = state.withLock { ($0.lastMove, $0.phase) }
                let deadline = lastMove.advanced(by: timeout)
                if clock.now >= deadline { throw UploadError.timedOut(url, phase, after: timeout) }
                wakening = min(wakening, deadline)
            }
            try await clock.sleep(until: wakening)
            teller.flush()
        }
    }
}
