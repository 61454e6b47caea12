/// The state of a connection, which decides how to react to each event.
///
/// Clients may send requests before they have received earlier responses, so the bytes read and the bytes written may
/// belong to different requests. Responses are sent in the order of the requests.
///
/// | state | event | next state |
/// | --- | --- | --- |
/// | `betweenRequests`: no request is being read | `headRead` | `inBody` |
/// | | `inputFailed` | `malformed` |
/// | | `responseBegins` | `lastResponse` |
/// | `inBody`: a request is being read | `endRead` | `betweenRequests` |
/// | | `inputFailed` | `interrupted` |
/// | | `responseBegins` | `lastResponse` |
/// | `interrupted`: the body of a request has ended early | `responseBegins` | `lastResponse` |
/// | `malformed`: the bytes after the last request are no request | `responseBegins` | `lastResponse` |
/// | `lastResponse`: the last response is being written | `responseEnds` | `lingering` |
/// | `lingering`: the output is closed, and received bytes are dropped | `inputClosed` | `closed` |
///
/// In every state before `lingering`, the event `outputCloses` leads to `lingering`. In every state, `closes` leads to
/// `closed`. All other events leave the state as it is.
struct ConnectionState {
    private enum Phase {
        /// Requests are read and responses are written.
        case serving(Exchange)
        /// The last response of the connection is being written. Received bytes are dropped.
        case lastResponse(Drain)
        /// Everything is written, and the output is closed. Received bytes are read and dropped: closing a socket with
        /// unread bytes resets it, and the client would lose the response (RFC 9112 §9.6).
        case lingering(Drain)
        case closed
    }

    private struct Exchange {
        /// The number of requests whose head was received and whose response is incomplete.
        var awaitingResponse = 0
        var input = Input.betweenRequests
        /// The last request; `nil` before the first one.
        var request: Request?

        /// The remaining bytes of the last request, which are dropped.
        var drain: Drain { Drain(hasLength: request?.hasLength ?? false) }
    }

    private struct Request {
        /// Whether the request asks to close the connection after its response (RFC 9112 §9.6).
        let isFinal: Bool
        /// Whether the request declares the length of its body.
        let hasLength: Bool
    }

    /// The remaining bytes of a body, which are dropped from the last response on.
    struct Drain: Equatable {
        fileprivate let hasLength: Bool
        fileprivate var bytes: Int64 = 0

        /// The number of dropped bytes for which ``time(_:)`` adds a second.
        private static let bytesPerSecond = 100_000_000.0
        private static let maximumTimeouts = 5

        /// How long dropping may take. If the body's length is known, its dropped bytes extend the timeout: a proxy on
        /// a fast network sends hundreds of megabytes before it reads the response.
        func time(_ timeout: Duration) -> Duration {
            guard hasLength else { return timeout }
            return timeout + min(Duration.seconds(Double(bytes) / Self.bytesPerSecond), timeout * Self.maximumTimeouts)
        }
    }

    private enum Input {
        case betweenRequests
        /// The body of the last request is incomplete.
        case inBody
        /// The body of the last request has ended early.
        case interrupted
        /// The bytes after the last request are not a request.
        case malformed
    }

    private var phase = Phase.serving(Exchange())
    /// Whether the client may still send bytes. The value matters only when the output is to be closed.
    private var isInputOpen = true

    enum ReadAction: Equatable { case pass, drop, close }

    /// - Parameters:
    ///   - isFinal: Whether the request asks to close the connection.
    ///   - hasLength: Whether the request declares the length of its body.
    mutating func headRead(isFinal: Bool = false, hasLength: Bool = false) -> ReadAction {
        guard case .serving(var exchange) = phase, exchange.input == .betweenRequests else { return .drop }
        exchange.awaitingResponse += 1
        exchange.input = .inBody
        exchange.request = Request(isFinal: isFinal, hasLength: hasLength)
        phase = .serving(exchange)
        return .pass
    }

    mutating func bodyRead(_ count: Int) -> ReadAction {
        switch phase {
        case .serving(let exchange): return exchange.input == .malformed ? .drop : .pass
        case .lastResponse(var drain):
            drain.bytes += Int64(count)
            phase = .lastResponse(drain)
            return .drop
        case .lingering(var drain):
            drain.bytes += Int64(count)
            phase = .lingering(drain)
            return .drop
        case .closed: return .drop
        }
    }

