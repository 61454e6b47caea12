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
        /// How long a whole answer may take, counted from the end of the body.
        var answer: Duration?
        /// How long the upload may take as a whole, and when that time is over.
        var total: (duration: Duration, end: ContinuousClock.Instant)?
    }

    private struct State {
        let start = ContinuousClock.now
        var lastMove = ContinuousClock.now
        var phase: UploadError.Phase
        var isWaitingForNetwork = false
        /// When the body ended, or last moved where the answer began before its end; `nil` while no answer is due.
        var answerStart: ContinuousClock.Instant?
        /// What was last reported as sent; nothing until the connection stands.
        var bytesSent: Int64?
        /// Whether the whole body was reported as sent.
        var isWhole = false
        var isOver = false
        var expired: UploadError?
    }

    /// - Parameters:
    ///   - request: What is sent. Of one without a body nobody says when the connection stands.
    ///   - times: How long may be waited for what.
    init(_ request: UploadRequest, times: Times) {
        url = request.url
        self.times = times
        totalBytes = request.body?.contentLength
        state =
            request.body == nil
            ? Mutex(State(phase: .waiting, answerStart: .now)) : Mutex(State(phase: .connecting))
    }

    /// The most bytes of the body that were reported as sent.
    var bytesSent: Int64 { state.withLock { $0.bytesSent ?? 0 } }

    /// Whether the whole body was reported as sent.
    var hasSentWhole: Bool { state.withLock { $0.isWhole } }

    /// Whether some of the body was never handed to the connection. Of a transport that reports nothing it is not known.
    var isCutShort: Bool {
        state.withLock { $0.bytesSent != nil && !$0.isWhole && totalBytes != 0 }
    }

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
                let isWhole = body.isWhole || totalBytes.map { body.bytesSent >= $0 } ?? false
                let bytesSent = state.bytesSent ?? -1
                guard body.bytesSent > bytesSent || (body.bytesSent == bytesSent && isWhole && !state.isWhole) else {
                    return false
                }
                state.bytesSent = body.bytesSent
                state.isWhole = isWhole
                if isWhole || state.phase == .receiving { state.answerStart = .now }
                if state.phase != .receiving { state.phase = isWhole ? .waiting : .sending }
            case .received:
                state.phase = .receiving
                if state.answerStart == nil { state.answerStart = .now }
            }
            return true
        }
    }

    /// The request is over; what a transport still reports, such as a chunk that was on its way, is too late.
    func end() {
        state.withLock { $0.isOver = true }
    }

    /// Looks whether time has run out, of which ``expired`` tells then.
    ///
    /// - Returns: When to look again; `nil` where time never runs out, or has.
    func look(at now: ContinuousClock.Instant) -> ContinuousClock.Instant? {
        state.withLock { state in
            guard !state.isOver else { return nil }
            guard let expiry = expiry(of: state) else {
                // Once there is a network, no byte need have moved for as long as there was none.
                return [times.idle, times.connecting, times.answer].compactMap(\.self).min().map(now.advanced)
            }
            guard now >= expiry.time else {
                // The body may end from now on, and the time for the answer be shorter than what is waited for now.
                return [expiry.time, times.answer.map(now.advanced)].compactMap(\.self).min()
            }
            state.isOver = true
            state.expired = expiry.error
            return nil
        }
    }

    /// What is thrown because time has run out: ``UploadError`` with the code ``UploadError/Code/timedOut``,
    /// ``UploadError/Code/connectTimedOut`` or ``UploadError/Code/deadlinePassed``.
    var expired: UploadError? { state.withLock { $0.expired } }

    /// When time runs out if nothing moves until then, and what is thrown then; the first that does.
    private func expiry(of state: State) -> (time: ContinuousClock.Instant, error: UploadError)? {
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
            if let time = times.answer, let start = state.answerStart {
                expiries.append((start.advanced(by: time), .answerTimedOut(url, state.phase, after: time)))
            }
        }
        return expiries.min { $0.time < $1.time }
    }
}
