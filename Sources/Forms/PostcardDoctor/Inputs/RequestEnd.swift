import PostcardForm
import PostcardFoundation

/// Finds the end of a request on a connection that stays open after it.
///
/// The end of a badly broken request cannot be found: the caller needs a timeout.
package struct RequestEnd: Sendable {
    private var state = State.head([])

    private enum State {
        case head([UInt8])
        case body(rest: Int64)
        case chunks(ChunkedBody)
        case complete
        case unknown
    }

    private static let maximumHeadBytes = 64 << 10

    /// Starts reading a connection.
    package init() {}

    /// Whether the request has ended, or the bytes received so far cannot begin one.
    package var isComplete: Bool {
        if case .complete = state { true } else { false }
    }

    /// Whether the sender waits for `100 Continue` before it sends the body (RFC 9110 §10.1.1).
    package private(set) var expectsContinue = false

    /// Reads the next bytes of the connection.
    ///
    /// - Parameter chunk: Any number of bytes.
    package mutating func read(_ chunk: RawSpan) {
        switch state {
        case .head(var head):
            let known = head.count
            state = .head([])
            chunk.withUnsafeBytes { head.append(contentsOf: $0.prefix(Self.maximumHeadBytes - known)) }
            guard let end = RequestHead.end(in: head, from: known) else {
                state = Self.state(withoutEnd: head)
                return
            }
            begin(head[..<end])
            if case .complete = state { return }
            // The rest is the body.
            read(chunk.extracting((end - known)...))
        case .body(let rest):
            let left = rest - Int64(chunk.byteCount)
            state = left > 0 ? .body(rest: left) : .complete
        case .chunks(var body):
            body.read(chunk) { _ in }
            state = body.problem == nil ? .complete : .chunks(body)
        case .complete, .unknown:
            break
        }
    }

    private static func state(withoutEnd head: [UInt8]) -> State {
        // A client that uses TLS or HTTP/2 waits for a reply and sends nothing more.
        switch beginning(of: head[...]) {
        case .tls, .http2: .complete
        default: head.count < maximumHeadBytes ? .head(head) : .unknown
        }
    }

    /// What the head is instead of one. It may arrive in many small pieces, so no more than needed is read of it again.
    private static func beginning(of head: ArraySlice<UInt8>) -> ForeignInput? {
        ForeignInput(Array(head.prefix(ForeignInput.startLength)))
    }

    private mutating func begin(_ head: ArraySlice<UInt8>) {
        guard Self.beginning(of: head) != .http2 else {
            state = .complete
            return
        }
        var length: Int64?
        var isChunked = false
        for line in head.split(separator: UInt8(ascii: "\n")).dropFirst() {
            let text = String(streamSafe: line).lowercased()
            guard let colon = text.firstIndex(of: ":") else { continue }
            let value = text[text.index(after: colon)...].filter { !$0.isWhitespace }
            switch text[..<colon] {
            case "content-length": length = length ?? Int64(value)
            case "transfer-encoding": isChunked = isChunked || value.hasSuffix("chunked")
            case "expect": expectsContinue = expectsContinue || value == "100-continue"
            default: break
            }
        }
        if isChunked {
            state = .chunks(ChunkedBody())
        } else if let length {
            state = length > 0 ? .body(rest: length) : .complete
        } else {
            // Without a length, receivers see no body (RFC 9112 §6.3), but what follows may be one.
            state = .unknown
        }
    }
}
