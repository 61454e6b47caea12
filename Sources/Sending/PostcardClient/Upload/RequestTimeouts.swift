import PostcardFoundation

/// The timeouts of one request, as a value type. It records the request's events. For a given time, it returns either
/// the time of the next check, or the error of a timeout.
struct RequestTimeouts: Sendable {
    typealias Instant = ContinuousClock.Instant

    /// The timeouts of a request; `nil` means no limit.
    struct Limits: Sendable {
        /// How long no bytes may move in either direction.
        var idle: Duration?
        /// How long connecting may take.
        var connect: Duration?
        /// How long a whole response may take, counted from the end of the body.
        var response: Duration?
        /// How long the upload as a whole may take, and the time at which it must have ended.
        var total: (duration: Duration, deadline: Instant)?
    }

    /// The result of a check.
    enum Verdict {
        /// The request has not timed out. The value is the time of the next check; `nil` means never.
        case checkAgain(at: Instant?)
        /// The request has timed out. The code of the ``UploadError`` is ``UploadError/Code/timedOut``,
        /// ``UploadError/Code/connectTimedOut`` or ``UploadError/Code/deadlinePassed``.
        case expired(UploadError)
    }

    private let url: URL
    private let limits: Limits
    private let start: Instant
    private var lastMove: Instant
    private var phase: UploadError.Phase
    private var isWaitingForNetwork = false

    /// The start of the response's timeout: when the whole body was sent, or when the response began if that was
    /// earlier. The timeout starts over when more of the body is sent during the response. `nil` before the start.
    private var responseStart: Instant?

    /// The largest number of bytes of the body reported as sent; `nil` before the connection is made.
    private(set) var bytesSent: Int64?

    /// Whether the whole body was reported as sent.
    private(set) var hasSentAll = false

    /// Starts the timeouts of a request.
    ///
    /// - Parameters:
    ///   - url: The URL of the request, for errors.
    ///   - hasBody: Whether the request has a body. Without one, no event reports that the connection was made.
    init(_ url: URL, hasBody: Bool, limits: Limits, at now: Instant) {
        self.url = url
        self.limits = limits
        start = now
        lastMove = now
        phase = hasBody ? .connecting : .waiting
        responseStart = hasBody ? nil : now
    }

    /// Records an event of the transport. Returns whether the event is new and should be reported: progress never
    /// falls, and nothing is reported twice.
    ///
    /// - Parameter bodyLength: The length of the body, if it is known so far.
    mutating func note(_ event: TransportEvent, bodyLength: Int64?, at now: Instant) -> Bool {
        // An interim response does not reset the timeouts, because a server could send interim responses forever.
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

    /// Checks whether the request has timed out.
    func check(at now: Instant) -> Verdict {
        let expiry = earliestExpiry
        if let expiry, now >= expiry.time { return .expired(error(of: expiry.limit)) }
        // The state of the request may change at any moment, for example when the connection is made. Then another
        // timeout starts, and may end before the current one.
        let nextLimit = [limits.idle, limits.connect, limits.response].compactMap(\.self).min()
        return .checkAgain(at: [expiry?.time, nextLimit.map(now.advanced)].compactMap(\.self).min())
    }

    /// A timeout that a request can reach.
    private enum Limit {
        case total(Duration)
        case connect(Duration)
        case idle(Duration)
        case response(Duration)
    }

    /// The first timeout to be reached if no more bytes move. Its error is made only when it is reached, because every
    /// request computes this timeout.
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
