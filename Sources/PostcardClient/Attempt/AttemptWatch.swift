import PostcardForm
import Synchronization

#if canImport(FoundationEssentials)
import FoundationEssentials
#else
import Foundation
#endif

/// Keeps account of a request under way: how much was sent, when a byte last moved, what is waited for, and when the
/// waiting has to end.
final class AttemptWatch: Sendable {
    private let url: URL
    private let times: Times
    private let totalBytes: Int64?
    private let state: Mutex<State>

    /// How long may be waited for what.
    struct Times: Sendable {
        /// How long no byte may move.
        var idle: Duration?
        /// How long it may take until the connection stands.
        var connecting: Duration?
        /// How long the upload may take as a whole, and when that time is over.
        var total: (duration: Duration, end: ContinuousClock.Instant)?
    }

    private struct State {
        let start = ContinuousClock.now
        var lastMove = ContinuousClock.now
        var phase: UploadError.Phase
        var isWaitingForNetwork = false
        /// What was last reported as sent; nothing until the connection stands.
        var bytesSent: Int64?
        /// Whether the whole body was reported as sent.
        var isWhole = false
        var isOver = false
    }

    /// - Parameters:
    ///   - request: What is sent. Of one without a body nobody says when the connection stands.
    ///   - times: How long may be waited for what.
    init(_ request: UploadRequest, times: Times) {
        url = request.url
        self.times = times
        totalBytes = request.body?.contentLength
        state = Mutex(State(phase: request.body == nil ? .waiting : .connecting))
    }

    /// The most bytes of the body that were reported as sent.
    var bytesSent: Int64 { state.withLock { $0.bytesSent ?? 0 } }

    /// Whether the whole body was reported as sent.
    var hasSentWhole: Bool { state.withLock { $0.isWhole } }

    /// Takes note of an event.
    ///
    /// - Returns: Whether it carries the upload forward: progress never falls within an attempt, and nothing
    ///   is told twice.
    @discardableResult
    func note(_ event: TransportEvent) -> Bool {
        state.withLock { state in
            guard !state.isOver else { return false }
            state.lastMove = .now
            state.isWaitingForNetwork = false
            switch event {
            case .waitingForNetwork:
                state.isWaitingForNetwork = true
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

    /// The request is over; what a transport still reports, such as a chunk that was on its way, is too late.
    func end() {
        state.withLock { $0.isOver = true }
    }

    /// Waits until time has run out, and has the teller tell what it withheld in the meantime.
    ///
    /// - Throws: ``UploadError`` with the code ``UploadError/Code/timedOut``, ``UploadError/Code/connectTimedOut`` or
    ///   ``UploadError/Code/deadlinePassed``; `CancellationError`.
    func expire(flushing teller: ProgressTeller) async throws -> Never {
        let clock = ContinuousClock()
        while true {
            let expiry = expiry()
            let now = clock.now
            if let expiry, now >= expiry.time { throw expiry.error }
            let wakening = now.advanced(by: teller.flushInterval ?? .seconds(3600))
            try await clock.sleep(until: min(wakening, expiry?.time ?? wakening))
            teller.flush()
        }
    }

    /// When time runs out if nothing moves until then, and what is thrown then; the first that does.
    private func expiry() -> (time: ContinuousClock.Instant, error: UploadError)? {
        let state = state.withLock { $0 }
        var expiries: [(time: ContinuousClock.Instant, error: UploadError)] = []
        if let total = times.total {
            expiries.append((total.end, .deadlinePassed(url, state.phase, after: total.duration)))
        }
        if !state.isWaitingForNetwork {
            if let time = times.connecting, state.phase == .connecting {
                expiries.append((state.start.advanced(by: time), .timedOut(url, .connecting, after: time)))
            } else if let time = times.idle {
                expiries.append((state.lastMove.advanced(by: time), .timedOut(url, state.phase, after: time)))
            }
        }
        return expiries.min { $0.time < $1.time }
    }
}