    mutating func endRead() -> ReadAction {
        guard case .serving(var exchange) = phase, exchange.input == .inBody else { return .drop }
        exchange.input = .betweenRequests
        phase = .serving(exchange)
        return .pass
    }

    /// Records that the client will send no more bytes.
    mutating func inputClosed() -> ReadAction {
        isInputOpen = false
        guard case .lingering = phase else { return .pass }
        phase = .closed
        return .close
    }

    /// Whether received bytes are dropped. Later handlers do not ask for these bytes, so ``ConnectionHandler`` must
    /// continue to read.
    var isDropping: Bool {
        switch phase {
        case .serving(let exchange): exchange.input == .malformed
        case .closed: false
        case .lastResponse, .lingering: true
        }
    }

    enum FailureAction: Equatable {
        /// Pass the failure on as an error, because no request is being read.
        case pass
        /// Pass the failure to the reader of the body, as the reason why the body ended early.
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

    enum ResponseAction: Equatable {
        case write
        /// Write the response as the last of the connection, and declare this in its head.
        case writeAsLast
        /// Write a refusal of the received bytes, which are not a request.
        case writeMalformedRequest
        case drop
    }

    /// Records that a final response begins.
    ///
    /// - Parameter isLast: Whether the head of the response declares the end of the connection.
    mutating func responseBegins(isLast: Bool) -> ResponseAction {
        guard case .serving(let exchange) = phase else { return .drop }
        if exchange.awaitingResponse == 0 {
            phase = .lastResponse(exchange.drain)
            return exchange.input == .malformed ? .writeMalformedRequest : .writeAsLast
        }
        // The request is incomplete, so the next bytes of the connection are the rest of its body.
        let isEarly = exchange.input == .inBody || exchange.input == .interrupted
        guard isLast || (exchange.awaitingResponse == 1 && (isEarly || exchange.request?.isFinal ?? false)) else {
            return .write
        }
        phase = .lastResponse(exchange.drain)
        return .writeAsLast
    }

    enum EndAction: Equatable {
        case write
        /// Write the response, and then close the output.
        case writeAndLinger
        /// Write the response, and then close the connection, because the client has closed its side.
        case writeAndClose
        case drop
    }

    mutating func responseEnds() -> EndAction {
        switch phase {
        case .serving(var exchange):
            // If no request awaits a response, this end belongs to no response that was begun.
            guard exchange.awaitingResponse > 0 else { return .drop }
            exchange.awaitingResponse -= 1
            phase = .serving(exchange)
            return .write
        case .lastResponse(let drain):
            phase = .lingering(drain)
            return isInputOpen ? .writeAndLinger : .writeAndClose
        case .lingering, .closed:
            return .drop
        }
    }

    /// Whether the last response of the connection is written.
    var isLingering: Bool {
        if case .lingering = phase { true } else { false }
    }

    /// Whether parts of a response's body are still written to the connection.
    var isWriting: Bool {
        switch phase {
        case .serving, .lastResponse: true
        case .lingering, .closed: false
        }
    }

    enum OutputCloseAction: Equatable { case linger, close, ignore }

    /// Records that the server has nothing more to write.
    mutating func outputCloses() -> OutputCloseAction {
        switch phase {
        case .serving(let exchange):
            phase = .lingering(exchange.drain)
        case .lastResponse(let drain):
            phase = .lingering(drain)
        case .lingering, .closed:
            return .ignore
        }
        return isInputOpen ? .linger : .close
    }

    mutating func closes() {
        phase = .closed
    }

    /// The meaning of a client's silence in the current phase.
    enum Silence: Equatable {
        /// The client waits for a response, or the server reads none of its bytes.
        case expected
        /// The client has stopped in the middle of a body.
        case inBody
        /// The client has not begun its first request.
        case beforeRequests
        case betweenRequests
        /// The last response of the connection is written, and the client may still send.
        case afterLastResponse(Drain)
    }

    var silence: Silence {
        switch phase {
        case .serving(let exchange):
            if exchange.input == .inBody {
                .inBody
            } else if exchange.awaitingResponse > 0 {
                .expected
            } else {
                exchange.request == nil ? .beforeRequests : .betweenRequests
            }
        case .lastResponse, .closed: .expected
        case .lingering(let drain): .afterLastResponse(drain)
        }
    }
}
