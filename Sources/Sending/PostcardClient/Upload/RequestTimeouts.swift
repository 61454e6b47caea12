import PostcardFoundation

/// The timeouts of one request, as a value: given what happened and what time it is, it says when to check again,
/// or that time has run out.
struct RequestTimeouts: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// How long to wait for what; `nil` means no limit.
    struct Limits: Sendable {
        /// How long no byte may move.
        var idle: Duration?
        /// How long connecting may take.
        var connect: Duration?
        /// How long a whole response may take, counted from the end of the body.
        var response: Duration?
        /// How long the upload as a whole may take, and when that time is over.
        var total: (duration: Duration, deadline: Instant)?
    }

    /// What a check finds.
    enum Verdict {
        /// Time has not run out. When to check again; `nil` means never.
        case checkAgain(at: Instant?)
        /// Time has run out: ``UploadError`` with code ``UploadError/Code/timedOut``,
        /// ``UploadError/Code/connectTimedOut`` or ``UploadError/Code/deadlinePassed``.
        case expired(UploadError)
    }

    private let url: URL
    private let limits: Limits
    private let start: Instant
    private var lastMove: Instant
    private var phase: UploadError.Phase
    private var isWaitingForNetwork = false

    /// When the time for the response began: at the end of the body, or at its last move if the response began before
    /// that. `nil` before.
    private var responseStart: Instant?

    /// The most bytes of the body reported as sent; `nil` before the connection is made.
    private(set) var bytesSent: Int64?

    /// Whether the whole body was reported as sent.
    private(set) var hasSentAll = false

    /// - Parameters:
    ///   - url: The URL of the request, for errors.
    ///   - hasBody: Whether the request has a body. Without one, no event says when the connection is made.
    ///   - limits: How long to wait for what.
    ///   - now: The current time.
    init(_ url: URL, hasBody: Bool, limits: Limits, at now: Instant) {
        self.url = url
        self.limits = limits
        start = now
        lastMove = now
        phase = hasBody ? .connecting : .waiting
        responseStart = hasBody ? nil : now
    }

    /// Records an event.
    ///
    /// - Parameters:
    ///   - event: What the transport reports.
    ///   - bodyLength: The length of the body, if it is known by now.
    ///   - now: The current time.
    /// - Returns: Whether the event is news: progress never falls, and nothing is reported twice.
    mutating func note(_ event: TransportEvent, bodyLength: Int64?, at now: Instant) -> Bool {
        // A server could send interim responses forever without reading anything.
        if case .informed = event { return false }
        lastMove = now
        isWaitingForNetwork = false
        switch event {
        case .informed: break
        case .waitingForNetwork:
            isWaitingForNetwork = true
        case .sent(let bytes):
            let isAll = bodyLength.map { bytes >= $0 } ?? false
            let before = bytesSent ?? -1
            guard bytes > before || (bytes == before && isAll && !hasSentAll) else { return false }
            bytesSent = bytes
            hasSentAll = isAll
            if isAll || phase == .receiving { responseStart = now }
            if phase != .receiving { phase = isAll ? .waiting : .sending }
        case .received:
            phase = .receiving
            if responseStart == nil { responseStart = now }
        }
        return true
    }

    /// Checks whether time has run out.
    func check(at now: Instant) -> Verdict {
        let expiry = earliestExpiry
        if let expiry, now >= expiry.time { return .expired(error(of: expiry.limit)) }
        // What is waited for may change right now: there is a network, the connection is made, or the body ends.
        // Another limit then begins, and may be over before the present one.
        let nextLimit = [limits.idle, limits.connect, limits.response].compactMap(\.self).min()
        return .checkAgain(at: [expiry?.time, nextLimit.map(now.advanced)].compactMap(\.self).min())
    }

    /// What runs out.
    private enum Limit {
        case total(Duration)
        case connect(Duration)
        case idle(Duration)
        case response(Duration)
    }

    /// The first limit to be over if nothing moves until then. Every request asks this before it is sent, so that no
    /// error is made yet.
    private var earliestExpiry: (time: Instant, limit: Limit)? {
        var earliest: (time: Instant, limit: Limit)?
        func consider(_ limit: Limit, at time: Instant) {
            if earliest.map({ time < $0.time }) ?? true { earliest = (time, limit) }
        }
        if let total = limits.total { consider(.total(total.duration), at: total.deadline) }
        guard !isWaitingForNetwork else { return earliest }
        if let limit = limits.connect, phase == .connecting {
            consider(.connect(limit), at: start.advanced(by: limit))
        } else if let limit = limits.idle {
            consider(.idle(limit), at: lastMove.advanced(by: limit))
        }
        if let limit = limits.response, let responseStart {
            consider(.response(limit), at: responseStart.advanced(by: limit))
        }
        return earliest
    }

    private func error(of limit: Limit) -> UploadError {
        switch limit {
        case .total(let duration): .deadlinePassed(url, phase, after: duration)
        case .connect(let duration): .timedOut(url, .connecting, after: duration)
        case .idle(let duration): .timedOut(url, phase, after: duration)
        case .response(let duration): .responseTimedOut(url, phase, after: duration)
        }
    }
}
