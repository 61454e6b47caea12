import PostcardForm

/// Tells where a request ends that comes in on a connection, which stays open behind it.
///
/// A request so broken that its end cannot be told has none: whoever waits for it needs a timeout.
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

    /// Begins with a connection.
    package init() {}

    /// Whether the request has ended, or nothing that came can be the beginning of one.
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
            // What is more than a head holds is body.
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
        // Who speaks TLS or HTTP/2 waits for an answer in it, and sends nothing more.
        switch ForeignInput(head) {
        case .tls, .http2: .complete
        default: head.count < maximumHeadBytes ? .head(head) : .unknown
        }
    }

    private mutating func begin(_ head: ArraySlice<UInt8>) {
        guard ForeignInput(Array(head)) != .http2 else {
            state = .complete
            return
        }
        var length: Int64?
        var isChunked = false
        for line in head.split(separator: UInt8(ascii: "\n")).dropFirst() {
            let text = String(decoding: line, as: UTF8.self).lowercased()
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
            // Without a length there is no body, as receivers see it (RFC 9112 §6.3): what follows may be one.
            state = .unknown
        }
    }
}
