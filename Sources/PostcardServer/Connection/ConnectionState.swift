/// What a connection is in the middle of, and what is to be done about what happens to it.
///
/// Requests may be sent ahead of the answers to earlier ones, so that what is read and what is written belong to
/// different requests; answers go out in the order of the requests.
struct ConnectionState {
    private enum Phase {
        /// Requests are read and answered.
        case serving(Exchange)
        /// An answer that ends the connection is being written. What still comes in is dropped.
        case lastAnswer(drainableBytes: Int64)
        /// All is written and the output is closed. What still comes in is read and dropped, because closing a
        /// socket with unread bytes resets it, and the client would lose the answer (RFC 9112 §9.6).
        case lingering(drainableBytes: Int64)
        case closed
    }

    private struct Exchange {
        /// Requests whose head has come and whose answer is not complete.
        var unanswered = 0
        var input = Input.betweenRequests
        /// Whether the last request asked for the connection to be closed behind its answer (RFC 9112 §9.6).
        var isFinal = false
    }

    private enum Input {
        case betweenRequests
        /// The last request has more body to come.
        case inBody
        /// The last request's body broke off.
        case interrupted
        /// What came behind the last request is none.
        case malformed
    }

    private var phase = Phase.serving(Exchange())
    /// Whether the client may send more. It can stop in every phase, and only at the end does it matter.
    private var isInputOpen = true
    private let maximumDrainBytes: Int64

    init(maximumDrainBytes: Int64) {
        self.maximumDrainBytes = maximumDrainBytes
    }

    enum ReadAction: Equatable { case pass, drop, close }

    /// - Parameter isFinal: Whether the request asks for the connection to be closed.
    mutating func headRead(isFinal: Bool = false) -> ReadAction {
        guard case .serving(var exchange) = phase, exchange.input != .malformed else { return .drop }
        exchange.unanswered += 1
        exchange.input = .inBody
        exchange.isFinal = isFinal
        phase = .serving(exchange)
        return .pass
    }

    mutating func bodyRead(_ count: Int) -> ReadAction {
        switch phase {
        case .serving(let exchange): return exchange.input == .malformed ? .drop : .pass
        case .lastAnswer(let drainable):
            phase = .lastAnswer(drainableBytes: drainable - Int64(count))
            return .drop
        case .lingering(let drainable):
            phase = .lingering(drainableBytes: drainable - Int64(count))
            return drainable > Int64(count) ? .drop : .close
        case .closed: return .drop
        }
    }

    mutating func endRead() -> ReadAction {
        guard case .serving(var exchange) = phase, exchange.input != .malformed else { return .drop }
        exchange.input = .betweenRequests
        phase = .serving(exchange)
        return .pass
    }

    /// The client will send no more.
    mutating func inputClosed() -> ReadAction {
        isInputOpen = false
        guard case .lingering = phase else { return .pass }
        phase = .closed
        return .close
    }

    /// Whether what comes in is dropped, so that nobody else asks for more of it.
    var isDropping: Bool {
        switch phase {
        case .serving(let exchange): exchange.input == .malformed
        case .closed: false
        case .lastAnswer, .lingering: true
        }
    }

    enum FailureAction: Equatable {
        /// Nobody is in the middle of a request.
        case pass
        /// A body breaks off: whoever reads it is to know why.
        case passAsInterruption
        case drop
    }

    mutating func inputFailed() -> FailureAction {
        guard case .serving(var exchange) = phase else { return .drop }
        switch exchange.input {
        case .betweenRequests: exchange.input = .malformed
        case .inBody: exchange.input = .interrupted
        case .interrupted, .malformed: return .drop
        }
        phase = .serving(exchange)
        return exchange.input == .interrupted ? .passAsInterruption : .pass
    }

    enum AnswerAction: Equatable {
        case write
        /// The answer is the connection's last and says so.
        case writeAsLast
        /// Instead of what was to be written, which answers no request: the input is no HTTP.
        case writeMalformedRequest
        case drop
    }

    /// An answer begins, other than an informational one.
    ///
    /// - Parameter isLast: Whether its own head says that the connection ends.
    mutating func answerBegins(isLast: Bool) -> AnswerAction {
        guard case .serving(let exchange) = phase else { return .drop }
        if exchange.unanswered == 0 {
            phase = .lastAnswer(drainableBytes: maximumDrainBytes)
            return exchange.input == .malformed ? .writeMalformedRequest : .writeAsLast
        }
        // An answer to a request that has not come whole: what follows it on the connection is the rest of a body
        // that nobody wants.
        let isEarly = exchange.input == .inBody || exchange.input == .interrupted
        guard isLast || (exchange.unanswered == 1 && (isEarly || exchange.isFinal)) else { return .write }
        phase = .lastAnswer(drainableBytes: maximumDrainBytes)
        return .writeAsLast
    }

    enum EndAction: Equatable {
        case write
        /// The output is to be closed behind it.
        case writeAndLinger
        /// The connection is to be closed behind it, because nothing can come any more.
        case writeAndClose
        case drop
    }

    mutating func answerEnds() -> EndAction {
        switch phase {
        case .serving(var exchange):
            exchange.unanswered -= 1
            phase = .serving(exchange)
            return .write
        case .lastAnswer(let drainable):
            phase = .lingering(drainableBytes: drainable)
            return isInputOpen ? .writeAndLinger : .writeAndClose
        case .lingering, .closed:
            return .drop
        }
    }

    /// Whether parts of an answer's body go out.
    var isWriting: Bool {
        switch phase {
        case .serving, .lastAnswer: true
        case .lingering, .closed: false
        }
    }

    enum OutputCloseAction: Equatable { case linger, close, ignore }

    /// The server has nothing more to write.
    mutating func outputCloses() -> OutputCloseAction {
        switch phase {
        case .serving:
            phase = .lingering(drainableBytes: maximumDrainBytes)
        case .lastAnswer(let drainable):
            phase = .lingering(drainableBytes: drainable)
        case .lingering, .closed:
            return .ignore
        }
        return isInputOpen ? .linger : .close
    }

    mutating func closes() {
        phase = .closed
    }

    /// What a silence of the client would mean now.
    enum Silence: Equatable {
        /// The client waits for an answer, or nothing can come any more.
        case expected
        /// A body stops in its middle.
        case inBody
        case betweenRequests
        /// The client has its last answer.
        case afterLastAnswer
    }

    var silence: Silence {
        switch phase {
        case .serving(let exchange):
            exchange.input == .inBody ? .inBody : exchange.unanswered > 0 ? .expected : .betweenRequests
        case .lastAnswer, .closed: .expected
        case .lingering: .afterLastAnswer
        }
    }
}
